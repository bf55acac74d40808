"""The warm zygotes of one owner, by environment: a second pool need not import torch again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import sys
from pathlib import Path
from typing import Any

import psutil

from ..common.processes import ProcessRef
from .agent_process import AgentProcess

_LOG = logging.getLogger(__name__)

Key = tuple[str, frozenset[tuple[str, str]]]
"""An interpreter and the variables that what it imports may depend on."""

DEFAULT_KEEP_WARM = 900.0
"""Seconds for which zygotes are kept while no pool runs."""
_FORK_PATIENCE = 3.0
"""Seconds within which a zygote forks an agent; it takes milliseconds."""
_MOST = 2
"""Zygotes that one owner keeps; each holds an environment's torch in memory."""
_CHANGING = frozenset(
    ["CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "JPY_SESSION_NAME", "OLDPWD", "PWD", "SHLVL", "_"]
)
"""Variables that differ between notebooks, and that nothing looks at while it is imported."""


def key_of(python: str, environment: dict[str, str]) -> Key:
    """Return what two pools must have in common to come from one zygote."""
    kept = ((name, value) for name, value in environment.items() if name not in _CHANGING)
    return python, frozenset(kept)


class Zygotes:
    """The zygotes of one owner.

    Parameters
    ----------
    keep_warm : float
        Seconds for which they are kept while no pool runs; 0 is for having none.
    """

    def __init__(self, keep_warm: float) -> None:
        self._keep_warm = keep_warm
        self._known: dict[Key, Zygote] = {}
        self._end: asyncio.TimerHandle | None = None

    def of(self, key: Key) -> Zygote | None:
        """Return the zygote of an environment, if it is warm."""
        zygote = self._known.get(key)
        return zygote if zygote and zygote.ready and not zygote.gone else None

    def expect(self, key: Key) -> Zygote | None:
        """Return a new one, for an agent to leave behind, if none is known or on its way."""
        known = self._known.get(key)
        if not self._keep_warm or sys.platform != "linux" or (known and not known.gone):
            return None
        self._known = {key: zygote for key, zygote in self._known.items() if not zygote.gone}
        while len(self._known) >= _MOST:
            self._known.pop(next(iter(self._known))).retire()
        self._known[key] = Zygote()
        return self._known[key]

    def set_idle(self, idle: bool) -> None:
        """Note whether no pool of this owner runs; it is then a matter of time."""
        if self._end:
            self._end.cancel()
            self._end = None
        if idle and self._known:
            self._end = asyncio.get_running_loop().call_later(self._keep_warm, self.drop)

    def drop(self) -> None:
        """End all of them; agents that they have forked go on."""
        for zygote in self._known.values():
            zygote.retire()
        self._known.clear()

    def close(self) -> None:
        """End all of them at once; nobody asks any more how their agents ended."""
        for zygote in self._known.values():
            zygote.close()
        self._known.clear()


class Zygote:
    """The owner's end of one zygote."""

    def __init__(self) -> None:
        self.ready = False
        self.gone = False
        self._retired = False
        self._process: ProcessRef | None = None
        self._asked: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._exits: dict[int, asyncio.Future[int | None]] = {}
        self._socket, self.seat = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        asyncio.get_running_loop().add_reader(self._socket, self._on_message)

    async def fork(self, folder: Path, passed: list[int]) -> AgentProcess | None:
        """Let the zygote fork an agent; `None` if it cannot, or does not answer.

        The agent is passed the descriptors of its listening socket, its log, and its lease.
        """
        answer = self._asked[str(folder)] = asyncio.get_running_loop().create_future()
        try:
            socket.send_fds(self._socket, [str(folder).encode()], passed)
            said = await asyncio.wait_for(answer, _FORK_PATIENCE)
        except OSError:  # killed a moment ago
            self.close()
            return None
        except asyncio.TimeoutError:  # killed: it must not fork a second agent if it goes on
            _LOG.warning("A zygote did not respond for %g s and was killed", _FORK_PATIENCE)
            self.close()
            return None
        finally:
            self._asked.pop(str(folder), None)
        if "refused" in said:
            self.retire()
            return None
        process = ProcessRef(said["pid"], said["start_ticks"])
        return AgentProcess(process, exit=said["exit"], silent=self.close)

    def _on_message(self) -> None:
        try:
            message = self._socket.recv(65536)
        except BlockingIOError:
            return
        except ConnectionError:
            message = b""
        if not message:
            self.close()
            return
        said = json.loads(message)
        if "ready" in said:
            self._process = ProcessRef(**said["ready"])
            self.ready = True
        elif "ended" in said:
            self._exits.pop(said["ended"]).set_result(said["code"])
            if self._retired and not self._exits:
                self.close()
        else:
            if "pid" in said:
                # With the answer, as the agent may have ended before that is read.
                said["exit"] = asyncio.get_running_loop().create_future()
                self._exits[said["pid"]] = said["exit"]
            asked = self._asked.get(said["folder"])
            if asked and not asked.done():  # or who asked was cancelled meanwhile
                asked.set_result(said)

    def retire(self) -> None:
        """Fork no more, and end once the last agent's exit code has been told."""
        self._retired = True
        if not self._exits:
            self.close()

    def close(self) -> None:
        """End it now: a stopped one would not notice that its socket is closed."""
        if self.gone:
            return
        self.gone = True
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        self.seat.close()
        if self._process and (process := self._process.find()):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        for asked in self._asked.values():
            if not asked.done():
                asked.set_result({"refused": "gone"})
        for exit in self._exits.values():
            exit.set_result(None)
