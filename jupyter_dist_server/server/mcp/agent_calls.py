"""What coding agents have called, for the panel."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

import msgspec

_KEPT = 50
_LONGEST = 4000
"""Characters of a call's code or arguments, as the panel shows them."""
_LONGEST_NAME = 40


class AgentCall(msgspec.Struct):
    """One call of a tool."""

    id: int
    agent: str
    """What the agent calls itself."""
    tool: str
    pool: str | None
    what: str
    """The code that it runs; of other tools, the arguments."""
    begun: float
    ended: float | None = None
    failed: bool = False


class AgentCalls:
    """The last calls."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._calls: dict[int, tuple[int, AgentCall]] = {}
        """By ID, with the version of their last changes."""
        self.version = 0
        self._listeners: set[Callable[[], None]] = set()

    def listen(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call back after each change; return what ends that."""
        self._listeners.add(on_change)
        return partial(self._listeners.discard, on_change)

    def since(self, version: int) -> list[AgentCall]:
        """Return the calls that have changed since a version."""
        return [call for changed, call in self._calls.values() if changed > version]

    def begin(self, agent: str, tool: str, given: dict[str, Any]) -> AgentCall:
        """Note that a tool is called."""
        others = {name: value for name, value in given.items() if name not in ("code", "pool")}
        what = given.get("code") or (json.dumps(others, ensure_ascii=False) if others else "")
        if len(what) > _LONGEST:
            what = f"{what[:_LONGEST]}…"
        call = AgentCall(next(self._numbers), agent, tool, given.get("pool"), what, time.time())
        self._keep(call)
        return call

    def end(self, call: AgentCall, *, failed: bool) -> None:
        """Note that a call has its answer."""
        call.ended, call.failed = time.time(), failed
        self._keep(call)

    def _keep(self, call: AgentCall) -> None:
        self.version += 1
        self._calls[call.id] = self.version, call
        for old in [*self._calls][:-_KEPT]:
            del self._calls[old]
        for listener in list(self._listeners):
            listener()


def name_of(client: object) -> str:
    """Return the name in a `clientInfo`."""
    told = client if isinstance(client, dict) else {}
    name = str(told.get("title") or told.get("name") or "")
    return "".join(filter(str.isprintable, name)).strip()[:_LONGEST_NAME] or "An agent"


def session_of(name: str) -> str:
    """Return the ID of a session that has the agent's name: later calls do not tell it."""
    return quote(name, safe="")


def agent_of(session: str) -> str:
    """Return the name in a session's ID."""
    return name_of({"name": unquote(session)})
