"""Measure pools, the floors under them and, with --peers, other packages; print tables."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from . import fanout, recorder, report, script_cost, why
from .case import SYSTEMS
from .peers import PEERS, install
from .systems import Kernel, Kernels, Ours, OursServed

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 600  # seconds for a case, which limits its measures itself, but not its end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--num-ranks", type=int, default=8)
    parser.add_argument("--trials", type=int, default=3, help="of each system, in turn")
    parser.add_argument("--peers", action="store_true", help="measure other packages too")
    parser.add_argument("--only", nargs="+", choices=SYSTEMS, help="measure just these")
    parser.add_argument("--environments", type=Path, default=ROOT / ".bench")
    parser.add_argument("--raw", type=Path, default=ROOT / ".bench" / "raw.jsonl")
    options = parser.parse_args()
    options.raw.parent.mkdir(parents=True, exist_ok=True)
    names = [kind.name for kind in (Ours, OursServed, Kernels, Kernel)]
    names += [kind.name for kind in PEERS] if options.peers else []
    names = options.only or names
    pythons = dict.fromkeys(names, sys.executable)
    records: list[report.Record] = []
    for peer in PEERS:
        if peer.name in names:
            try:
                pythons[peer.name] = install(peer, options.environments)
            except subprocess.CalledProcessError as error:
                names.remove(peer.name)
                records.append(_failed(peer.name, "install", error.stderr))
    for trial in range(options.trials):
        for name in names:
            print(f"trial {trial + 1}: {name}", file=sys.stderr)
            records.append(_case(name, options.num_ranks, pythons[name]))
            with open(options.raw, "a") as raw:
                raw.write(json.dumps(records[-1] | {"load": os.getloadavg()[0]}) + "\n")
    print(f"{options.num_ranks} ranks, medians of {options.trials} trials;", end=" ")
    print(report.machine(version("torch")) + "\n")
    print(report.results(records, [peer.name for peer in PEERS]) + "\n")
    if Ours.name in names:
        print(report.fan_out(fanout.measure()) + "\n")
        print(report.why(why.measure()) + "\n")
        print(report.recorder(recorder.measure()) + "\n")
        print("In a script of `jdist submit --torchrun`:\n")
        print(report.recorder(script_cost.measure()))


def _case(name: str, size: int, python: str) -> report.Record:
    command = [sys.executable, "-m", "benchmarks.case", name, "-n", str(size), "--python", python]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return _failed(name, "case", f"it did not end within {LIMIT} s")
    if done.returncode:
        return _failed(name, "case", done.stderr[-300:])
    record: report.Record = json.loads(done.stdout.splitlines()[-1])
    return record


def _failed(name: str, measure: str, why: str) -> report.Record:
    return {"system": name, "values": {}, "failures": {measure: why}}


if __name__ == "__main__":
    main()
