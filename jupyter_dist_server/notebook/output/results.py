"""The results of a cell in a variable: ``%%distributed -o NAME``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...common.protocol.jupyter_messages import Content


@dataclass
class RankResult:
    """What one rank showed, and its last value."""

    rank: int
    status: str = "aborted"
    """``ok``, ``error``, ``aborted`` or ``dead``."""
    stdout: str = ""
    stderr: str = ""
    displays: list[Content] = field(default_factory=list)
    """MIME bundles of rich outputs, including the last value's."""
    has_value: bool = False
    """Whether the cell ended with a value."""
    value: Any = None
    """That value, as ``%dist_pull`` fetches it."""
    error: str = ""


class CellResults(dict[int, RankResult]):
    """A `RankResult` by rank."""

    def __init__(self, ranks: Iterable[int]) -> None:
        super().__init__({rank: RankResult(rank) for rank in ranks})

    def add(self, rank: int, kind: str, content: Content) -> None:
        """Keep one output."""
        result = self[rank]
        if kind == "stream" and content["name"] == "stdout":
            result.stdout += content["text"]
        elif kind == "stream":
            result.stderr += content["text"]
        elif kind in ("display_data", "execute_result"):
            result.displays.append(content["data"])
            result.has_value |= kind == "execute_result"
        elif kind == "clear_output":
            result.stdout = result.stderr = ""
            result.displays.clear()
        elif kind == "finished":
            result.status = content["status"]
            result.error = f"{content['ename']}: {content['evalue']}".strip(": ")
