"""``jdist queue``: the jobs and pools that wait or run."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import pwd
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from ..common.errors import DistError
from ..common.rank_specs import format_ranks
from ..common.units import write_limit
from ..common.users import name_of
from ..jobs.job_end import recover
from ..jobs.schedule.board import POOL
from ..jobs.schedule.overview import Row, overview, own_row
from ..jobs.select_jobs import select
from ..jobs.start_dispatcher import ensure, ensure_sampler
from ..jobs.store.slurm_formats import write_moment
from ..jobs.store.states import ENDED, LETTERS, PENDING
from ..jobs.store.store import Store
from ..jobs.store.store_folder import other_machines
from .printing import StoppedNotice, table

if TYPE_CHECKING:
    from ..gpus.gpu_state import GpuState

_COLUMNS: dict[str, tuple[str, Callable[[Row], str]]] = {
    "id": ("JOBID", lambda row: row.id),
    "user": ("USER", lambda row: row.user),
    "name": ("NAME", lambda row: row.name),
    "kind": ("KIND", lambda row: row.kind),
    "state": ("ST", lambda row: LETTERS.get(row.state, row.state)),
    "time": ("TIME", lambda row: write_time(row)),
    "limit": ("LIMIT", lambda row: write_limit(row.limit)),
    "gpus": ("GPUS", lambda row: str(row.gpus)),
    "start": ("START", lambda row: _start(row)),
    "priority": ("PRIORITY", lambda row: str(row.job.priority) if row.job else ""),
    "submitted": ("SUBMITTED", lambda row: write_moment(row.job.submitted) if row.job else ""),
    "folder": ("FOLDER", lambda row: row.job.spec.cwd if row.job else ""),
    "comment": ("COMMENT", lambda row: row.job.spec.comment if row.job else ""),
    "where": ("WHERE(REASON)", lambda row: _where(row)),
}
_USUAL = ["id", "name", "state", "time", "limit", "gpus", "where"]

_CLEAR = "\x1b[H\x1b[J"
"""Clears a terminal."""


def refresh(store: Store) -> None:
    """Write the end of jobs whose runner was killed, and start a dispatcher if jobs wait."""
    recover(store)
    ensure(store)
    ensure_sampler(store)


def add_queue_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist queue``."""
    parser.add_argument("-u", "--user", help="of these users only: ann,bob; all: of all users")
    parser.add_argument("-j", "--jobs", metavar="JOBS", help="only these of yours: 12,40_3,lr*")
    told = "only these: PD,R; of ended jobs, too: CD,F; all"
    parser.add_argument("-t", "--states", help=told)
    parser.add_argument("-n", "--name", help="only jobs of these names: a,b")
    parser.add_argument("--start", action="store_true", help="also when jobs are expected to start")
    parser.add_argument("-o", "--columns", metavar="LIST", help=", ".join(_COLUMNS))
    parser.add_argument("-r", "--array", action="store_true", help="a line for each waiting task")
    parser.add_argument("-w", "--watch", action="store_true", help="again whenever it changes")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run_queue(
    options: argparse.Namespace, store: Store, show: Callable[[list[Row]], str] | None = None
) -> int:
    """Print the jobs that wait or run; in the form of `show`, if it is given."""
    columns, users = _columns(options), _users(options.user)
    wake = None
    if options.watch:
        from ..jobs.file_changes import Wake  # not above: nothing else needs it

        wake = Wake([store.watched])
    notice = StoppedNotice(store)
    while True:
        refresh(store)
        notice.look()
        rows = _rows(options, users, store)
        if options.json:
            print(json.dumps([row.to_json() for row in rows]))
        elif show:
            print(show(rows), end="")
        else:
            head, cells = zip(*(_COLUMNS[name] for name in columns), strict=True)
            print(table(head, [[cell(row) for cell in cells] for row in rows]))
            if not rows and (others := other_machines(store.folder)):
                machines = f"{others} other machine{'s' * (others > 1)}"
                print(f"The queue of {machines} with this home is not shown.", file=sys.stderr)
        if wake is None:
            return 0
        sys.stdout.flush()
        wake.wait(10.0)
        print(_CLEAR if sys.stdout.isatty() else "\n", end="")


def _columns(options: argparse.Namespace) -> list[str]:
    if options.columns:
        names = [name.strip() for name in options.columns.split(",")]
        if unknown := [name for name in names if name not in _COLUMNS]:
            message = f"There is no column {unknown[0]}."
            raise DistError("bad_option", message, f"There are: {', '.join(_COLUMNS)}.")
        return names
    names = list(_USUAL)
    if options.user:
        names.insert(1, "user")
    if options.start:
        names.insert(-1, "start")
    return names


def _rows(options: argparse.Namespace, users: set[str] | None, store: Store) -> list[Row]:
    waits = any(job.gpus for job in store.pending()) if options.start or options.user else False
    needs = options.user or (options.start and waits)
    gpus = _read_gpus() if needs else None
    rows = _wanted(options, users, store, overview(store, gpus, start=options.start))
    if gpus is None and any(row.state == PENDING and not row.job for row in rows):
        gpus = _read_gpus()  # an own pool waits, and its reason depends on them
        rows = _wanted(options, users, store, overview(store, gpus, start=options.start))
    if options.json:
        return rows
    if gpus is None and any(row.gpu_uuids for row in rows):
        gpus = _read_gpus()
    if not (options.array or options.start):
        rows = _folded(rows)
    return rows if gpus is None else [_with_labels(row, gpus) for row in rows]


