"""Notebooks as jobs."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import msgspec

from ....common.errors import DistError
from ....common.processes.python_command import python_command
from ..options.job_request import JobRequest

_RUNNER = "jupyter_dist_server.jobs.runner.run_notebook"
_EXTRA = "pip install 'jupyter-dist-server[notebooks]'"


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
            raise DistError(
                "bad_parameter", f"-P takes NAME=VALUE, not “{text}”.", "Such as -P lr=0.1."
            )
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
