"""The job's own process, from the fork to its command."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import signal
from typing import NoReturn

from ..job_command import find_program, interpreter_of

_PDEATHSIG = 1
_COPY = re.compile(r"^.*/scripts/\d{19,}-")
"""What precedes the name of a script in the name of its copy."""


def become_job(
    waits: int, out: int, err: int, refusal: int, cwd: str, argv: list[str], env: dict[str, str]
) -> NoReturn:
    """Run the job's command in this process, once there is a byte to read."""
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        signal.set_wakeup_fd(-1)
        for name in ("CHLD", "HUP", "INT", "PIPE", "TERM", "USR1"):
            signal.signal(signal.Signals[f"SIG{name}"], signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDONLY)
        if not os.read(waits, 1):
            os._exit(0)
        for source, target in ((null, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        os.chdir(cwd)
        os.execvpe(argv[0], argv, env)
    except BaseException as error:
        os.write(refusal, _why(error, cwd, argv[0], env).encode(errors="replace"))
    os._exit(127)


def _why(error: BaseException, cwd: str, program: str, environment: dict[str, str]) -> str:
    if not isinstance(error, OSError):
        return f"{program}: {error}"
    if error.filename == cwd:
        return f"{cwd}: {error.strerror}."
    name = _COPY.sub("", program)
    if error.errno not in (errno.ENOENT, errno.ENOTDIR):
        return f"{name} cannot be started: {error.strerror}."
    if (found := find_program(program, environment, cwd)) is None:
        there_is_none = f"There is no program {program} in PATH."
        return f"{name} does not exist." if "/" in program else there_is_none
    # The kernel says the same of a file and of what is to run it.
    if needed := interpreter_of(found):
        return f"The interpreter {needed[0]} of {name} does not exist."
    return f"The dynamic loader of {name} does not exist."
