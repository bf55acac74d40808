"""Scripts and notebooks that jobs run: Python scripts where they lie, copies of all others."""

from __future__ import annotations

import codecs
import importlib.util
import os
import sys
import time
from pathlib import Path

import msgspec

from ...common.errors import DistError
from ...common.processes.python_command import python_command
from ..job_command import interpreter_of
from ..store.secret_values import hide_in_directives
from ..store.store import Store
from .job_request import JobRequest

_LONGEST_COPY = 64 * 2**20
_RUNNER = "jupyter_dist_server.jobs.runner.run_notebook"
_EXTRA = "pip install 'jupyter-dist-server[notebooks]'"


def is_binary(path: Path) -> bool:
    """Tell whether a file is a program, and no script."""
    try:
        with path.open("rb") as file:
            return b"\0" in file.read(1024)
    except OSError as error:
        raise DistError("bad_script", f"{path} cannot be read: {error.strerror}.") from error


def check_start(script: Path, *, is_certain: bool) -> None:
    """Refuse a script with DOS line breaks, or without its interpreter if that `is_certain`."""
    with script.open("rb") as file:
        line = file.readline(_LONGEST_COPY).removeprefix(codecs.BOM_UTF8)
    # Python itself reads such lines.
    if line.endswith(b"\r\n") and (line.startswith(b"#!") or script.suffix != ".py"):
        message = f"{script.name} has DOS line breaks (\\r\\n)."
        raise DistError("bad_script", message, f"Convert it: sed -i 's/\\r$//' {script.name}")
    (needed, *_) = interpreter_of(str(script)) or [""]
    if is_certain and os.path.isabs(needed) and not os.path.exists(needed):
        message = f"The interpreter {needed} of {script.name} does not exist."
        raise DistError("bad_script", message, "Change its first line.")


def command_in_place(script: Path) -> list[str]:
    """Return what runs a Python script where it lies, so that it can import its neighbours."""
    return [*(interpreter_of(str(script)) or ["python"]), os.path.abspath(script)]


def keep_copy(store: Store, script: Path, is_script: bool) -> str:
    """Copy a file, so that what runs is what was submitted; return the copy's path."""
    try:
        with script.open("rb") as file:
            body = file.read(_LONGEST_COPY + 1)
    except OSError as error:
        raise DistError("bad_script", f"{script} cannot be read: {error.strerror}.") from error
    if len(body) > _LONGEST_COPY:
        raise DistError("bad_script", f"{script} is longer than 64 MiB.")
    if is_script:
        body = body.removeprefix(codecs.BOM_UTF8)
    if is_script and not body.startswith(b"#!"):
        body = b"#!/bin/bash\n" + body
    if is_script:
        body = hide_in_directives(body)
    folder = store.folder / "scripts"
    folder.mkdir(mode=0o700, exist_ok=True)
    copy = folder / f"{time.time_ns()}-{script.name}"
    with os.fdopen(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700), "wb") as file:
        file.write(body)
    return str(copy)


def notebook_command(request: JobRequest, folder: str) -> tuple[list[str], Path]:
    """Return the command that runs a notebook, and the notebook, of which a copy is to run."""
    assert request.notebook
    if request.command:
        raise DistError("bad_option", "A job runs a command or a notebook, not both.")
    path = Path(folder, request.notebook)
    if not os.path.isfile(path):
        raise DistError("bad_script", f"{request.notebook} does not exist.")
    _check_notebook(path)
    for text in request.parameter or []:
        name, equals, _ = text.partition("=")
        if not (name.isidentifier() and equals):
            message = f"-P takes NAME=VALUE, not “{text}”."
            raise DistError("bad_parameter", message, "Such as -P lr=0.1.")
    # An environment that is activated first has a Python of its own.
    is_other = request.conda or request.venv or request.module or request.setup
    python = "python" if is_other else sys.executable
    if not is_other and importlib.util.find_spec("papermill") is None:
        message = "papermill, which runs notebooks, is not installed."
        raise DistError("papermill_missing", message, f"Run {_EXTRA}, or choose --venv or --conda.")
    is_array = request.array or request.param or request.param_file
    output = request.output_notebook or path.stem + ("-%A_%a.ipynb" if is_array else "-%j.ipynb")
    given = [
        *(request.parameter or []),
        *([f"--kernel={request.kernel}"] if request.kernel else []),
    ]
    command = [*python_command(python, _RUNNER), str(path), output, *given]
    return command, path


def _check_notebook(path: Path) -> None:
    """Refuse a file that is no JSON object."""
    try:
        msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw])
    except OSError as error:
        raise DistError("bad_script", f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # of msgspec, too
        message = f"{path.name} is not a notebook: {error}."
        hint = "A notebook is a file.ipynb; for a script, use jdist submit."
        raise DistError("bad_script", message, hint) from error
