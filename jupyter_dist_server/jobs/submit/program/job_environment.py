"""The environment of a job: its variables, and the lines that bash runs first."""

from __future__ import annotations

import os
import shlex

from ....common.errors import DistError
from ..options.job_request import JobRequest

_NOT_EXPORTED = ("JPY_", "JUPYTER_TOKEN", "JUPYTERHUB_API_TOKEN", "JUPYTER_DIST_JOB", "JDIST_")
"""Variables of the submitting process that are not for a job."""


def setup_lines(request: JobRequest, folder: str) -> list[str]:
    """Return the lines of bash that precede the command."""
    lines = []
    if request.module:
        lines.append("module load " + " ".join(map(shlex.quote, request.module)))
    if request.conda:
        lines += ['eval "$(conda shell.bash hook)"', f"conda activate {shlex.quote(request.conda)}"]
    if request.venv:
        venv = os.path.abspath(os.path.join(folder, request.venv))
        if not os.path.isfile(os.path.join(venv, "bin", "activate")):
            message = f"{venv} is no virtual environment: there is no bin/activate in it."
            raise DistError("bad_option", message, "Make one: python -m venv FOLDER", "venv")
        lines.append(f". {shlex.quote(venv)}/bin/activate")
    return lines + (request.setup or [])


def chosen_variables(request: JobRequest) -> dict[str, str]:
    """Return the variables that ``--export`` and ``--env`` choose from those of this process."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_EXPORTED)}
    export = (request.export or "ALL").split(",")
    least = ("PATH", "HOME", "USER", "LANG", "SHELL")
    chosen = {name: kept[name] for name in kept if "ALL" in export or name in least}
    for text in [*export, *(request.env or [])]:
        name, equals, value = text.partition("=")
        if equals and not name:
            raise DistError("bad_option", f"“{text}” names no variable.", "Use K=V to set one.")
        if equals:
            chosen[name] = value
        elif name in kept:
            chosen[name] = kept[name]
        elif text not in ("ALL", "NONE"):
            raise DistError("bad_option", f"There is no variable {name}.", "Use K=V to set one.")
    return chosen
