"""A batch job: what was asked for, and what has become of it."""

from __future__ import annotations

import contextlib
import signal
from dataclasses import dataclass
from typing import Any

import msgspec

from ...common.processes.process_ref import ProcessRef
from .states import ENDED, PENDING

REQUEUES = 3
"""How often ``--requeue`` and ``--requeue-on`` start a job again."""
LOG_MAX = 2**30
"""Bytes of output above which its middle is cut out."""

GRACE = 30.0
"""Seconds from SIGTERM to SIGKILL, by default."""


class Spec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a job runs and how; the tasks of an array share one."""

    argv: list[str]
    """The command, started without a shell; ``{name}`` stands for a parameter."""
    cwd: str
    umask: int = 0o022
    environment: str = ""
    """The hash under which the store keeps the variables."""
    secrets: str = ""
    """The file with values that are shown to nobody, see `secret_values`."""
    setup: list[str] = []
    output: str = "jdist-%j.out"
    error: str | None = None
    append: bool = False
    log_max: int = LOG_MAX
    torchrun: bool = False
    why: bool = True
    """Whether its processes can be asked why they wait."""
    profile_steps: int = 0
    """How many steps of its optimizer are profiled."""
    grace: float = GRACE
    signal: tuple[int, float] | None = None
    """A signal, and how many seconds before the limit it is sent."""
    signal_first: bool = False
    """Whether only the job's first process gets it: a script's shell."""
    every: str = ""
    """The time from run to run, or a line of cron."""
    requeue: int = 0
    """How often it is started again after its runner or the machine failed."""
    requeue_on: list[int] = []
    max_jobs: int | None = None
    array_limit: int | None = None
    """How many tasks of its array run at once."""
    max_fails: int | None = None
    """After how many failed tasks those of its array that wait are cancelled."""
    singleton: bool = False
    """Whether it waits until no other job of its name runs."""
    kill_on_invalid_dep: bool = False
    force: bool = False
    """Whether it takes GPUs that are in use without a lease."""
    notify: str | None = None
    comment: str = ""
    notebook: str = ""
    submitted_in: str = ""
    """The folder, if it is not `cwd`."""
    asked: str = ""
    """The request as JSON, without values of secrets and variables, to ask for the same again."""


AGAIN: dict[str, Any] = dict.fromkeys(
    ("runner_pid", "runner_start", "started", "ends_by", "ended", "exit_code", "exit_signal")
) | {"cancel_at": None, "kill": False, "gpu_uuids": ()}
"""What a job lacks before it is started, or started again."""


def label_of(id: int, array: int | None, task: int | None) -> str:
    """Return what people call a job: ``12``, or ``12_3`` for a task of an array."""
    return str(id) if array is None else f"{array}_{task}"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One row of the store; times are seconds since the epoch."""

    id: int = 0
    array: int | None = None
    """The id of the array's first task."""
    task: int | None = None
    params: dict[str, str]
    name: str
    spec: Spec
    state: str = PENDING
    reason: str = "None"
    detail: str = ""
    """One sentence on why it waits or how it ended."""
    priority: int = 0
    queued: float = 0.0
    begin: float | None = None
    held: bool = False
    gpus: int = 0
    gpu_ids: tuple[str, ...] = ()
    """UUIDs of suitable GPUs; empty if all are."""
    share: int | None = None
    cpus: int = 1
    memory: int = 0
    limit: float | None = None
    attempt: int = 1
    launch: str | None = None
    """Names one try to start it, so that an older one cannot go on."""
    gpu_uuids: tuple[str, ...] = ()
    runner_pid: int | None = None
    runner_start: int | None = None
    boot: str | None = None
    submitted: float = 0.0
    started: float | None = None
    ends_by: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    cancel_at: float | None = None
    kill: bool = False
    """Whether a cancelled job is killed at once."""

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Job:
        """Return a job with all of its fields: `Job(**fields)` takes ten times as long."""
        job = object.__new__(cls)
        object.__setattr__(job, "__dict__", fields)
        return job

    @property
    def label(self) -> str:
        """What people call it, see `label_of`."""
        return label_of(self.id, self.array, self.task)

    @property
    def run_name(self) -> str:
        """What names its present run in the environment of its processes."""
        return f"{self.id}.{self.launch}"

    @property
    def force(self) -> bool:
        """Whether it takes GPUs that are in use without a lease."""
        return self.spec.force

    @property
    def is_ended(self) -> bool:
        """Whether only a requeue changes it."""
        return self.state in ENDED

    @property
    def has_output(self) -> bool:
        """Whether the content of its output file is its own: its runner empties an older file."""
        return self.started is not None or self.attempt > 1

    @property
    def runner(self) -> ProcessRef | None:
        """The process that runs it, or ran it."""
        if self.runner_pid is None or self.runner_start is None or self.boot is None:
            return None
        return ProcessRef(self.runner_pid, self.runner_start, self.boot)

    def poke(self) -> None:
        """Make its runner look for changes."""
        import psutil  # not above: to import it takes as long as many a command

        if self.runner and (process := self.runner.find()):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGUSR1)

    def to_json(self) -> dict[str, Any]:
        """Return what ``--json`` and REST tell: never the environment's values."""
        told = {name: getattr(self, name) for name in Job.__dataclass_fields__}
        spec = msgspec.to_builtins(told.pop("spec")) | {"argv": self.spec.argv}
        for private in ("launch", "boot", "runner_start"):
            told.pop(private)
        for private in ("environment", "secrets", "asked"):
            spec.pop(private, None)
        return {"label": self.label} | told | {"spec": spec}
