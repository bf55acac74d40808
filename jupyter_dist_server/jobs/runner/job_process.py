"""The job's own process, from the fork to its command."""

from __future__ import annotations

import ctypes
import os
import signal
from typing import NoReturn

_PDEATHSIG = 1


def become_job(
    waits: int,
    out: int,
    err: int,
    refusal: int,
    cwd: str,
    command: list[str],
    environment: dict[str, str],
) -> NoReturn:
    """Run the job's command in this process, once there is a byte to read."""
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDONLY)
        if not os.read(waits, 1):
            os._exit(0)
        for source, target in ((null, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        os.chdir(cwd)
        os.execvpe(command[0], command, environment)
    except BaseException as error:
        os.write(refusal, f"{command[0]}: {error}".encode(errors="replace"))
    os._exit(127)
