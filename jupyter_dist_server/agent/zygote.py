"""The zygote: a process that has imported torch, and forks the agents of pools.

The owner of the pools starts one for each environment, before its first pool. It is
single-threaded, does not open CUDA, and waits in `poll` on one socket to the owner: it ends as soon
as that is closed. If a fork is not safe, or the owner keeps no zygote, it becomes the agent itself.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import NoReturn

import msgspec
import psutil

from ..common.pool_folder import ORDERS
from ..common.processes.process_ref import ProcessRef, call_ourselves
from ..common.protocol.agents import zygote_messages as messages
from ..common.protocol.failure_reason import Reason

_LOG = logging.getLogger(__name__)
_MOST_PASSED = 253
"""Descriptors that one message can carry: ``SCM_MAX_FD``."""

NAME = "dist-zygote"
"""Its process name, as `ps` shows it."""


class Zygote:
    """State of the zygote; a `failure` is why torch cannot be imported, for an agent to report."""

    def __init__(self, requests: socket.socket, owner: ProcessRef, failure: Reason | None) -> None:
        self._requests = requests
        self._owner = owner
        self._failure = failure
        self._forks = sys.platform == "linux" and psutil.Process().num_threads() == 1
        self._installed = _installed()
        self._agents: set[int] = set()
        self._woken, self._wakes = os.pipe()
        self._ours = [requests.fileno(), self._woken, self._wakes]

    def run(self) -> None:
        """Serve until the owner has ended."""
        for end in (self._woken, self._wakes):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakes)
        with contextlib.suppress(AttributeError, OSError):  # then the socket's end must do
            self._ours.append(os.pidfd_open(self._owner.pid))
        waiting = select.poll()
        for descriptor in (self._requests.fileno(), self._woken, *self._ours[3:]):
            waiting.register(descriptor, select.POLLIN)
        self._say(messages.ZygoteReady())
        while self._owner.find():
            ready = {descriptor for descriptor, _ in waiting.poll()}
            if self._woken in ready:
                os.read(self._woken, 4096)
                for pid, code in self._reap():
                    self._say(messages.AgentExited(pid, code))
            if self._requests.fileno() in ready:
                message, descriptors, _, _ = socket.recv_fds(self._requests, 65536, _MOST_PASSED)
                if not message:
                    return
                self._take(message, descriptors)
                for descriptor in descriptors:
                    os.close(descriptor)

    def _take(self, message: bytes, descriptors: list[int]) -> None:
        try:
            request = messages.decode_start(message)
        except ValueError as error:  # the agents of other pools are still to be started
            _LOG.error("The zygote was asked for something unknown: %s", error)
        else:
            self._answer(request, descriptors)

    def _answer(self, request: messages.StartAgent, descriptors: list[int]) -> None:
        folder = request.folder
        if not (request.stay and self._forks) or self._failure:
            self._say(messages.AgentStarted(folder, ProcessRef.of(os.getpid()), itself=True))
            self._become_agent(Path(folder), descriptors)
        if _installed() != self._installed:
            self._say(messages.ForkRefused(folder, "packages have changed"))
            return
        pid = os.fork()
        if pid == 0:
            self._become_agent(Path(folder), descriptors)
        self._agents.add(pid)
        self._say(messages.AgentStarted(folder, ProcessRef.of(pid), itself=False))

    def _become_agent(self, folder: Path, descriptors: list[int]) -> NoReturn:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for descriptor in self._ours:
                os.close(descriptor)
            if os.getsid(0) != os.getpid():
                os.setsid()
            listener, log, *lease = descriptors
            for target in (1, 2):
                os.dup2(log, target)
            os.close(log)
            orders = msgspec.json.decode((folder / ORDERS).read_bytes(), type=messages.AgentOrders)
            os.environ.clear()
            os.environb.update(orders.environment)
            os.chdir(orders.cwd)
            from .serve import serve

            serve(socket.socket(fileno=listener), lease, self._failure)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)  # whatever happens, it must not go on as a second zygote

    def _say(self, news: messages.ZygoteNews) -> None:
        with contextlib.suppress(ConnectionError):  # the owner has gone; so shall we
            self._requests.send(msgspec.json.encode(news))

    def _reap(self) -> list[tuple[int, int]]:
        ended = []
        for agent in list(self._agents):
            pid, status = os.waitpid(agent, os.WNOHANG)
            if pid:
                self._agents.discard(pid)
                ended.append((pid, os.waitstatus_to_exitcode(status)))
        return ended


def _installed() -> dict[str, int]:
    """Return when folders of modules last changed, as they do when packages are installed."""
    changes = {}
    for entry in sys.path:
        with contextlib.suppress(OSError):
            changes[entry] = os.stat(entry).st_mtime_ns
    return changes


def main() -> None:
    """Run a zygote; the argument holds the descriptor of its socket, and its owner."""
    call_ourselves(NAME)  # before the imports, which take a while
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from .ranks.start_ranks import preload

    orders = msgspec.json.decode(sys.argv[1], type=messages.ZygoteOrders)
    Zygote(socket.socket(fileno=orders.socket), orders.owner, preload()).run()
