"""The notebook kernel's answers to a debugger's front end, for the kernel and its ranks."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import sys
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from ...client.pool_client import PoolClient
from ...client.ranks.debug_connection import DebugConnection
from ...common.patience import patience
from ...common.protocol.jupyter_messages import Content
from ..session.current_pool import CurrentPool
from .multiplexer import ONLY_ONE, Multiplexer, refusal, response

T = TypeVar("T")
_RUNS_CELLS = "run_code"
"""IPython's function that runs a cell."""
_CAPABILITIES = {
    "supportsConfigurationDoneRequest": True,
    "supportsConditionalBreakpoints": True,
    "supportsHitConditionalBreakpoints": True,
    "supportsLogPoints": True,
    "supportsEvaluateForHovers": True,
    "supportsSetVariable": True,
    "supportsSetExpression": True,
    "supportsExceptionInfoRequest": True,
    "supportsSingleThreadExecutionRequests": True,
    "exceptionBreakpointFilters": [
        {"filter": "raised", "label": "Raised Exceptions", "default": False},
        {"filter": "uncaught", "label": "Uncaught Exceptions", "default": True},
        {"filter": "userUnhandled", "label": "User Uncaught Exceptions", "default": False},
    ],
}


class DebuggerFront:
    """Adds the ranks to the debugger of a notebook's kernel, while that is on.

    The kernel calls `do_debug_request` on its control thread, so also during a cell.
    """

    def __init__(self, kernel: Any, pool: CurrentPool) -> None:
        self._kernel = kernel
        self._pool = pool
        self._own = getattr(kernel, "do_debug_request", None)
        self._loop: asyncio.AbstractEventLoop | None = None
        """The control thread's."""
        self._ranks: Multiplexer | None = None
        """While the debugger is on."""
        self._only_one = False
        """Whether only the rank that is shown goes on, also when the debugger is on again."""
        self._without_kernel = False
        """Whether it is on for the ranks only, as the kernel was in a cell when it was begun."""
        self._client: PoolClient | None = None
        """Whose ranks are attached to."""
        self._connection: DebugConnection | None = None
        self._sync_lock = asyncio.Lock()
        self._failures: dict[int, str] = {}

    def install(self) -> None:
        """Answer from now on."""
        if self._own:
            self._kernel.do_debug_request = self.answer
            atexit.register(self._leave_ranks)

    def remove(self) -> None:
        """Let the kernel answer again, and end the ranks' debuggers."""
        if self._own:
            self._kernel.do_debug_request = self._own
            atexit.unregister(self._leave_ranks)
            self._leave_ranks()

    # -- requests, in the control thread ------------------------------------------------------

    async def answer(self, message: Content) -> Content:
        """Return the response to a request."""
        self._loop = asyncio.get_running_loop()
        command = message["command"]
        if command == "initialize":
            return await self._initialize(message)
        if command == "attach":
            return await self._attach(message)
        if command == ONLY_ONE:
            self._only_one = bool((message.get("arguments") or {}).get("on"))
        ranks = self._ranks
        if ranks is None:
            return response(message) if command == ONLY_ONE else await self._ask_kernel(message)
        if command == "disconnect":
            await self._end()
            return await self._ask_kernel(message)
        await self._sync()
        return await ranks.handle(message)

    async def _initialize(self, message: Content) -> Content:
        # The kernel starts its debugger by code that it runs in the main thread.
        own = getattr(self._kernel, "debugger", None)
        is_on = bool(getattr(own, "debugpy_initialized", False))
        self._without_kernel = not is_on and self._pool.client is not None and _runs_a_cell()
        client = (message.get("arguments") or {}).get("clientID", "jupyterlab")
        self._follows_threads = "jupyter" not in str(client).lower()
        return await self._ask_kernel(message)

    async def _attach(self, message: Content) -> Content:
        reply = await self._ask_kernel(message)
        if not (reply and reply.get("success", True)):  # the kernel has no debugger
            return reply
        self._ranks = Multiplexer(
            self._ask, self._ask_kernel, self._tell, self._later, self._note_halts
        )
        self._ranks.follows_threads, self._ranks.only_one = self._follows_threads, self._only_one
        self._pool.debugger = self
        await self._sync()
        failed, client = self._failures, self._client
        if client and failed and not self._ranks.living:
            await self._end()
            return refusal(message, next(iter(failed.values())))
        for rank, why in failed.items():
            self._say(f"The debugger of rank {rank} is off: {why}\n")
        if self._without_kernel:
            self._tell({"type": "event", "event": "initialized", "seq": 0})
        return reply

    async def _ask_kernel(self, message: Content) -> Content:
        if self._without_kernel:
            return await self._stand_in(message)
        assert self._own
        reply: Content = await self._own(message)
        return reply

    async def _stand_in(self, message: Content) -> Content:
        """Answer for the kernel, whose own debugger is off."""
        command, arguments = message["command"], message.get("arguments") or {}
        if command == "disconnect":
            self._without_kernel = False
        if command == "initialize":
            return response(message, _CAPABILITIES)
        if command == "dumpCell":
            return response(message, {"sourcePath": self._path_of(arguments["code"])})
        if command == "setBreakpoints":
            points = [{"line": one["line"]} for one in arguments.get("breakpoints") or []]
            return response(message, {"breakpoints": points})
        if command in ("debugInfo", "inspectVariables", "richInspectVariables", "modules"):
            assert self._own  # these it answers while its debugger is off
            reply: Content = await self._own(message)
            if command == "debugInfo":
                reply = reply | {"body": reply["body"] | {"isStarted": True}}
            return reply
        return response(message, {"threads": []} if command == "threads" else None)

    async def _end(self) -> None:
        if leaving := self._leaving():
            await self._in_pool(leaving)

    def _leave_ranks(self) -> None:
        """Switch the ranks' debuggers off, as the kernel ends."""
        if leaving := self._leaving():
            with contextlib.suppress(Exception):  # the pool may end meanwhile
                self._pool.loop.submit(leaving).result(patience.busy_answer)

    def _leaving(self) -> Coroutine[Any, Any, None] | None:
        connection, ranks = self._connection, self._ranks
        self._pool.debugger = self._ranks = self._connection = None
        client, self._client = self._client, None
        if client:
            client.halts.set(False)
        return _closed(connection, ranks.living) if connection and ranks else None

    # -- the ranks ----------------------------------------------------------------------------

    def source(self) -> str | None:
        """Return the editor's path of the cell that is run now, once its ranks are attached to.

        Called in the main thread.
        """
        if self._loop and self._ranks:
            asyncio.run_coroutine_threadsafe(self._sync(), self._loop).result()
        parent = self._kernel.get_parent("shell")
        return self._path_of(parent["content"]["code"]) if parent else None

    def _path_of(self, code: str) -> str:
        path: str = self._kernel.shell.compile.get_code_name(code, code, 0)
        return path

    async def _sync(self) -> None:
        """Attach to the ranks of the pool that the notebook uses now, and drop dead ones."""
        async with self._sync_lock:
            ranks, client = self._ranks, self._pool.client
            if ranks is None:
                return
            if client is not self._client:
                await self._change_ranks(ranks, client)
            if client:
                ranks.lose(client.dead.keys() & {*ranks.living})

    async def _change_ranks(self, ranks: Multiplexer, client: PoolClient | None) -> None:
        before, self._connection = self._connection, None
        ranks.lose({*ranks.living})
        if before:
            await self._in_pool(before.close())
        self._client, self._failures = client, {}
        if client is None:
            return
        all_ranks = [rank for rank in range(client.world_size) if rank not in client.dead]
        self._connection, self._failures = await self._in_pool(
            _opened(client, self._on_event, all_ranks)
        )
        ranks.living = [rank for rank in all_ranks if rank not in self._failures]
        for request in ranks.breakpoints.values():
            await self._ask(dict.fromkeys(ranks.living, request))

    async def _ask(self, requests: Mapping[int, Content]) -> dict[int, Content]:
        connection = self._connection
        if connection is None or not requests:
            return {}
        return await self._in_pool(_answers(connection, requests))

    async def _in_pool(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(self._pool.loop.submit(work))

    def _on_event(self, rank: int, event: Content) -> None:
        if self._loop:  # it comes in the pool's
            self._loop.call_soon_threadsafe(self._hear, rank, event)

    def _hear(self, rank: int, event: Content) -> None:
        if self._ranks:
            self._ranks.hear(rank, event)
            if event["event"] == "terminated":
                self._ranks.lose({rank})

    def _note_halts(self) -> None:
        if self._ranks and self._client:
            self._client.halts.set(bool(self._ranks.halted))

    # -- the front end ------------------------------------------------------------------------

    def _tell(self, event: Content) -> None:
        self._kernel._publish_debug_event(event)

    def _later(self, seconds: float, function: Any) -> None:
        if self._loop:
            self._loop.call_later(seconds, function)

    def _say(self, text: str) -> None:
        body = {"category": "important", "output": text}
        self._tell({"type": "event", "event": "output", "seq": 0, "body": body})
        self._kernel.log.warning(text.rstrip())


async def _opened(
    client: PoolClient, on_event: Any, ranks: list[int]
) -> tuple[DebugConnection, dict[int, str]]:
    connection = DebugConnection(client.folder, on_event)
    connection.open()
    connection.dead.update(client.dead)
    return connection, await connection.attach(ranks, patience.program)


async def _answers(
    connection: DebugConnection, requests: Mapping[int, Content]
) -> dict[int, Content]:
    work = [connection.debug(request, [rank], patience.node) for rank, request in requests.items()]
    found: dict[int, Content] = {}
    for answer in await asyncio.gather(*work):
        found |= answer
    return found


async def _closed(connection: DebugConnection, ranks: list[int]) -> None:
    await connection.detach(ranks, patience.busy_answer)
    await connection.close()


def _runs_a_cell() -> bool:
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if frame.f_code.co_name == _RUNS_CELLS:
            return True
        frame = frame.f_back
    return False
