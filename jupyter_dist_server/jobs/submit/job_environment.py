"""The environment of a job: its variables, a kernel's, and the lines that bash runs first."""

from __future__ import annotations

import os
import shlex
from string import Template

from ...common.ask_from_outside import without_way_in
from ...common.errors import DistError
from ..slurm_variables import without_ours
from .job_request import JobRequest, read_export

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
    ours = without_way_in(without_ours(os.environ))
    kept = {name: value for name, value in ours.items() if not name.startswith(_NOT_EXPORTED)}
    export = read_export(request.export or "ALL")
    if export == ["NIL"]:
        chosen = {name: kept[name] for name in kept if name.startswith(("SLURM_", "SPANK_"))}
    else:
        least = ("PATH", "HOME", "USER", "LANG", "SHELL")
        chosen = {name: kept[name] for name in kept if "ALL" in export or name in least}
    for text in [*export, *(request.env or [])]:
        name, equals, value = text.partition("=")
        if equals and not name:
            raise DistError("bad_option", f"“{text}” names no variable.", "Use K=V to set one.")
        if equals:
            chosen[name] = value
        elif name in kept:  # others are passed over, as by Slurm
            chosen[name] = kept[name]
        elif text in (request.env or []):
            raise DistError("bad_option", f"There is no variable {name}.", "Use K=V to set one.")
    return chosen


def kernel_names() -> dict[str, str]:
    """Return the display names of Python kernels, by name."""
    from jupyter_client.kernelspec import KernelSpecManager  # not needed by most commands

    found = KernelSpecManager().get_all_specs()
    return {
        name: str(kernel["spec"]["display_name"])
        for name, kernel in sorted(found.items())
        if str(kernel["spec"].get("language", "")).lower() == "python"
    }


def kernel_environment(
    name: str, environment: dict[str, str], *, is_command: bool
) -> dict[str, str]:
    """Return variables that make ``python`` that of a kernel.

    `is_command`: a command needs a Python; a notebook runs in the kernel itself, of any language.
    """
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel  # as above

    from ...common.processes.kernel_python import python_of_kernelspec

    try:
        kernel = KernelSpecManager().get_kernel_spec(name)
    except NoSuchKernel:
        hint = "“jupyter kernelspec list” lists them."
        raise DistError("bad_option", f"There is no kernel {name}.", hint) from None
    changes = {key: Template(text).safe_substitute(environment) for key, text in kernel.env.items()}
    path = changes.get("PATH", environment.get("PATH", os.defpath))
    python = python_of_kernelspec(kernel.argv, path)
    if is_command and not python:
        message = f"Kernel {name} is not started by a Python program."
        raise DistError("bad_option", message, "Use --conda or --venv.")
    if python and os.path.isabs(python):
        changes["PATH"] = os.path.dirname(python) + os.pathsep + path
    return changes
