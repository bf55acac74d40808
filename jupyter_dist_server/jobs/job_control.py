"""Changes submitted jobs: cancel, hold, release, requeue, update, signal."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from ..common.errors import DistError
from ..common.policy import allowed_limit, check_gpus
from ..common.units import format_gpus, read_limit
from .job_command import with_name
from .job_end import start_again
from .rules.rules import check_extension
from .runner.descendants import descendants_of, send
from .schedule.may_start import HELD
from .series import newest_runs
from .start_dispatcher import ensure
from .store.job import Job
from .store.slurm_formats import check_grace, check_priority
from .store.states import ACTIVE, CANCELLED, ENDED, NOT_STARTED, PENDING
from .store.store import Store


def cancel(store: Store, jobs: Sequence[Job], now: bool = False) -> list[str]:
    """Cancel jobs: SIGTERM, then SIGKILL after their grace time, or `now`.

    A run of a series means its newest run. Return a sentence on each that had ended before.
    """
    moment = time.time()
    ends = {"state": CANCELLED, "ended": moment, "reason": "None", "detail": NOT_STARTED}
    with store.writing():  # or one that ends meanwhile would start again, or submit its next run
        fresh = newest_runs(store, store.get_all([job.id for job in jobs]))
        left = [f"Job {job.label} had ended: {job.state}." for job in fresh if job.is_ended]
        ids = [job.id for job in fresh if not job.is_ended]
        store.change(ids, "state = 'PENDING'", **ends)
        store.change(ids, f"state IN {ACTIVE}", cancel_at=moment, **({"kill": True} if now else {}))
    _tell_runners(store, ids)
    return left


def _tell_runners(store: Store, ids: Sequence[int]) -> None:
    """Have what was changed noticed by the runners of jobs, and by a dispatcher."""
    chosen = set(ids)
    for job in store.active():
        if job.id in chosen:
            job.poke()
    ensure(store)


def hold(store: Store, jobs: Sequence[Job]) -> list[str]:
    """Keep jobs from starting; return a sentence on each that is not pending."""
    fields = {"held": True, "reason": HELD[0], "detail": HELD[1]}
    store.change([job.id for job in jobs], "state = 'PENDING'", **fields)
    return _not_pending(store, jobs, "cannot be held")


def release(store: Store, jobs: Sequence[Job]) -> list[str]:
    """Let held jobs start, as if submitted now; return a sentence on each that was not held.

    Of an array with tasks that wait, the others are passed over.
    """
    ids = [job.id for job in jobs]
    fields = {"held": False, "queued": time.time(), "reason": "None", "detail": ""}
    with store.writing():  # or what is released may have started before we look
        store.change(ids, "state = 'PENDING' AND held", **fields)
        arrays = {job.array for job in store.get_all(ids) if job.state == PENDING} - {None}
        others = [job for job in jobs if job.array not in arrays]
        left = _not_pending(store, others, "was not held")
    ensure(store)
    return left


def _not_pending(store: Store, jobs: Sequence[Job], what: str) -> list[str]:
    fresh = store.get_all([job.id for job in jobs])
    return [f"Job {job.label} {what}: it is {job.state}." for job in fresh if job.state != PENDING]


def requeue(store: Store, jobs: Sequence[Job], cascade: bool = False) -> list[str]:
    """Start ended jobs again; return a sentence on each that has not ended.

    With `cascade`, jobs that were cancelled as their dependency on one of them failed, too.
    """
    left = []
    with store.writing():  # of a hundred jobs, each would wait for the disk
        others = store.cancelled_with([job.id for job in jobs]) if cascade else []
        for job in [*jobs, *store.get_all(others)]:
            if not (job.is_ended and start_again(store, job, "")):
                left.append(f"Job {job.label} is {job.state}; cancel it first.")
    ensure(store)
    return left


class Update(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may change; `None` stays as it is. The fields are the options of ``jdist update``."""

    time: str | None = None
    name: str | None = None
    priority: int | None = None
    gpus: int | None = None
    comment: str | None = None
    grace: int | None = None


