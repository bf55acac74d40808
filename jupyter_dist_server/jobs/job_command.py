"""What a job's process is: its command, its environment, and where its output goes."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ..common.ask_from_outside import PROFILE_STEPS, way_in
from ..common.files.shared_folder import FOLDER
from ..common.users import name_of
from .slurm_variables import slurm_variables
from .store.job import Job, Spec
from .store.store import Store
from .variables import GPUS, JOB, KERNEL_FOLDER

_TORCHRUN_LOGS = {"PET_LOG_DIR", "PET_REDIRECTS", "PET_TEE"}
"""Variables that make torchrun keep the output of ranks: their user wants to read it."""
_PATTERN = re.compile(r"%(\d*)([%jJAaxuN])")
_INTERPRETER = re.compile(rb"#![ \t]*([^ \t\n]+)[ \t]*([^\n]*)")
_LONGEST_FOLDER = 85
"""Bytes of a folder's path; paths of sockets in it are limited to 107."""
_OUTPUT = 4
"""The index of the output notebook: after Python, its two arguments, and the copy."""


def job_command(job: Job) -> list[str]:
    """Return the command of a job with its parameters, as a list that no shell splits."""
    command = [with_parameters(word, job.params) for word in job.spec.argv]
    if job.spec.torchrun:
        ranks = max(1, job.gpus)
        # A rendezvous of its own on a free port, so that jobs do not meet.
        start = ["python", "-m", "torch.distributed.run", "--standalone"]
        command = [*start, f"--nproc-per-node={ranks}", *command]
    if job.spec.setup:
        script = "\n".join(["set -e", *job.spec.setup, 'exec "$@"'])
        command = ["bash", "-c", script, "jdist", *command]
    return command


def interpreter_of(path: str) -> list[str]:
    """Return the program of a script's ``#!`` line and its argument; empty without such a line.

    As for Linux, all that follows the program is one argument.
    """
    with open(path, "rb") as file:
        found = _INTERPRETER.match(file.read(256))  # Linux reads no more, either
    words = [found[1], found[2].rstrip()] if found else []
    return [os.fsdecode(word) for word in words if word]


def find_program(name: str, environment: Mapping[str, str], cwd: str) -> str | None:
    """Return the file of a job's program, from its folder and PATH.

    Not by shutil, which loads compressors into every runner, and takes long to import.
    """
    folders = [""] if "/" in name else os.get_exec_path(environment)
    paths = (os.path.join(cwd, folder, name) for folder in folders)
    return next((one for one in paths if os.path.isfile(one) and os.access(one, os.X_OK)), None)


def with_parameters(word: str, params: dict[str, str]) -> str:
    """Replace ``{name}`` by the parameter; other braces stay."""
    if not params:
        return word
    names = "|".join(map(re.escape, params))
    return re.sub(rf"\{{({names})\}}", lambda match: params[match[1]], word)


def with_secrets(job: Job, store: Store) -> Job:
    """Return a job with the parameters that are hidden."""
    return Job.of(vars(job) | {"params": store.secrets(job).params_of(job.params)})


def job_environment(job: Job, store: Store) -> dict[str, str]:
    """Return a job's environment: as it was submitted, with its GPUs and its names."""
    environment = store.environment(job) | store.secrets(job).environment
    environment |= {
        JOB: job.run_name,
        "JDIST_JOB_ID": str(job.id),
        "JDIST_JOB_NAME": job.name,
        "JDIST_ATTEMPT": str(job.attempt),
        "JDIST_GPUS": str(job.gpus),
        "PYTHONUNBUFFERED": "1",
    }
    if job.array is not None:
        environment["JDIST_ARRAY_JOB_ID"] = str(job.array)
        environment["JDIST_ARRAY_TASK_ID"] = str(job.task)
    if job.gpus:  # pools in it lease its GPUs from each other, as it has them already
        environment[FOLDER] = str(_folder("leases", job, store))
        environment[GPUS] = ",".join(job.gpu_uuids)
    if job.spec.torchrun and not environment.keys() & _TORCHRUN_LOGS:
        environment["PET_LOG_DIR"] = str(_folder("torchrun", job, store))
    if job.spec.notebook:
        environment[KERNEL_FOLDER] = str(_short_folder("kernel", job, environment))
    if job.spec.why:
        environment |= way_in(evidence_folder(job, environment), environment)
    if job.spec.profile_steps:
        environment[PROFILE_STEPS] = str(job.spec.profile_steps)
    mask = _mask(job, store)
    environment |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": mask}
    if "SLURM_JOB_ID" not in environment:  # else the queue is inside an allocation
        environment |= slurm_variables(job, store, mask)
    return environment


