"""The process that reads NVML on request. A dispatcher starts it first, so this imports little."""

from __future__ import annotations

import os
import signal
import sys
import time

from ...common.files.own_files import own
from ...common.processes.python_command import python_command

_MODULE = "jupyter_dist_server.gpus.sampler.sampler_process"
_SETTINGS = '{"on_request": true}'
"""`SamplerSettings` as JSON: importing that takes longer than all else here."""


class ReadingProcess:
    """Reads at once, and then on request; `OSError` if it cannot be started.

    It does without `subprocess`, which all runners would inherit.
    """

    def __init__(self) -> None:
        theirs, requests = os.pipe()
        self.requests = own(requests)
        """The pipe for requests; the process ends when it is closed."""
        answers, said = os.pipe()
        self.answers = own(answers)
        command = [*python_command(sys.executable, _MODULE), _SETTINGS]
        pipes = [(os.POSIX_SPAWN_DUP2, theirs, 0), (os.POSIX_SPAWN_DUP2, said, 1)]
        try:
            self.pid = os.posix_spawn(
                command[0], command, os.environ, file_actions=pipes, setsid=True
            )
        finally:
            os.close(theirs)
            os.close(said)
        self._ended = False

    def has_ended(self, within: float = 0.0) -> bool:
        """Tell whether it has ended, or ends within some seconds."""
        until = time.monotonic() + within
        while not self._ended:
            try:
                self._ended = os.waitpid(self.pid, os.WNOHANG)[0] == self.pid
            except ChildProcessError:  # somebody else has waited for it
                self._ended = True
            if not self._ended:
                if time.monotonic() >= until:
                    return False
                time.sleep(0.005)
        return True

    def kill(self) -> None:
        """Kill it."""
        if not self._ended:
            os.kill(self.pid, signal.SIGKILL)
        self.requests.close()
        self.answers.close()