def _users(text: str | None) -> set[str] | None:
    """Return the users of a list of names or ids; `None` for all."""
    names = [name.strip() for name in (text or "all").split(",")]
    if "all" in names:
        return None
    for name in names:
        try:
            pwd.getpwnam(name)
        except KeyError:
            if not name.isdecimal():
                hint = "Use names of users, such as ann,bob, or all."
                raise DistError("bad_option", f"There is no user {name}.", hint) from None
    return {name_of(int(name)) if name.isdecimal() else name for name in names}


def _wanted(
    options: argparse.Namespace, users: set[str] | None, store: Store, rows: list[Row]
) -> list[Row]:
    """Apply the filters; without ``-u``, only own jobs and own pools are left."""
    wanted = read_states(options.states) if options.states else LETTERS.keys() - ENDED
    rows = [row for row in rows if row.state in wanted]
    if ended := wanted & {*ENDED}:
        jobs = store.select(f"state IN ({', '.join('?' * len(ended))})", *ended)
        rows += [own_row(job, name_of(os.getuid())) for job in jobs]
    if options.user is None:
        user = name_of(os.getuid())
        rows = [row for row in rows if row.job or (row.kind == POOL and row.user == user)]
    elif users is not None:
        rows = [row for row in rows if row.user in users]
    if options.jobs:
        chosen = {job.id for job in select(store, options.jobs.split(","))}
        rows = [row for row in rows if row.job and row.job.id in chosen]
    names = None if options.name is None else {options.name, *options.name.split(",")}
    return [row for row in rows if names is None or row.name in names]


def _folded(rows: Sequence[Row]) -> list[Row]:
    """Merge consecutive waiting tasks that differ only in their number, as ``squeue`` does."""
    found = []
    for _, group in itertools.groupby(rows, _waits_for):
        first, *others = group
        if others and first.job:
            tasks = format_ranks([row.job.task or 0 for row in (first, *others) if row.job])
            first = msgspec.structs.replace(first, id=f"{first.job.array}_[{tasks}]")
        found.append(first)
    return found


def _waits_for(row: Row) -> object:
    job = row.job
    if job is None or job.array is None or row.state != PENDING:
        return id(row)
    return job.array, job.priority, row.limit, row.gpus, row.reason, row.detail


def _read_gpus() -> GpuState:
    from ..gpus.readers.gpu_reader import read_gpus  # not above: jobs on the CPU do without

    return read_gpus()


def count_free() -> int:
    """Return how many GPUs nobody has."""
    from ..gpus.used_without_lease import in_use  # not above: few want to know
    from ..jobs.leases.lease import holders

    gpus = _read_gpus()
    leases = holders(gpus.inventory)
    return len(gpus.inventory.gpus) - len(leases.keys() | in_use(gpus, leases).keys())


def _with_labels(row: Row, gpus: GpuState) -> Row:
    """Name GPUs as ``nvidia-smi`` does, instead of by UUID."""
    labels = {gpu.uuid: gpu.label for gpu in gpus.inventory.gpus}
    named = tuple(labels.get(uuid, uuid) for uuid in row.gpu_uuids)
    return msgspec.structs.replace(row, gpu_uuids=named)


def read_states(text: str) -> set[str]:
    """Return the states of a list such as ``PD,RUNNING``."""
    by_letters = {letters: state for state, letters in LETTERS.items()}
    names = [name.strip().upper() for name in text.split(",")]
    wanted = {by_letters.get(name, name) for name in names}
    if "ALL" in wanted:
        return {*LETTERS}
    if unknown := wanted - LETTERS.keys():
        known = ", ".join(f"{letters} ({state})" for state, letters in LETTERS.items())
        message = f"“{min(unknown)}” is not a state."
        raise DistError("bad_option", message, f"There are: {known}.")
    return wanted


def write_time(row: Row) -> str:
    """Write how long it has run."""
    if row.state == PENDING or row.since is None:
        return "0:00"
    ended = row.job.ended if row.job else None
    return write_limit(max(0.0, (ended or time.time()) - row.since))


def _start(row: Row) -> str:
    if row.state != PENDING:
        return ""
    if row.expected is None:
        begin = row.job.begin if row.job and row.reason == "BeginTime" else None
        return "N/A" if begin is None else f"after {write_moment(begin)}"
    when = write_moment(row.expected.start)
    return f"by {when}" if row.expected.certain else f"about {when}"


def _where(row: Row) -> str:
    if row.state == PENDING:
        return f"({row.reason}) {row.detail}" if row.reason else row.detail
    # A job that has just started does not use its GPUs yet.
    is_idle = row.idle_since is not None and time.time() - row.idle_since >= 60
    idle = f"  idle since {write_moment(row.idle_since)}" if is_idle else ""
    return (",".join(row.gpu_uuids) or "CPU") + idle