def _mask(job: Job, store: Store) -> str:
    """Return the numbers of the job's GPUs, as pools have them, where these are certain."""
    from ..gpus.cuda_visible_devices import counts_differ, write_mask
    from .gpu_list import kept_gpus

    found = kept_gpus(store.folder)
    by_uuid = {gpu.uuid: gpu for gpu in found.gpus} if found and not counts_differ(found) else {}
    if by_uuid.keys() >= set(job.gpu_uuids):
        return write_mask((by_uuid[uuid] for uuid in job.gpu_uuids), by_uuid=False)
    return ",".join(job.gpu_uuids)


def _folder(name: str, job: Job, store: Store) -> Path:
    """Return a folder of one start of a job: its end spares that of the next."""
    return store.folder / name / job.run_name


def _short_folder(kind: str, job: Job, environment: Mapping[str, str]) -> Path:
    """Return a folder for sockets, whose paths must be short."""
    temporary = environment.get("TMPDIR", "")
    if not (os.path.isabs(temporary) and os.access(temporary, os.W_OK | os.X_OK)):
        temporary = "/tmp"
    name = f"{kind}-{job.id}-{job.launch}"
    is_long = len(os.fsencode(f"{temporary}/{name}")) > _LONGEST_FOLDER
    return Path("/tmp" if is_long else temporary, name)


def evidence_folder(job: Job, environment: Mapping[str, str]) -> Path:
    """Return the folder in which the processes of a job tell why they wait."""
    return _short_folder("why", job, environment)


def _folders(job: Job, store: Store) -> list[Path]:
    """Return the folders that exist while a job runs."""
    found = [_folder("leases", job, store)] if job.gpus else []
    found += [_folder("torchrun", job, store)] if job.spec.torchrun else []
    if job.spec.notebook:
        found.append(_short_folder("kernel", job, store.environment(job)))
    return found


def make_folders(job: Job, store: Store) -> None:
    """Make the folders that a job needs while it runs."""
    for folder in _folders(job, store):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if job.spec.why:
        with contextlib.suppress(OSError):  # it runs without, too
            evidence_folder(job, store.environment(job)).mkdir(mode=0o700)


def remove_folders(job: Job, store: Store) -> None:
    """Remove the folders that a job needed while it ran, as far as they exist."""
    for folder in [*_folders(job, store), evidence_folder(job, store.environment(job))]:
        # Not by shutil, which loads compressors into every runner.
        for inner, _, files in os.walk(folder, topdown=False):
            for name in files:
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(inner, name))
            with contextlib.suppress(OSError):
                os.rmdir(inner)


def log_paths(job: Job) -> tuple[str, str]:
    """Return the files of a job's output and errors; ``%j`` and so on are Slurm's."""
    output = _path(job, job.spec.output)
    return output, output if job.spec.error is None else _path(job, job.spec.error)


def profile_path(job: Job) -> str:
    """Return the file of the trace of a job whose steps are profiled."""
    return _path(job, f"profile-job-{job.label}.json.gz")


def output_notebook(job: Job) -> str | None:
    """Return the notebook that a job writes, if it runs one."""
    if not job.spec.notebook:
        return None
    return _path(job, with_parameters(job.spec.argv[_OUTPUT], job.params))


def with_name(spec: Spec, name: str) -> Spec:
    """Replace ``%x`` in the names of a job's files by its name."""
    argv = list(spec.argv)
    if spec.notebook:
        argv[_OUTPUT] = _with_name(argv[_OUTPUT], name)
    error = spec.error and _with_name(spec.error, name)
    output = _with_name(spec.output, name)
    return msgspec.structs.replace(spec, argv=argv, output=output, error=error)


def _with_name(pattern: str, name: str) -> str:
    def value(match: re.Match[str]) -> str:
        if match[2] != "x":
            return match[0]
        return fill_pattern(match[0], "", "", "", name).replace("%", "%%")

    return _PATTERN.sub(value, pattern)


def _path(job: Job, pattern: str) -> str:
    array = str(job.array if job.array is not None else job.id)
    task = str(job.task if job.task is not None else 0)
    return os.path.join(job.spec.cwd, fill_pattern(pattern, str(job.id), array, task, job.name))


def fill_pattern(pattern: str, id: str, array: str, task: str, name: str) -> str:
    """Return a file name from a pattern such as ``%x-%j.out``."""
    values = {"%": "%", "j": id, "J": id, "A": array, "a": task, "x": name.replace("/", "_")}
    values |= {"u": name_of(os.getuid()), "N": os.uname().nodename}
    return _PATTERN.sub(lambda match: values[match[2]].zfill(int(match[1] or 0)), pattern)
