"""Which Python interpreter a Jupyter kernel uses, by its process or its kernelspec."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass

_OWN = ("python", "python3", f"python{sys.version_info[0]}.{sys.version_info[1]}")
"""Names that jupyter_client takes for its own interpreter."""
_CONDA_RUNNER = "nb_conda_kernels.runner"
"""A module that is given conda's prefix, that of an environment, and a command to run there."""


@dataclass(frozen=True)
class RunningKernel:
    """The process of a kernel."""

    pid: int
    python: str
    environment: dict[str, str]


def running_kernel(pid: int, connection_file: str) -> RunningKernel | None:
    """Find the process of a kernel; `None` if none is known to be Python.

    `pid` is the process that its kernelspec has started: the kernel, or, as with ``uv run``, its
    parent. One of the kernel's arguments ends with `connection_file`.
    """
    import psutil  # not above: submissions of jobs do without

    try:
        started = psutil.Process(pid)
        family = [started, *started.children(recursive=True)]
        commands = {one.pid: one.cmdline() for one in family}
        kernels = [
            one
            for one in family
            if _runs_kernel(commands[one.pid], connection_file)
            and commands[one.pid] != commands.get(one.ppid())  # or it is a fork of the kernel
        ]
        if not kernels:
            return None
        # What starts it has its command among its own words, as "conda run".
        kernel = max(kernels, key=psutil.Process.create_time)
        command, environment = commands[kernel.pid][0], kernel.environ()
        # As Python finds `sys.executable`; the file that runs is not that of a virtual environment.
        path = environment.get("PATH", os.defpath)
        given = os.path.join(kernel.cwd(), command) if os.path.dirname(command) else command
        python = shutil.which(given, path=path) or kernel.exe()
        return RunningKernel(kernel.pid, python, environment)
    except psutil.Error:  # it ends just now, or is another user's
        return None


def _runs_kernel(command: Sequence[str], connection_file: str) -> bool:
    is_given = any(word.endswith(connection_file) for word in command)
    return is_given and _is_python(command[0])


def python_of_kernelspec(argv: Sequence[str], path: str) -> str | None:
    """Return the interpreter that a kernelspec starts, from `path`; `None` if that is not known."""
    words = list(argv)
    if _CONDA_RUNNER in words:
        prefix, *words = words[words.index(_CONDA_RUNNER) + 2 :] or [""]
        path = os.path.join(prefix, "bin") + os.pathsep + path
    elif os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if "=" not in word and not word.startswith("-")]
    elif words[0] in _OWN:
        return sys.executable
    if not words or not _is_python(words[0]):
        return None
    return shutil.which(words[0], path=path) or words[0]


def _is_python(program: str) -> bool:
    return os.path.basename(program).startswith(("python", "pypy"))
