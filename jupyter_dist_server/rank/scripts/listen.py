"""Answers whoever asks a process of a script why it waits, in a thread of its own.

All that the thread needs is imported here, by the main thread: a child that is forked while another
thread imports could not import any more.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from pathlib import Path

import msgspec

from ...common.ask_from_outside import PROFILE_STEPS, answer_socket, recorder_socket
from ...common.patience import patience
from ...common.protocol.ranks.script_messages import ScriptReply
from ..torch_internals import serve_recorded
from ..waits.flight_recorder import quiet_stderr
from .answer import answer

_kept: list[object] = []  # for as long as the process lives


def listen(folder: str, is_rank: bool) -> None:
    """Begin to answer; `is_rank`: torchrun has started this process."""
    pid = os.getpid()
    path = answer_socket(Path(folder), pid)
    path.unlink(missing_ok=True)  # of a process that had this pid, or has become this one
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen(64)
    arguments = listening, is_rank
    threading.Thread(target=_serve, args=arguments, name="jdist why", daemon=True).start()
    steps = os.environ.get(PROFILE_STEPS, "")
    if steps.isdecimal():
        from .profile_steps import StepProfiler  # not above: few jobs are profiled

        _kept.append(StepProfiler(Path(folder), int(steps)))
    if is_rank and "torch._C._distributed_c10d" in sys.modules:
        recorder = recorder_socket(Path(folder), pid)
        recorder.unlink(missing_ok=True)
        with quiet_stderr():
            _kept.append(serve_recorded(str(recorder)))


def _serve(listening: socket.socket, is_rank: bool) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:  # the script has closed what it does not know
            return
        with contextlib.suppress(OSError), connection:  # who asked may have left
            connection.settimeout(patience.node)
            asked = connection.recv(64)
            try:
                said = answer(asked, is_rank)
            except Exception as error:  # of torch's internals
                failure = f"{type(error).__name__}: {error}"
                said = msgspec.json.encode(ScriptReply(failure=failure))
            connection.sendall(said)