def update(store: Store, jobs: Sequence[Job], wanted: Update) -> list[str]:
    """Change jobs: priority and GPUs while they wait, the time limit until they end.

    Return a sentence on each request that did not apply to a job. If a value is invalid, nothing is
    changed. It may ask NVML, so it has no place in an event loop.
    """
    if wanted.name == "":
        raise DistError("bad_option", "The name of a job cannot be empty.", field="name")
    ids = [job.id for job in jobs]
    seconds = allowed_limit(read_limit(wanted.time), True) if wanted.time is not None else None
    if wanted.priority is not None:
        check_priority(wanted.priority)
    grace = None if wanted.grace is None else check_grace(wanted.grace)
    if wanted.gpus is not None:
        _check_gpus(wanted.gpus)
    if wanted.time is not None:
        for job in store.get_all(ids):
            if job.started is not None and not job.is_ended:
                check_extension(job.gpu_uuids, seconds and job.started + seconds)
    left = []
    with store.writing():  # of a hundred jobs, each would wait for the disk
        if wanted.time is not None:
            left += _update_limit(store, ids, seconds)
        if wanted.name:
            _keep_file_names(store, ids)
            store.change(ids, name=wanted.name)
        told = {"comment": wanted.comment, "grace": grace}
        if spec := {name: value for name, value in told.items() if value is not None}:
            store.change_spec(ids, **spec)
        if wanted.priority is not None:
            store.change(ids, "state = 'PENDING'", priority=wanted.priority)
            fresh = store.get_all(ids)
            left += [_unchanged(job, "priority") for job in fresh if job.state != PENDING]
        if wanted.gpus is not None:
            left += _update_gpus(store, ids, wanted.gpus)
    _tell_runners(store, ids)
    return left


def _keep_file_names(store: Store, ids: Sequence[int]) -> None:
    """Keep the files of started jobs: ``%x`` in their names becomes the name that the jobs have."""
    alike: dict[tuple[int, str], list[Job]] = {}
    for job in store.get_all(ids):
        if job.has_output or job.state in ACTIVE:  # its runner may have opened them
            alike.setdefault((id(job.spec), job.name), []).append(job)
    for (_, name), found in alike.items():
        if (kept := with_name(found[0].spec, name)) != found[0].spec:
            fields = {"argv": kept.argv, "output": kept.output, "error": kept.error}
            store.change_spec([job.id for job in found], **fields)


def _check_gpus(gpus: int) -> None:
    from ..gpus.readers.gpu_reader import read_gpus  # not above: most changes do without

    if gpus == 0:
        return
    there = read_gpus().inventory
    if not 0 < gpus <= len(there.gpus):
        why = there.fault or f"this machine has {format_gpus(len(there.gpus))}."
        message = f"A job cannot have {format_gpus(gpus)}: {why}"
        raise DistError("too_large", message, field="gpus")
    check_gpus(gpus)


def _update_limit(store: Store, ids: Sequence[int], seconds: float | None) -> list[str]:
    left = []
    store.change(ids, f"state NOT IN {ENDED}", limit=seconds)
    for job in store.get_all(ids):
        if job.state in ACTIVE:
            ends_by = None if seconds is None else (job.started or time.time()) + seconds
            store.change([job.id], ends_by=ends_by)
        elif job.is_ended:
            left.append(_unchanged(job, "time limit"))
    return left


def _update_gpus(store: Store, ids: Sequence[int], gpus: int) -> list[str]:
    left, fitting = [], []
    for job in store.get_all(ids):
        if job.state != PENDING:
            left.append(_unchanged(job, "number of GPUs"))
        elif job.gpu_ids and gpus > len(job.gpu_ids):
            many = format_gpus(len(job.gpu_ids))
            why = f"may use {many} only, by --gpu-ids, --min-gpu-memory or --gpu-memory"
            left.append(f"Job {job.label} {why}: its number of GPUs was not changed.")
        else:
            fitting.append(job.id)
    store.change(fitting, gpus=gpus)
    return left


def _unchanged(job: Job, what: str) -> str:
    return f"Job {job.label} is {job.state}: its {what} was not changed."


def send_signal(jobs: Sequence[Job], number: int) -> list[str]:
    """Send a signal to all processes of jobs; return a sentence on each job that does not run."""
    left = []
    for job in jobs:
        runner = job.runner.find() if job.runner and not job.is_ended else None
        if runner is None:
            left.append(f"Job {job.label} does not run: it is {job.state}.")
            continue
        send(descendants_of(runner.pid), number)
    return left


def check_one(jobs: Sequence[Job]) -> Job:
    """Return the only job; refuse several."""
    if len(jobs) != 1:
        hint = f"Choose one, such as {jobs[0].label}."
        raise DistError("bad_option", f"{len(jobs)} jobs have this name.", hint)
    return jobs[0]
