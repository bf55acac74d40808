"""The environments of Jupyter kernels, for jobs."""

from __future__ import annotations

import os
import sys
from string import Template

from ...common.errors import DistError


def kernel_names() -> dict[str, str]:
    """Return what kernels there are: the names that people see, by name."""
    from jupyter_client.kernelspec import KernelSpecManager  # not needed by most commands

    found = KernelSpecManager().get_all_specs()
    return {name: str(kernel["spec"]["display_name"]) for name, kernel in sorted(found.items())}


def kernel_environment(name: str, environment: dict[str, str]) -> dict[str, str]:
    """Return variables with which ``python`` is that of a kernel.

    Parameters
    ----------
    name : str
        Of the kernel.
    environment : dict
        The variables of the job.

    Raises
    ------
    DistError
        If there is no such kernel.
    """
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        kernel = KernelSpecManager().get_kernel_spec(name)
    except NoSuchKernel:
        raise DistError(
            "bad_option", f"There is no kernel {name}.", "“jupyter kernelspec list” lists them."
        ) from None
    changes = {key: Template(text).safe_substitute(environment) for key, text in kernel.env.items()}
    python = kernel.argv[0]
    if python.startswith("python"):  # a plain one is our own, as for jupyter_client
        python = sys.executable
    if os.path.isabs(python):
        path = changes.get("PATH", environment.get("PATH", os.defpath))
        changes["PATH"] = os.path.dirname(python) + os.pathsep + path
    return changes
