"""The process of a zygote, in its owner, and the connection to it; see `agent.zygote`."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from ...common.background_tasks import Tasks, within
from ...common.errors import DistError
from ...common.patience import patience
from ...common.processes.process_ref import UNKNOWN_EXIT, ProcessRef, is_stopped, until_ended
from ...common.processes.python_command import python_command
from ...common.protocol.agents import zygote_messages as messages
from .agent_process import AgentProcess

_LOG = logging.getLogger(__name__)

_MODULE = "jupyter_dist_server.agent.zygote"


class ZygoteProcess:
    """One zygote, which is started; it writes to the descriptor `log`."""

    def __init__(
        self, python: str, environment: dict[str, str], cwd: str, log: int, tasks: Tasks
    ) -> None:
        self.gone = False
        self._retired = False
        self._tasks = tasks
        self._waiting = 0
        """Starts of agents that are not done."""
        self._asked: dict[str, asyncio.Future[AgentProcess | None]] = {}
        self._exits: dict[int, asyncio.Future[int]] = {}
        self._ready = asyncio.Event()
        """Set when it has imported torch, or has ended."""
        # Messages of one socket must not run together; only Linux's zygotes get more than one.
        kind = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_STREAM
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, kind)
        orders = messages.ZygoteOrders(theirs.fileno(), ProcessRef.of(os.getpid()))
        try:
            self._child: subprocess.Popen[bytes] | None = subprocess.Popen(
                [*python_command(python, _MODULE), msgspec.json.encode(orders).decode()],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=cwd,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            self._socket.close()
            raise DistError(
                "agent_failed",
                f"{python} cannot be started in {cwd}: {error.strerror}.",
                "Check the kernel's interpreter and the notebook's folder.",
            ) from error
        finally:
            theirs.close()
        self._process = ProcessRef.of(self._child.pid)
        self._reaping: asyncio.Task[int] | None = None
        self._socket.setblocking(False)
        asyncio.get_running_loop().add_reader(self._socket, self._on_message)

    @property
    def is_usable(self) -> bool:
        """Whether it can start agents, perhaps once it has imported torch."""
        return not self.gone and not self._retired

    async def start_agent(
        self, folder: Path, passed: list[int], stay: bool = True
    ) -> AgentProcess | None:
        """Let the zygote fork an agent, once it can; `None` if it cannot, or does not answer.

        Unless it is to `stay`, it may become the agent itself.
        """
        self._waiting += 1
        try:
            await self._ready.wait()
            return None if self.gone else await self._start_agent(folder, passed, stay)
        finally:
            self._waiting -= 1
            self._close_if_done()
            if self.gone:
                await self.exit_code()  # when a start is over, nothing of it is left

    async def _start_agent(
        self, folder: Path, passed: list[int], stay: bool
    ) -> AgentProcess | None:
        answer: asyncio.Future[AgentProcess | None] = asyncio.get_running_loop().create_future()
        self._asked[str(folder)] = answer
        request = msgspec.json.encode(messages.StartAgent(str(folder), stay))
        try:
            socket.send_fds(self._socket, [request], passed)
            begun = time.monotonic()
            for limit in (patience.cleanup, patience.program):
                await asyncio.wait([answer], timeout=limit)
                if answer.done():
                    return answer.result()
                if is_stopped(self._process):
                    break
            # Killed: it must not fork a second agent if it goes on.
            waited = time.monotonic() - begun
            _LOG.warning("A zygote did not respond for %.0f s and was killed", waited)
            self.close()
            return None
        except OSError:  # killed a moment ago
            self.close()
            return None
        except asyncio.CancelledError:
            if answer.done() and (agent := answer.result()):
                agent.kill()
            raise
        finally:
            self._asked.pop(str(folder), None)

    def _on_message(self) -> None:
        try:
            message = self._socket.recv(65536)
        except BlockingIOError:
            return
        except ConnectionError:
            message = b""
        if not message:
            self._note_end()
            return
        try:
            news = messages.decode_zygote_news(message)
        except ValueError as error:  # it is killed for lack of an answer
            _LOG.error("Zygote %d said nothing that is understood: %s", self._process.pid, error)
            return
        if isinstance(news, messages.ZygoteReady):
            self._ready.set()
        elif isinstance(news, messages.AgentExited):
            self._on_exit(news)
        else:
            self._on_answer(news)

    def _on_exit(self, news: messages.AgentExited) -> None:
        if told := self._exits.pop(news.pid, None):
            told.set_result(news.code)
        self._close_if_done()

    def _on_answer(self, news: messages.AgentStarted | messages.ForkRefused) -> None:
        if isinstance(news, messages.ForkRefused):
            agent = None
            self.retire()
        elif news.itself:
            agent = AgentProcess(news.process, child=self._child)
            self._child, self._retired = None, True
        else:
            # With the answer, as the agent may have ended before that is read.
            exit = self._exits[news.process.pid] = asyncio.get_running_loop().create_future()
            agent = AgentProcess(news.process, exit)
        asked = self._asked.get(news.folder)
        if asked and not asked.done():
            asked.set_result(agent)
        elif agent:  # the start was cancelled meanwhile
            agent.kill()

    def retire(self) -> None:
        """Fork no more, and end once the last agent's exit code has been told."""
        self._retired = True
        self._close_if_done()

    def _close_if_done(self) -> None:
        is_done = self._retired and not self._exits
        if not self._waiting and (is_done or not self._ready.is_set()):  # its imports may hang
            self.close()

    def close(self) -> None:
        """End it now: a stopped one would not notice that its socket is closed."""
        if not self.gone and self._child:
            self._child.kill()
        self._note_end()

    def _note_end(self) -> None:
        if self.gone:
            return
        self.gone = True
        self._ready.set()
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        if self._child:
            self._reaping = self._tasks.add(self._reap(self._child))
        for asked in self._asked.values():
            if not asked.done():
                asked.set_result(None)
        for exit in self._exits.values():
            exit.set_result(UNKNOWN_EXIT)

    async def _reap(self, child: subprocess.Popen[bytes]) -> int:
        try:
            await within(until_ended(self._process), patience.cleanup)
        except asyncio.TimeoutError:  # it hangs at its exit
            child.kill()
            await until_ended(self._process)
        return child.wait()

    async def exit_code(self) -> int:
        """Return the exit code of a zygote that has ended."""
        if self._reaping:
            await asyncio.wait([self._reaping], timeout=2 * patience.cleanup)
            if self._reaping.done():
                return self._reaping.result()
        return UNKNOWN_EXIT
