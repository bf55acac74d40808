"""What would become of jobs if they were submitted now."""

from __future__ import annotations

import shlex
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

from ...common.protocol.offers import InLine
from ...gpus.gpu_state import GpuState
from ...gpus.readers.gpu_reader import read_gpus
from ..job_command import with_parameters
from ..schedule.may_start import obstacles
from ..schedule.situation import Situation, situation_of, where_in_line
from ..store.job import Job
from ..store.slurm_formats import write_place
from ..store.store import Store
from .prepare_submission import Submission
from .submission import check_parameters, name_jobs

_NEW = "0"
"""The id of a job that is not in the store."""


@dataclass(frozen=True)
class DryRun:
    """What would become of the first of the jobs."""

    count: int
    """0 if jobs with their key exist: nothing would be submitted then."""
    commands: list[str]
    """The first three."""
    starts_now: bool
    gpus: list[str]
    """UUIDs of the GPUs that it would get now."""
    place: int | None
    """Its place in line, from 1; `None` if it starts now, or may not start yet."""
    expected: float | None
    certain: bool
    """Whether it starts by then at the latest."""
    reason: str
    sentence: str

    def to_json(self) -> dict[str, Any]:
        """Return what REST tells."""
        return asdict(self)


def dry_run(asked: Submission, store: Store) -> DryRun:
    """Tell whether the first of the jobs would start now, or when; ask NVML if it needs GPUs."""
    check_parameters(asked.job.spec.argv, asked.rows)
    if ids := asked.known(store):
        named = name_jobs(store, ids)
        sentence = f"Nothing would be submitted: the key {asked.key} is that of {named}."
        return DryRun(0, [], False, [], None, None, False, "None", sentence)
    now = time.time()
    job = replace(asked.job, params=asked.rows[0], submitted=now, queued=now)
    with store.at_one_time():  # or a job that starts meanwhile would be in both lists
        pending, active, waits = store.pending(), store.active(), store.dependencies()
    upon = {job.id: [(store.get(id), kind) for id, kind in asked.dependencies]}
    (obstacle,) = obstacles([job], active, upon, now).values() or (None,)
    others = obstacles(pending, active, waits, now)
    eligible = [one for one in pending if one.id not in others]
    argv, rows = job.spec.argv, asked.rows[:3]
    told = asked.count, [shlex.join(with_parameters(word, row) for word in argv) for row in rows]
    if obstacle:
        sentence = f"It would wait ({obstacle.reason}): {obstacle.detail}"
        return DryRun(*told, False, [], None, None, False, obstacle.reason, sentence)
    eligible = sorted([*eligible, job], key=lambda one: (-one.priority, one.queued, one is job))
    gpus = read_gpus() if any(one.gpus for one in eligible) else None
    return _look_ahead(told, job, situation_of(store, gpus, eligible, active), gpus, now)


def _look_ahead(
    told: tuple[int, list[str]], job: Job, there: Situation, gpus: GpuState | None, now: float
) -> DryRun:
    wanted = there.plan()
    if _NEW in wanted.starts:
        uuids = list(wanted.starts[_NEW])
        labels = [gpu.label for gpu in gpus.inventory.gpus if gpu.uuid in uuids] if gpus else []
        on = f" on GPU{'s' * (len(labels) > 1)} {', '.join(labels)}" if labels else ""
        return DryRun(*told, True, uuids, None, now, True, "None", f"It would start now{on}.")
    want = next(one for one in there.ordered if one.id == _NEW)
    reason = wanted.reason(want) or "None"
    line = where_in_line(there, wanted, want) or InLine(0)
    unknown = "" if line.expected else ", nobody knows when it starts"
    sentence = f"It would wait ({reason}): {write_place(line)}{unknown}."
    return DryRun(*told, False, [], line.place, line.expected, line.certain, reason, sentence)
