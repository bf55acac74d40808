"""``jdist report``: the GPU hours that users and jobs have had."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator

import msgspec

from ..common.files.past_use import past_use
from ..common.units import read_limit
from ..common.users import name_of
from ..jobs.leases.lease import running
from ..jobs.store.states import FAILURES
from ..jobs.store.store import Store
from .printing import table


class _Line(msgspec.Struct):
    name: str
    used: float | None = 0.0
    """GPU-seconds; `None` if its user does not allow us to read it."""
    idle: float = 0.0
    failed: float = 0.0
    job: str = ""
    state: str = ""


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist report``."""
    parser.add_argument("--since", metavar="TIME", default="7d", help="how far back; default: 7d")
    parser.add_argument("--by", choices=["user", "job"], default="user", help="default: user")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run_report(options: argparse.Namespace, store: Store) -> int:
    """Print GPU hours: used, idle, and for jobs that failed."""
    span = read_limit(options.since)
    begin = 0.0 if span is None else time.time() - span
    found = _by_user(begin) if options.by == "user" else _by_job(store, begin)
    lines = sorted(found, key=lambda line: -(line.used or 0.0))
    if options.json:
        print(json.dumps(msgspec.to_builtins(lines)))
        return 0
    names = ("USER",) if options.by == "user" else ("JOBID", "NAME", "STATE")
    rows = [
        (
            *([line.name] if options.by == "user" else [line.job, line.name, line.state]),
            "not readable" if line.used is None else _hours(line.used),
            _hours(line.idle),
            _hours(line.failed),
        )
        for line in lines
    ]
    print(table((*names, "GPU HOURS", "IDLE", "FAILED"), rows))
    return 0


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f}"


def _by_user(begin: float) -> Iterator[_Line]:
    """Yield what users had on the days since then, and what they have now."""
    first = time.strftime("%F", time.localtime(begin))
    found: dict[str, _Line] = {}
    for uid, past in past_use().items():
        line = found[name_of(uid)] = _Line(name_of(uid), used=0.0 if past else None)
        for day in past.days if past else ():
            if day.day >= first:
                line.used = (line.used or 0.0) + day.used
                line.idle, line.failed = line.idle + day.idle, line.failed + day.failed
    for one in running():
        line = found.setdefault(one.user, _Line(one.user))
        if one.since is not None and line.used is not None:
            line.used += len(one.gpus) * max(0.0, time.time() - max(one.since, begin))
    yield from (line for line in found.values() if line.used is None or line.used > 0)


def _by_job(store: Store, begin: float) -> Iterator[_Line]:
    """Yield what own jobs had since then, in all their attempts."""
    ran = "gpus > 0 AND started IS NOT NULL AND (ended IS NULL OR ended >= ?)"
    jobs = store.select_many(ran, begin)
    attempts = store.attempts([job.id for job in jobs])
    for job in jobs:
        line = _Line(job.name, job=job.label, state=job.state)
        for one in attempts[job.id]:
            if one.started is None:
                continue
            seconds = max(0.0, (one.ended or time.time()) - max(one.started, begin))
            line.used = (line.used or 0.0) + (one.gpus or 0) * seconds
            line.idle += sum(seen.idle_share for seen in one.usage.values()) * seconds
            line.failed += (one.gpus or 0) * seconds * (one.state in FAILURES)
        yield line
