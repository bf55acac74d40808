"""Completion and inspection in cells that run on ranks, and completion of our magics' options.

The kernel answers ``complete_request`` and ``inspect_request`` by `do_complete` and `do_inspect`.
For a distributed cell, these ask its first living rank, in a subshell, so that the answer also
comes while a cell runs there. They may be called in any thread of the kernel.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import math
import re
import time
from collections.abc import Iterable
from typing import Any

from IPython.core.error import UsageError

from ...client.pool_client import PoolClient
from ...client.ranks.subshells import ask_beside
from ...common.errors import DistError
from ...common.patience import patience
from ...common.protocol.jupyter_messages import Content
from ...common.rank_specs import parse_ranks
from ..magics.cell_magics import CellMagics
from ..magics.option_parser import unquoted, without_comment

_CELL_MAGIC = re.compile(
    r"([ \t]*(#[^\n]*)?\n)*[ \t]*%%(?P<name>distributed|rank|px)\b(?P<line>[^\n]*)\n"
)
_RANKS_OPTION = re.compile(r"(?:^|\s)(?:--ranks|-r|--targets|-t)(?:\s*=\s*|\s+)(?P<ranks>\S+)")
_MAGIC_NAME = re.compile(r"\s*%{1,2}\w*")
_MAGIC_OPTION = re.compile(r"\s*%{1,2}(?P<name>\w+)\b(?:[^#\n]*\s)?(?P<word>-[\w-]*)$")


class Introspection:
    """The notebook kernel's completion and inspection."""

    def __init__(self, kernel: Any, cells: CellMagics) -> None:
        self._kernel = kernel
        self._cells = cells
        self._own = kernel.do_complete, kernel.do_inspect
        self._looked = -math.inf

    def install(self) -> None:
        """Answer from now on."""
        self._kernel.do_complete, self._kernel.do_inspect = self.complete, self.inspect

    def remove(self) -> None:
        """Let IPython answer again."""
        self._kernel.do_complete, self._kernel.do_inspect = self._own

    async def complete(self, code: str, cursor_pos: int | None) -> Content:
        """Complete at a position, counted in characters."""
        position = len(code) if cursor_pos is None else cursor_pos
        if options := _options(self._cells.shell, code[:position]):
            return options
        if _CELL_MAGIC.match(code):
            self._look_for_ranks()
        place = self._place(code, position)
        if place is None:
            return await _settled(self._own[0](code, cursor_pos))
        client, rank, begin = place
        content = {"code": code[begin:], "cursor_pos": position - begin}
        answer = await self._ask(client, rank, "complete_request", content)
        if answer is None:
            return _matches([], position, position)
        for key in ("cursor_start", "cursor_end"):
            answer[key] += begin
        for match in answer["metadata"].get("_jupyter_types_experimental", ()):
            match["start"] += begin
            match["end"] += begin
        return answer

    async def inspect(
        self, code: str, cursor_pos: int, detail_level: int = 0, omit_sections: Iterable[str] = ()
    ) -> Content:
        """Describe what is at a position, counted in characters."""
        place = self._place(code, cursor_pos)
        if place is None:
            return await _settled(self._own[1](code, cursor_pos, detail_level, omit_sections))
        client, rank, begin = place
        content = {
            "code": code[begin:],
            "cursor_pos": cursor_pos - begin,
            "detail_level": detail_level,
            "omit_sections": sorted(omit_sections),
        }
        answer = await self._ask(client, rank, "inspect_request", content)
        return answer or {"status": "ok", "found": False, "data": {}, "metadata": {}}

    def _place(self, code: str, position: int) -> tuple[PoolClient, int, int] | None:
        """Return who answers, and where the code for the ranks begins; `None` for IPython."""
        match = _CELL_MAGIC.match(code)
        if match and position < match.end():
            return None  # options are IPython's to complete
        client = self._cells.pool.client
        if client is None:
            return None
        if match:
            begin, ranks = match.end(), _chosen(match["name"], match["line"], client.world_size)
        else:
            lines = code.splitlines(keepends=True)
            if len(self._cells.send_all(lines)) == len(lines):
                return None
            if _MAGIC_NAME.fullmatch(code[:position]):
                return None  # it may become a magic of ours, which ranks do not know
            begin, ranks = 0, list(range(client.world_size))
        living = [rank for rank in [*ranks, *range(client.world_size)] if rank not in client.dead]
        return (client, living[0], begin) if living else None

    def _look_for_ranks(self) -> None:
        """Connect to ranks that the panel has started since the last cell."""
        # Not at each Tab: the kernel answers nothing else meanwhile.
        if self._cells.pool.client or time.monotonic() - self._looked < 5.0:
            return
        try:
            self._cells.pool.look()
        except Exception:  # a cell will fail, and say why
            self._kernel.log.warning("The ranks cannot be looked for", exc_info=True)
        self._looked = time.monotonic()

    async def _ask(
        self, client: PoolClient, rank: int, kind: str, content: Content
    ) -> Content | None:
        try:
            seconds = 2 * patience.answer  # a front end gives up soon after
            work = ask_beside(client, kind, content, rank, seconds)
            answer = await asyncio.wrap_future(self._cells.pool.loop.submit(work))
        except Exception:  # the pool may end at any moment, and Tab shows no errors
            self._kernel.log.warning("Rank %s did not respond to a %s", rank, kind, exc_info=True)
            return None
        return answer if answer and answer["status"] == "ok" else None


def _chosen(name: str, line: str, world_size: int) -> list[int]:
    """Return the ranks that a cell magic's line chooses; all while it cannot be read."""
    option = _RANKS_OPTION.search(line)
    text = line if name == "rank" else option["ranks"] if option else ""
    try:
        text = unquoted(without_comment(text))
        return parse_ranks(text, world_size) if text.strip() else list(range(world_size))
    except (DistError, UsageError):
        return list(range(world_size))


async def _settled(answer: Any) -> Content:
    """Return IPython's own answer, which is awaitable in some versions."""
    settled: Content = await answer if inspect.isawaitable(answer) else answer
    return settled


def _options(shell: Any, before: str) -> Content | None:
    """Complete an option of one of our magics, which IPython does not know."""
    line = before.rpartition("\n")[2]
    match = _MAGIC_OPTION.match(line)
    if not match:
        return None
    find = shell.find_cell_magic if "%%" in line else shell.find_line_magic
    magic, word = find(match["name"]), match["word"]
    if not getattr(magic, "__module__", "").startswith("jupyter_dist_server."):
        return None
    options = [
        option
        for action in getattr(getattr(magic, "parser", None), "_actions", ())
        if action.help != argparse.SUPPRESS
        for option in action.option_strings
        if option.startswith(word)
    ]
    options.sort(key=lambda option: (not option.startswith("--"), option))  # long ones first
    begin, end = len(before) - len(word), len(before)
    kinds = [{"start": begin, "end": end, "text": o, "type": "option"} for o in options]
    metadata = {"_jupyter_types_experimental": kinds}
    return _matches(options, begin, end) | {"metadata": metadata}


def _matches(matches: list[str], begin: int, end: int) -> Content:
    """Return the content of a ``complete_reply``."""
    return {
        "matches": matches,
        "cursor_start": begin,
        "cursor_end": end,
        "metadata": {},
        "status": "ok",
    }
