"""``jdist drain``, ``undrain``, ``reserve``, ``reservations``: GPUs that are not for everybody."""

from __future__ import annotations

import argparse
import grp
import json
import math
import os
import pwd
import sys
import time
from collections.abc import Callable, Collection, Iterator

import msgspec

from ..common.errors import DistError, reading
from ..common.units import name_gpus, read_limit
from ..common.users import name_of
from ..gpus.readers.gpu_reader import read_gpus
from ..jobs.leases.lease import running
from ..jobs.rules.closures import Closure, change_closures, closures
from ..jobs.store.slurm_formats import read_moment, write_moment
from ..jobs.store.store import Store
from .printing import printable, table

_JSON = "as JSON: all drained and reserved GPUs"


def _add_gpus(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("gpus", metavar="GPUS", help="such as 3 or 0-2,5, UUIDs, or all")
    parser.add_argument("--json", action="store_true", help=_JSON)


def add_drain_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist drain``."""
    _add_gpus(parser)
    parser.add_argument("--reason", default="", help="shown to everybody")
    parser.add_argument("--until", metavar="TIME", help="when it ends: now+2hours, 18:00, tomorrow")


add_undrain_options = _add_gpus


def add_reserve_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist reserve``."""
    _add_gpus(parser)
    parser.add_argument(
        "--from", dest="start", metavar="TIME", default="now", help="by default now"
    )
    parser.add_argument("--for", dest="duration", metavar="TIME", help="how long: 2h, 1-12:00:00")
    parser.add_argument("--user", metavar="LIST", help="for these users; by default for nobody")
    parser.add_argument("--group", metavar="LIST", help="for the users of these groups")
    parser.add_argument("--why", default="", help="shown to everybody, such as maintenance")


def add_reservations_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist reservations``."""
    parser.add_argument("--end", metavar="ID", action="append", help="end or cancel this one")
    parser.add_argument("--json", action="store_true", help=_JSON)


def run_drain(options: argparse.Namespace, _: Store) -> int:
    """Keep new work from GPUs; what runs there goes on."""
    gpus = _chosen(options.gpus)
    with reading("until"):
        end = read_moment(options.until, time.time()) if options.until else None
        _check_end(end)
    made = Closure(frozenset(gpus), name_of(os.getuid()), options.reason[:200], end=end)
    change_closures(lambda there: [*_without(there, gpus), made])
    return _tell(options, gpus, 0.0)


def run_undrain(options: argparse.Namespace, _: Store) -> int:
    """Let new work have GPUs again."""
    gpus = _chosen(options.gpus)
    if not gpus.keys() & _drained():
        raise DistError("bad_option", f"None is drained: {name_gpus(gpus.values())}.")
    change_closures(lambda there: _without(there, gpus))
    if left := [gpus[uuid] for uuid in gpus if uuid in _drained()]:
        raise DistError("not_allowed", f"Only root can undrain {name_gpus(left)}.", "Use sudo.")
    return _tell(options)


def run_reserve(options: argparse.Namespace, _: Store) -> int:
    """Keep GPUs free for some users, or for nobody."""
    gpus, now = _chosen(options.gpus), time.time()
    with reading("from"):
        start = read_moment(options.start, now)
    with reading("for"):
        duration = read_limit(options.duration) if options.duration else None
    end = None if duration is None else start + duration
    _check_end(end)
    id = "r1"

    def add(there: list[Closure]) -> list[Closure]:
        nonlocal id
        taken = [int(one.id[1:]) for one in there if one.id]
        id = f"r{max(taken, default=0) + 1}"
        return [
            *there,
            Closure(
                frozenset(gpus),
                name_of(os.getuid()),
                options.why[:200],
                start,
                end,
                id,
                frozenset(_names(options.user, "user", pwd.getpwnam)),
                frozenset(_names(options.group, "group", grp.getgrnam)),
            ),
        ]

    change_closures(add)
    if not options.json:
        print(id)
    return _tell(options, gpus, start)


def run_reservations(options: argparse.Namespace, _: Store) -> int:
    """Print the reservations, or end some."""
    if missing := set(options.end or ()) - {one.id for one in closures()[0]}:
        message = f"There is no reservation {min(missing)}."
        raise DistError("bad_option", message, field="end")
    if options.end:
        change_closures(lambda there: [one for one in there if one.id not in options.end])
        if left := {one.id for one in closures()[0]}.intersection(options.end):
            raise DistError("not_allowed", f"Only root can end {min(left)}.", "Use sudo.")
    if options.json or options.end:
        return _tell(options)
    labels = {gpu.uuid: gpu.label for gpu in read_gpus().inventory.gpus}
    rows = [
        (
            one.id or "drained",
            ",".join(sorted(labels.get(uuid, uuid) for uuid in one.gpus)),
            write_moment(one.start) if one.start else "",
            write_moment(one.end) if one.end else "",
            one.whom or "nobody",
            one.by,
            printable(one.why),
        )
        for one in closures()[0]
    ]
    print(table(("ID", "GPUS", "FROM", "UNTIL", "FOR", "BY", "WHY"), rows))
    return 0


def _check_end(end: float | None) -> None:
    if end is not None and end <= time.time():
        raise DistError("bad_time", f"{write_moment(end)} is over already.")


def _chosen(text: str) -> dict[str, str]:
    """Return the labels of the GPUs that an argument names, by UUID."""
    there = read_gpus().inventory
    found: dict[str, str] = {}
    for name in _each(text):
        called = {
            gpu.uuid: gpu.label
            for gpu in there.gpus
            if name in ("all", gpu.uuid, gpu.label, str(gpu.index))
        }
        if not called:
            existing = ", ".join(gpu.label for gpu in there.gpus)
            hint = f"There are: {existing}." if existing else there.fault
            raise DistError("unknown_gpu", f"There is no GPU {name}.", hint)
        found |= called
    return found


def _each(text: str) -> Iterator[str]:
    for item in text.split(","):
        first, dash, last = item.strip().partition("-")
        if dash and first.isdecimal() and last.isdecimal() and int(first) <= int(last) < 10_000:
            yield from map(str, range(int(first), int(last) + 1))
        else:
            yield item.strip()


def _names(text: str | None, what: str, find: Callable[[str], object]) -> Iterator[str]:
    for name in filter(None, map(str.strip, (text or "").split(","))):
        try:
            find(name)
        except KeyError:
            raise DistError("bad_option", f"There is no {what} {name}.", field=what) from None
        yield name


def _without(there: list[Closure], gpus: Collection[str]) -> list[Closure]:
    """Return them without the drained ones among `gpus`."""
    left = [
        one if one.id else msgspec.structs.replace(one, gpus=one.gpus.difference(gpus))
        for one in there
    ]
    return [one for one in left if one.gpus]


def _drained() -> set[str]:
    return {uuid for one in closures()[0] if not one.id for uuid in one.gpus}


def _tell(options: argparse.Namespace, gpus: dict[str, str] | None = None, start: float = 0) -> int:
    """Name what still runs on GPUs when they are closed; as JSON, print what is closed."""
    for one in running():
        used = [label for uuid, label in (gpus or {}).items() if uuid in one.gpus]
        if used and (one.ends_by or math.inf) > start:
            what = f"job {one.label}" if one.label else f"pool {one.pool}"
            until = one.ends_by and f"until {write_moment(one.ends_by)} at most"
            ends = until or "without a limit"
            told = f"{what} of {one.user} keeps {name_gpus(used)}, {ends}."
            print(printable(f"{told[:1].upper()}{told[1:]}"), file=sys.stderr)
    if options.json:
        print(json.dumps(msgspec.to_builtins(closures()[0], builtin_types=())))
    return 0
