"""Runs a notebook in a job, by papermill; the output is saved after each cell.

Arguments: the notebook, the pattern of the output's name, parameters as ``NAME=VALUE``, and perhaps
``--kernel=NAME``.
"""

from __future__ import annotations

import ast
import os
import signal
import sys
import tempfile
from typing import Any

from ...common.protocol.jupyter_messages import NO_REDRAW
from ..job_command import fill_pattern
from ..variables import KERNEL_FOLDER

_LONGEST = 90
"""Bytes of a folder for sockets; with their names they must fit into 103 on macOS."""
_WORDS = {"true": True, "false": False, "none": None, "null": None}


def read_value(text: str) -> Any:
    """Return a parameter's value: a Python literal or, if it is none, the text itself."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _kernel_manager(folder: str) -> type[Any]:
    """Return a class that starts kernels; ipykernel's listen on sockets in a private folder.

    By default they listen on TCP, where all users can connect, and each log begins with ipykernel's
    warning of that.
    """
    from jupyter_client.manager import AsyncKernelManager

    class KernelManager(AsyncKernelManager):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.connection_file = os.path.join(folder, "kernel.json")
            # Kernels of other languages may know TCP only.
            spec = self.kernel_spec
            if spec and "ipykernel_launcher" in spec.argv and len(os.fsencode(folder)) < _LONGEST:
                self.transport, self.ip = "ipc", os.path.join(folder, "kernel")

    return KernelManager


def main() -> None:
    """Run the notebook; end with exit code 1 if a cell fails."""
    import papermill  # an extra

    # A cancel ends the kernel, too; what the cell has printed until then is still saved.
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    notebook, pattern, *given = sys.argv[1:]
    job = os.environ["JDIST_JOB_ID"]
    array, task = os.environ.get("JDIST_ARRAY_JOB_ID", job), os.environ.get("JDIST_ARRAY_TASK_ID")
    name = os.environ["JDIST_JOB_NAME"]
    output = os.path.abspath(fill_pattern(pattern, job, array, task or "0", name))
    print(f"Writing {output}")
    os.environ[NO_REDRAW] = "1"  # the log takes streams only
    named = dict(one.split("=", 1) for one in given)
    kernel = named.pop("--kernel", None)
    parameters = {name: read_value(text) for name, text in named.items()}
    # A runner of an older version makes none.
    folder = os.environ.get(KERNEL_FOLDER) or tempfile.mkdtemp(prefix="kernel-")
    try:
        papermill.execute_notebook(
            notebook,
            output,
            parameters,
            kernel_name=kernel,
            progress_bar=False,
            stdout_file=sys.stdout,
            stderr_file=sys.stderr,
            kernel_manager_class=_kernel_manager(folder),
        )
    except papermill.PapermillExecutionError as error:
        sys.exit(f"Cell {error.exec_count} failed: {error.ename}: {error.evalue}")
    except Exception as error:  # no kernel of that name, or it died
        sys.exit(f"The notebook failed: {type(error).__name__}: {error}")
