"""The environments of Jupyter kernels, for jobs."""

from __future__ import annotations

import os
from string import Template

from ....common.errors import DistError
from ....common.processes.kernel_python import python_of_kernelspec


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
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        kernel = KernelSpecManager().get_kernel_spec(name)
    except NoSuchKernel:
        raise DistError(
            "bad_option", f"There is no kernel {name}.", "“jupyter kernelspec list” lists them."
        ) from None
    changes = {key: Template(text).safe_substitute(environment) for key, text in kernel.env.items()}
    path = changes.get("PATH", environment.get("PATH", os.defpath))
    python = python_of_kernelspec(kernel.argv, path)
    if is_command and not python:
        raise DistError(
            "bad_option",
            f"Kernel {name} is not started by a Python program.",
            "Use --conda or --venv.",
        )
    if python and os.path.isabs(python):
        changes["PATH"] = os.path.dirname(python) + os.pathsep + path
    return changes
