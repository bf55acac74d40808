"""The cells of one client: those that run, and those whose threads may still print."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from ..common.protocol.jupyter_messages import Message
from .cell_execution import Execution

_OUTPUTS = frozenset(
    ["stream", "display_data", "update_display_data", "execute_result", "error", "clear_output"]
)
_REMEMBERED = 64
"""Cells that run, or have ended and whose threads may still print."""


class Executions:
    """Executions by the request that began them."""

    def __init__(self) -> None:
        self._by_request: OrderedDict[str, Execution] = OrderedDict()
        """Of those that have ended, the one that was heard of last is at the end."""

    def __iter__(self) -> Iterator[Execution]:
        return iter(self._by_request.values())

    def add(self, execution: Execution) -> None:
        """Remember an execution, and not too many that have ended."""
        self._by_request[execution.id] = execution
        if len(self._by_request) > _REMEMBERED:
            ended = (one for one in self._by_request.values() if one.done.is_set())
            self.forget(list(ended)[:1])

    def forget(self, executions: Iterable[Execution]) -> None:
        """Take in nothing more of executions, which are otherwise remembered for their threads."""
        for execution in executions:
            self._by_request.pop(execution.id, None)

    def hear(self, rank: int, message: Message) -> None:
        """Take what a rank shows, or how a cell ended."""
        kind, content = message["header"]["msg_type"], message["content"]
        parent = message["parent_header"].get("msg_id", "")
        if execution := self._by_request.get(parent):
            if kind == "execute_reply":
                execution.finish(rank, content)
            elif kind in _OUTPUTS:
                execution.output(rank, kind, content)
            elif kind == "input_request":
                execution.output(rank, kind, content | {"parent": message["header"]})
            if execution.done.is_set():
                self._by_request.move_to_end(parent)
