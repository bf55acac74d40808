"""From a request to what the store takes, checked; nothing is queued yet."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from ...common.errors import DistError, reading
from ...common.policy import allowed_limit, check_waiting
from ...common.processes.control_groups import usable_memory
from ...common.units import read_limit
from ..notification import check_url, hide_url
from ..schedule.may_start import HELD
from ..series import first_run
from ..start_dispatcher import ensure
from ..store import slurm_formats as slurm
from ..store.job import GRACE, LOG_MAX, REQUEUES, Job, Spec
from ..store.secret_values import MASK, SecretValues, hide_secrets
from ..store.store import Store
from . import scripts_and_notebooks as scripts
from .check_job import check_job, check_launch
from .choose_gpus import choose_gpus
from .job_environment import chosen_variables, kernel_environment, setup_lines
from .job_options import Parser, add_job_options
from .job_request import JobRequest, complete_like
from .script_directives import read_directives
from .scripts_of_slurm import check_script
from .submission import (
    check_count,
    check_parameters,
    read_array,
    read_dependencies,
    read_parameter_file,
    sweep,
)


@dataclass
class Submission:
    """Jobs that were asked for, and are not in the store yet."""

    job: Job
    """What they have in common."""
    rows: list[dict[str, str]]
    tasks: list[int]
    dependencies: list[tuple[int, str]]
    environment: dict[str, str]
    secrets: SecretValues
    key: str | None
    copies: dict[int, Path]
    """Files in the command, by their place; a copy runs, so that you can edit them."""
    notices: list[str] = field(default_factory=list)
    """Sentences on options of a script that are not used here."""

    @property
    def count(self) -> int:
        """How many jobs they are."""
        return max(len(self.rows), len(self.tasks), 1)

    def known(self, store: Store) -> range | None:
        """Return the ids of the jobs with its key, if any: it adds none then."""
        return store.submitted(self._token) if self._token is not None else None

    @property
    def _token(self) -> str | None:
        return self.key and f"key {self.key}"

    def submit(self, store: Store) -> range:
        """Put them into the queue, all or none, and return their ids."""
        job, now = self.job, time.time()
        check_parameters(job.spec.argv, self.rows)
        if not self.known(store):
            check_waiting(store.count_pending(), self.count)
        if self.copies and not self.known(store):
            argv = list(job.spec.argv)
            for place, path in self.copies.items():
                argv[place] = scripts.keep_copy(store, path, is_script=place == 0)
            job = replace(job, spec=msgspec.structs.replace(job.spec, argv=argv))
        is_array = bool(self.tasks) or self.count > 1
        common = vars(job) | {"submitted": now, "queued": now}
        rows = self.rows * self.count if self.tasks else self.rows
        tasks: Iterable[int | None] = self.tasks or (range(self.count) if is_array else [None])
        pairs = zip(tasks, rows, strict=True)
        ids = store.submit(
            [Job.of(common | {"task": task, "params": row}) for task, row in pairs],
            self._token or os.urandom(16).hex(),
            environment=self.environment,
            secrets=self.secrets,
            dependencies=self.dependencies,
            is_array=is_array,
        )
        ensure(store)
        return ids


def prepare(request: JobRequest, store: Store, folder: str, files: str = "jdist") -> Submission:
    """Check a request, and complete it by the directives of its script.

    Relative paths start in `folder`. The output's name begins with `files` if nobody chooses one.
    It may ask NVML, so it has no place in an event loop.
    """
    if sys.platform != "linux":  # a runner needs pidfds, subreapers and PDEATHSIG
        hint = "A pool of ranks runs here: %dist_init."
        raise DistError("linux_only", "Jobs run on Linux only.", hint)
    if request.like:
        complete_like(request, store, request.like)
    if any(MASK in word for word in [*(request.command or []), *(request.param or [])]):
        message = "A secret of the other job is hidden, and cannot be taken from it."
        raise DistError("bad_parameter", message, "Give all its --param again.", "param")
    copies = {}
    if request.notebook:
        with reading("notebook"):
            request.command, notebook = scripts.notebook_command(request, folder)
        copies[request.command.index(str(notebook))] = notebook
    if not request.command:
        hint = "Such as jdist submit python train.py"
        raise DistError("bad_option", "There is no command.", hint, "command")
    with reading("command"):
        script, notices = (None, []) if request.notebook else _script(request, folder)
    argv = list(request.command)
    if script and script.suffix == ".py":
        argv[:1] = scripts.command_in_place(script)
    elif script:
        copies[0] = script
    with reading("param"):
        rows = sweep(request.param or [])
    if request.param_file:
        listed = read_parameter_file(Path(folder, request.param_file))
        if twice := rows[0].keys() & listed[0].keys():
            message = f"{min(twice)} is a column of {request.param_file} and in --param."
            raise DistError("bad_parameter", message, field="param")
        check_count(len(rows) * len(listed))
        rows = [chosen | row for chosen in rows for row in listed]
    tasks, array_limit = read_array(request.array) if request.array else ([], None)
    check_count(len(tasks))
    if tasks and len(rows) > 1:
        hint = "--param makes an array itself."
        raise DistError("bad_array", "--array and --param cannot be combined.", hint)
    with reading("dependency"):
        dependencies, singleton = read_dependencies(request.dependency or "", store)
    with reading("begin"):
        begin = slurm.read_moment(request.begin, time.time()) if request.begin else None
        begin = first_run(request.every, begin) if request.every else begin
    with reading("mem"):
        memory = slurm.read_size(request.mem) or usable_memory() if request.mem else 0
    with reading("time"):
        limit = read_limit(request.time) if request.time else None
        limit = allowed_limit(limit, bool(request.time))
    is_array = bool(tasks) or len(rows) > 1
    umask = os.umask(0)
    os.umask(umask)
    chdir = os.path.abspath(os.path.join(folder, request.chdir or ""))
    spec = Spec(
        argv=argv,
        cwd=chdir,
        umask=umask,
        setup=setup_lines(request, folder),
        output=request.output or f"{files}-{'%A_%a' if is_array else '%j'}.out",
        error=request.error,
        append=request.open_mode == "append",
        log_max=slurm.read_size(request.log_max) if request.log_max else LOG_MAX,
        torchrun=bool(request.torchrun),
        why=not request.no_why,
        profile_steps=_profile_steps(request),
        signal=_signal_before(request.signal) if request.signal else None,
        signal_first="B" in (request.signal or "").rpartition(":")[0],
        grace=GRACE if request.grace is None else slurm.check_grace(request.grace),
        every=request.every or "",
        requeue=REQUEUES if request.requeue else 0,
        requeue_on=_exit_codes(request.requeue_on) if request.requeue_on else [],
        max_fails=request.max_fails,
        max_jobs=request.max_jobs,
        array_limit=array_limit,
        singleton=singleton,
        kill_on_invalid_dep=request.kill_on_invalid_dep == "yes",
        force=bool(request.force),
        notify=hide_url(request.notify or "") or request.notify,
        comment=request.comment or "",
        notebook=request.notebook or "",
        submitted_in="" if folder == chdir else folder,
        asked=json.dumps(request.again(folder, chdir, script)),
    )
    with reading("gpus"):
        gpus, gpu_ids = choose_gpus(request, store)
    with reading("gpu_memory"):
        share = slurm.read_gpu_memory(request.gpu_memory) if request.gpu_memory else None
    if bool(request.share) != (share is not None):
        raise DistError("bad_option", "--share and --gpu-memory belong together.")
    job = Job(
        params={},
        name=request.name or os.path.basename(request.notebook or request.command[0]),
        spec=spec,
        priority=request.priority or 0,
        begin=begin,
        held=bool(request.hold),
        reason=HELD[0] if request.hold else "None",
        detail=HELD[1] if request.hold else "",
        gpus=gpus,
        gpu_ids=gpu_ids,
        share=share,
        # Cores are counted for jobs that name them, or have nothing else.
        cpus=request.cpus if request.cpus is not None else 0 if gpus else 1,
        memory=memory,
        limit=limit,
    )
    check_job(job, is_array)
    environment = chosen_variables(request)
    if request.kernel:
        with reading("kernel"):
            is_command = not request.notebook
            environment |= kernel_environment(request.kernel, environment, is_command=is_command)
    if script and script.suffix != ".py":
        text = script.read_text("utf-8", errors="replace")
        check_script(script.name, text, environment, notices)
    if not dependencies:  # a job before it could bring what is missing
        may_bring = copies, any(rows), request.torchrun, request.kernel, job.spec.setup
        check_launch(job.spec, environment, is_known=not any(may_bring))
    shown, rows, secrets = hide_secrets(environment, rows)
    if request.notify and hide_url(request.notify):
        check_url(request.notify)
        secrets.notify = request.notify
    return Submission(job, rows, tasks, dependencies, shown, secrets, request.key, copies, notices)


def _profile_steps(request: JobRequest) -> int:
    steps = request.profile_steps or 0
    if steps < 0 or (steps == 0 and request.profile_steps is not None):
        raise DistError("bad_option", "--profile-steps must be at least 1.", field="profile_steps")
    if steps and request.no_why:
        message = "--profile-steps does not work with --no-why."
        raise DistError("bad_option", message, field="profile_steps")
    return steps


def _script(request: JobRequest, folder: str) -> tuple[Path | None, list[str]]:
    """Read the directives of a script; return it, unless torchrun finds it by itself."""
    by_torchrun = bool(request.torchrun)  # from the folder where the job runs
    path = Path(folder, (request.chdir or "") if by_torchrun else "", request.command[0])
    if os.path.isfile(path) and not scripts.is_binary(path):
        given, notices = read_directives(path)
        parser = Parser(prog=request.command[0], add_help=False)
        add_job_options(parser)
        request.complete(parser.parse_args(given))
        if not request.torchrun:
            scripts.check_start(path, is_certain=not setup_lines(request, folder))
        elif not by_torchrun:  # it says so itself
            request.command = [os.path.abspath(path), *request.command[1:]]
        return None if request.torchrun else path, notices
    if "/" in request.command[0] and not os.path.exists(path):
        raise DistError("bad_script", f"{request.command[0]} does not exist.")
    if os.path.isdir(path) and ("/" in request.command[0] or request.command[0] in (".", "..")):
        raise DistError("bad_script", f"{request.command[0]} is a folder.")
    return None, []


def signal_number(name: str) -> int:
    """Return the number of a signal: ``USR1``, ``SIGUSR1`` or ``10``."""
    try:
        if name.isdecimal() and len(name) < 4:
            return signal.Signals(int(name)).value
        return signal.Signals[f"SIG{name.upper().removeprefix('SIG')}"].value
    except (KeyError, ValueError):
        message = f"“{name}” is not a signal."
        raise DistError("bad_option", message, "Such as USR1@120.") from None


def _signal_before(text: str) -> tuple[int, float]:
    letters, _, signal_at = text.rpartition(":")
    name, _, seconds = signal_at.partition("@")
    if set(letters) - {"B", "R"} or (seconds and not (seconds.isdecimal() and len(seconds) < 10)):
        raise DistError("bad_option", f"“{text}” is not a signal.", "Such as USR1@120.")
    return signal_number(name), float(seconds or 60)


def _exit_codes(text: str) -> list[int]:
    codes = [part.strip() for part in text.split(",")]
    if not all(code.isdecimal() and 0 < int(code) < 256 for code in codes):
        raise DistError("bad_option", f"“{text}” is no list of exit codes.", "Such as 75,85.")
    return [int(code) for code in codes]
