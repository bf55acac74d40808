"""``jdist why``: which rank is missing in which collective, and where each rank is."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

import msgspec

from ..client.scripts.torch_dumps import read_dumps
from ..jobs.select_jobs import select_one
from ..jobs.store.store import Store
from ..pools.explain_processes import Explained, explain_job, explain_root
from ..verdicts.explain_hang import explain_hang
from ..verdicts.script_text import about_script
from .printing import printable
from .queue import refresh


def add_why_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist why``."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("job", nargs="?", metavar="JOB", help="12, 40_3, NAME, @")
    told = (
        "look at a process of yours that is no job, such as torchrun, and all that it has started"
    )
    what.add_argument("--pid", type=int, metavar="PID", help=told)
    told = "a folder with dumps of torch's flight recorder, one for each rank: PREFIX0, PREFIX1, …"
    what.add_argument("--dumps", metavar="FOLDER", help=told)
    told = "show frames in C too, by py-spy, and name the C function that holds the GIL"
    parser.add_argument("--native", action="store_true", help=told)
    parser.add_argument("--json", action="store_true", help="as JSON")


def run_why(options: argparse.Namespace, store: Store) -> int:
    """Print why ranks wait; 0 if none is stuck, 1 if one is."""
    if options.dumps:
        return _explain_dumps(Path(options.dumps), as_json=options.json)
    if options.pid is not None:
        end = f"kill {options.pid}"
        look = explain_root(f"Process {options.pid}", options.pid, native=options.native)
    else:
        refresh(store)
        job = select_one(store, options.job)
        end = f"jdist cancel {job.label}"
        look = explain_job(job, native=options.native)
    found = asyncio.run(look)
    if options.json:
        print(msgspec.json.encode(found).decode())
    else:
        for one in found:
            _print(one, "" if one.pool and not options.job else end)
    return int(any(one.verdict and one.verdict.stuck for one in found))


def _explain_dumps(folder: Path, *, as_json: bool) -> int:
    evidence = read_dumps(folder)
    verdict = explain_hang(evidence)
    if verdict and verdict.kind == "silent":  # nobody waits, and a dump tells no more
        verdict = None
    verdict = verdict and about_script(verdict)
    text = verdict.text if verdict else f"No rank of {len(evidence)} waits for another."
    if as_json:
        print(msgspec.json.encode([Explained(text, "", verdict, len(evidence))]).decode())
    else:
        print(printable(text))
    return int(bool(verdict and verdict.stuck))


def _print(one: Explained, end: str) -> None:
    if one.pool:
        print(f"Pool {one.pool}:")
    print(printable(one.text))
    if one.verdict and one.verdict.stuck and end:
        print(f"To end it: {end}")
    for line in ["", *one.stacks.splitlines(), ""]:
        print(printable(line))
