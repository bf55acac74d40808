"""``python -m tools.gpu_check``: run the checks, and write the page."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path

from . import cells, devices
from .machine import Machine, find_machine
from .need import Check, NotRun
from .page import NO_GPU, Outcome, page

CHECKS: dict[str, Check] = {
    "start": cells.start,
    "quickstart": cells.quickstart,
    "ddp_digits": cells.ddp_digits,
    "profile": cells.profile,
    "hang": cells.hang,
    "hang_nccl": cells.hang_nccl,
    "links": cells.links,
    "memory": cells.memory,
    "stop": cells.stop,
    "park": cells.park,
    "lease": devices.lease,
    "telemetry": devices.telemetry,
    "tests": devices.tests,
}
"""The longest comes last: it takes what time is left."""
_LONGEST = 1000
"""Characters of an error that are shown."""


def main() -> int:
    """Run the checks and return the exit status: 0 if all passed that one GPU allows."""
    parser = argparse.ArgumentParser(prog="gpu-check", description=__doc__)
    parser.add_argument("--only", help="names of checks, with commas between them")
    parser.add_argument("--limit", type=float, default=600, help="seconds for all (default: 600)")
    parser.add_argument("--out", type=Path, default=Path("gpu-check.md"), help="the page's file")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(CHECKS)
    if unknown := [name for name in names if name not in CHECKS]:
        parser.error(f"There is no check {unknown[0]}. There are: {', '.join(CHECKS)}.")
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        machine = find_machine(Path(folder), time.monotonic() + options.limit)
        print(machine.told(), flush=True)
        for name in names:
            outcomes.append(_run(name, CHECKS[name], machine))
            one = outcomes[-1]
            print(f"{one.name}: {one.result} ({one.seconds:.1f} s) {one.reason}", flush=True)
            # After each, so that the page is there if the machine goes.
            options.out.write_text(page(machine.told(), machine.has_cuda, outcomes))
    print(f"\n{options.out.read_text()}\n{options.out} has this page.")
    if not machine.has_cuda:
        print(NO_GPU, file=sys.stderr)
    failed = any(one.result == "failed" for one in outcomes)
    return 1 if failed or not machine.has_cuda else 0


def _run(name: str, check: Check, machine: Machine) -> Outcome:
    begun = time.monotonic()
    try:
        if machine.seconds_left() < 10:
            raise NotRun("The time limit was over.")
        figures = check(machine)
    except NotRun as reason:
        return Outcome(name, "not run", reason=str(reason))
    except Exception as error:  # any fault of a check is its result
        traceback.print_exc()
        said = " ".join(str(error).split())[:_LONGEST]
        return Outcome(name, "failed", time.monotonic() - begun, reason=said)
    return Outcome(name, "passed", time.monotonic() - begun, figures)


if __name__ == "__main__":
    sys.exit(main())
