"""One debuggee out of a kernel and its ranks: which request goes to whom, and what is told.

A front end of JupyterLab knows one stopped thread, which each ``stopped`` event replaces. So one
rank is shown, and the others join it without a word. It names thread 1 when it continues.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ...common.patience import patience
from ...common.protocol.jupyter_messages import Content
from .references import References

TOGETHER = 0.2
"""Seconds for which the rank that was shown before comes first, if several stop."""
_FOR_ALL = ("setBreakpoints", "setFunctionBreakpoints", "setExceptionBreakpoints")
_GO_ON = ("continue", "next", "stepIn", "stepOut")
_OF_A_THREAD = ("stackTrace", "exceptionInfo")
SHOW_RANK, ONLY_ONE = "jdistShowRank", "jdistStepOnlyShownRank"
"""Requests of our own: show a rank, which stops for it, and whether only that one goes on."""

Ask = Callable[[Mapping[int, Content]], Awaitable[dict[int, Content]]]
"""Sends ranks their requests, and returns the responses that came, by rank."""
AskKernel = Callable[[Content], Awaitable[Content]]


class Multiplexer:
    """The debuggers of a kernel and of its ranks; used in one event loop.

    `tell` publishes an event, `later` calls a function after some seconds, `on_halt` is called
    when a rank has stopped or goes on.
    """

    def __init__(
        self,
        ask: Ask,
        ask_kernel: AskKernel,
        tell: Callable[[Content], None],
        later: Callable[[float, Callable[[], None]], object],
        on_halt: Callable[[], None] = lambda: None,
    ) -> None:
        self.living: list[int] = []
        """Ranks whose debuggers are on."""
        self.halted: dict[int, int] = {}
        """Stopped ranks, and the number of the stopped thread."""
        self.shown: int | None = None
        """The rank that the front end shows."""
        self.breakpoints: dict[tuple[str, str], Content] = {}
        """Requests that set breakpoints, for ranks that come later."""
        self.follows_threads = False
        """Whether the front end shows several stopped threads, as VS Code's does."""
        self._before: int | None = None
        """The rank that was shown last."""
        self._pausing: set[int] = set()
        """Ranks that stop as soon as they return from C code."""
        self.only_one = False
        """Whether only the rank that is shown goes on."""
        self._reasons: dict[int, Content] = {}
        self._references = References()
        self._ask, self._ask_kernel = ask, ask_kernel
        self._tell, self._later, self._on_halt = tell, later, on_halt

    async def handle(self, message: Content) -> Content:
        """Return the response to a request."""
        command, arguments = message["command"], message.get("arguments") or {}
        if command in _FOR_ALL:
            return await self._set_for_all(message, arguments)
        if command in _GO_ON and self.halted:
            return await self._go_on(message, arguments)
        if command == "threads":
            return await self._threads(message)
        if command == "pause":
            return await self._pause(message, arguments)
        if command == SHOW_RANK:
            return await self._show_rank(message, arguments)
        if command == ONLY_ONE:
            self.only_one = bool(arguments.get("on"))
            return response(message)
        if command == "debugInfo":
            return self._with_stopped(await self._ask_kernel(message))
        owner = self._references.owner(arguments)
        if not owner and command in _OF_A_THREAD and self.shown is not None:
            owner = self.shown, arguments | {"threadId": self.halted[self.shown]}
        if not owner:
            return await self._ask_kernel(message)
        return await self._ask_one(owner[0], message, owner[1])

    def hear(self, rank: int, event: Content) -> None:
        """Take an event of a rank."""
        kind, body = event["event"], event.get("body") or {}
        if kind == "stopped":
            self.halted[rank], self._reasons[rank] = body["threadId"], body
            self._pausing.discard(rank)
            if self.follows_threads:
                self._tell_stopped(rank, preserveFocusHint=self.shown not in (None, rank))
                self.shown = rank if self.shown is None else self.shown
            elif self.shown is None:
                if self._before in (None, rank):
                    self._show(rank)
                else:
                    self._later(TOGETHER, self._choose)
        elif kind in ("continued", "terminated"):
            self._let_go(rank)
        self._on_halt()

    def lose(self, ranks: set[int]) -> None:
        """Note that ranks have ended."""
        self.living = [rank for rank in self.living if rank not in ranks]
        for rank in ranks & self.halted.keys():
            self._let_go(rank)
        self._on_halt()

    # -- for all ----------------------------------------------------------------------------

    async def _set_for_all(self, message: Content, arguments: Content) -> Content:
        path = str((arguments.get("source") or {}).get("path", ""))
        self.breakpoints[message["command"], path] = message
        replies = [await self._ask_kernel(message)]
        replies += (await self._ask(dict.fromkeys(self.living, message))).values()
        return _merged(replies)

    async def _threads(self, message: Content) -> Content:
        reply = await self._ask_kernel(message)
        threads = list((reply.get("body") or {}).get("threads", []))
        for rank, said in (await self._ask(dict.fromkeys(self.living, message))).items():
            for thread in (said.get("body") or {}).get("threads", []):
                is_main = thread["name"] == "MainThread"
                name = f"rank {rank}" if is_main else f"rank {rank}: {thread['name']}"
                number = self._references.number(rank, "threadId", thread["id"])
                threads.append({"id": number, "name": name})
        return response(message, {"threads": threads})

    def _with_stopped(self, reply: Content) -> Content:
        stopped = sorted(self.halted, key=lambda rank: (rank != self.shown, rank))
        numbers = [self._thread(rank) for rank in stopped]
        body = reply.get("body") or {}
        others = body.get("stoppedThreads") or []
        return reply | {"body": body | {"stoppedThreads": [*numbers, *others]}}

    # -- going on, and stopping -------------------------------------------------------------

    async def _go_on(self, message: Content, arguments: Content) -> Content:
        owner = self._references.owner(arguments)
        chosen = dict(self.halted)
        only_one = bool(self.only_one or arguments.get("singleThread"))
        if only_one:
            one = owner[0] if owner and owner[0] in chosen else self.shown
            chosen = {rank: thread for rank, thread in chosen.items() if rank == one}
        requests = {
            rank: message | {"arguments": arguments | {"threadId": thread}}
            for rank, thread in chosen.items()
        }
        if not only_one:
            resume = message | {"command": "continue", "arguments": {"threadId": 1}}
            requests |= dict.fromkeys(self._pausing & {*self.living}, resume)
            self._pausing.clear()
        for rank in chosen:  # first: they may stop again before they have answered
            self._let_go(rank)
        self._on_halt()
        await self._ask(requests)
        return response(message, {"allThreadsContinued": not only_one})

    async def _pause(self, message: Content, arguments: Content) -> Content:
        owner = self._references.owner(arguments)
        ranks = [owner[0]] if owner else [r for r in self.living if r not in self.halted]
        reply = await self._stop(message, ranks)
        if owner or reply["success"]:
            return reply
        return await self._ask_kernel(message)

    async def _stop(self, message: Content, ranks: list[int]) -> Content:
        asked = dict.fromkeys(ranks, message | {"command": "threads", "arguments": {}})
        requests = {
            rank: message | {"command": "pause", "arguments": {"threadId": thread["id"]}}
            for rank, said in (await self._ask(asked)).items()
            for thread in (said.get("body") or {}).get("threads", [])
            if thread["name"] == "MainThread"
        }
        self._pausing |= requests.keys()
        replies = await self._ask(requests)
        self._pausing -= {rank for rank, reply in replies.items() if not reply.get("success")}
        if any(reply.get("success") for reply in replies.values()):
            return response(message)
        return refusal(message, "No rank runs a cell.")

    def _let_go(self, rank: int) -> None:
        if self.halted.pop(rank, None) is None:
            return
        self._references.forget(rank)
        if rank == self.shown or self.follows_threads:
            body = {"threadId": self._thread(rank), "allThreadsContinued": not self.halted}
            self._tell({"type": "event", "event": "continued", "seq": 0, "body": body})
        if rank == self.shown:
            self.shown, self._before = None, rank
            if not self.follows_threads:
                # A step of one rank may take long, and the next step is to be its own.
                self._later(patience.busy_answer if self.only_one else TOGETHER, self._choose)

    # -- the rank that is shown -------------------------------------------------------------

    def _choose(self) -> None:
        """Show a stopped rank, if none is shown: the one that was shown before comes first."""
        if self.shown is None and self.halted:
            self._show(min(self.halted, key=lambda rank: (rank != self._before, rank)))

    def _show(self, rank: int) -> None:
        self.shown = self._before = rank
        self._tell_stopped(rank)

    def _tell_stopped(self, rank: int, **more: Any) -> None:
        body = self._reasons[rank] | more
        body |= {"threadId": self._thread(rank), "allThreadsStopped": False}
        self._tell({"type": "event", "event": "stopped", "seq": 0, "body": body})

    async def _show_rank(self, message: Content, arguments: Content) -> Content:
        rank = arguments.get("rank")
        if rank in self.halted:
            self._show(rank)
            return response(message)
        if rank in self.living:
            return await self._stop(message, [rank])
        return refusal(message, f"The debugger of rank {rank} is off.")

    def _thread(self, rank: int) -> int:
        thread = self._reasons[rank]["threadId"]
        return int(self._references.number(rank, "threadId", thread))

    async def _ask_one(self, rank: int, message: Content, arguments: Content) -> Content:
        reply = (await self._ask({rank: message | {"arguments": arguments}})).get(rank)
        if reply is None:
            return refusal(message, f"The debugger of rank {rank} does not respond.")
        return reply | {"body": self._references.shown(rank, reply.get("body") or {})}


def response(request: Content, body: Content | None = None) -> Content:
    """Return the response to a request that was fulfilled."""
    return {
        "type": "response",
        "seq": request["seq"],
        "request_seq": request["seq"],
        "command": request["command"],
        "success": True,
        "body": body or {},
    }


def refusal(request: Content, why: str) -> Content:
    """Return the response to a request that was not."""
    return response(request) | {"success": False, "message": why}


def _merged(replies: list[Content]) -> Content:
    """Return the kernel's reply, where a breakpoint is set if one process has set it."""
    good = [reply for reply in replies if reply.get("success")]
    if not good:
        return replies[0]
    points = [(reply.get("body") or {}).get("breakpoints") or [] for reply in good]
    merged = [
        next((point for point in same if point.get("verified")), same[0])
        for same in zip(*(one for one in points if one), strict=False)
    ]
    return good[0] | ({"body": {"breakpoints": merged}} if merged else {})
