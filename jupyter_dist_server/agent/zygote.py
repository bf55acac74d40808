"""A warm zygote: a copy of an agent that has imported torch, and forks the next pools' agents.

The first agent of an environment leaves it behind. It is single-threaded, opens no CUDA, and waits
in `poll` on one socket, whose other end its owner holds: it ends as soon as that is closed.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from ..common.folder import ORDERS
from ..common.processes import ProcessRef, call_ourselves

Become = Callable[[socket.socket, list[int]], None]
"""What serves a listening socket, and holds the lease that other descriptors are."""

_MOST_PASSED = 253
"""Descriptors that one message can carry: ``SCM_MAX_FD``."""

NAME = "dist-zygote"
"""How it calls itself, where `ps` shows names."""


def leave_zygote(
    seat: socket.socket, owner: ProcessRef, listener: socket.socket, become: Become
) -> None:
    """Fork a zygote that outlives this process.

    Parameters
    ----------
    seat : socket.socket
        The zygote's end of the socket to its owner.
    owner : ProcessRef
        Whose end is the zygote's too.
    listener : socket.socket
        The agent's own, which the zygote must not keep.
    become : callable
        Turns a fork of the zygote into the agent that serves a listening socket.
    """
    between = os.fork()
    if between == 0:
        try:
            # Its parent must not be the agent, which ends all that descends from it.
            if os.fork() == 0:
                os.setsid()
                call_ourselves(NAME)
                listener.close()
                _serve(seat, owner, become)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)  # whatever happens, it must not go on as a second agent
    os.waitpid(between, 0)


def _serve(seat: socket.socket, owner: ProcessRef, become: Become) -> None:
    woken, wakes = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    ours = [seat.fileno(), woken, wakes]
    with contextlib.suppress(AttributeError, OSError):  # then the socket's end must do
        ours.append(os.pidfd_open(owner.pid))
    waiting = select.poll()
    for descriptor in (seat.fileno(), woken, *ours[3:]):
        waiting.register(descriptor, select.POLLIN)
    installed = _installed()
    agents: set[int] = set()
    _say(seat, {"ready": vars(ProcessRef.of(os.getpid()))})
    while owner.find():
        ready = {descriptor for descriptor, _ in waiting.poll()}
        if woken in ready:
            os.read(woken, 4096)
            for pid, code in _reap(agents):
                _say(seat, {"ended": pid, "code": code})
        if seat.fileno() in ready:
            message, descriptors, _, _ = socket.recv_fds(seat, 65536, _MOST_PASSED)
            if not message:
                return
            folder = Path(message.decode())
            if _installed() != installed:
                _say(seat, {"folder": str(folder), "refused": "packages have changed"})
            else:
                pid = os.fork()
                if pid == 0:
                    try:
                        _become_agent(folder, descriptors, ours, become)
                    except BaseException:
                        traceback.print_exc()
                    finally:
                        os._exit(1)  # whatever happens, it must not go on as a second zygote
                agents.add(pid)
                _say(seat, {"folder": str(folder)} | vars(ProcessRef.of(pid)))
            for descriptor in descriptors:
                os.close(descriptor)


def _say(seat: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(ConnectionError):  # the owner has gone; so shall we
        seat.send(json.dumps(message).encode())


def _reap(agents: set[int]) -> list[tuple[int, int]]:
    ended = []
    for agent in list(agents):
        pid, status = os.waitpid(agent, os.WNOHANG)
        if pid:
            agents.discard(pid)
            ended.append((pid, os.waitstatus_to_exitcode(status)))
    return ended


def _installed() -> dict[str, int]:
    """Return when the folders that modules come from last changed, as installing changes them."""
    changes = {}
    for entry in sys.path:
        with contextlib.suppress(OSError):
            changes[entry] = os.stat(entry).st_mtime_ns
    return changes


def _become_agent(
    folder: Path, descriptors: list[int], ours: list[int], become: Become
) -> NoReturn:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for descriptor in ours:
        os.close(descriptor)
    os.setsid()
    listener, log, *lease = descriptors
    for target in (1, 2):
        os.dup2(log, target)
    os.close(log)
    orders = json.loads((folder / ORDERS).read_text())
    os.environ.clear()
    os.environ.update(orders["environment"])
    os.chdir(orders["cwd"])
    become(socket.socket(fileno=listener), lease)
    os._exit(0)
