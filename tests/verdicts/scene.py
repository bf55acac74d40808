"""Bring the ranks of a real pool into a scene, ask for the verdict, and free them again."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from jupyter_dist_server.client.cell_execution import Execution
from jupyter_dist_server.client.pool_client import PoolClient
from jupyter_dist_server.notebook.cells.cell_wait import evidence_on
from jupyter_dist_server.verdicts.explain_hang import explain_hang
from jupyter_dist_server.verdicts.verdict import Verdict

from ..waiting import PATIENCE

SIZE = 3


@dataclass(frozen=True)
class Case:
    """A scene, and what is said of it; the table in docs/hang-messages.md is made of them."""

    name: str
    cell: str
    sentence: str
    stuck: bool = True
    with_line: str = ""
    """What is said instead where torch already tells in which line a collective was begun."""


class Scene:
    """Three ranks that run cells.

    Parameters
    ----------
    client : PoolClient
        Of their pool.
    """

    def __init__(self, client: PoolClient) -> None:
        self.client = client
        self._number = 0

    async def ok(self, code: str) -> None:
        """Run a cell on all ranks to its end."""
        self._number += 1
        ranks = range(SIZE)
        work = self.client.execute(code, ranks, lambda *_: None, execution_count=self._number)
        replies = await asyncio.wait_for(work, PATIENCE)
        assert {r.status for r in replies.values()} == {"ok"}, [r.content for r in replies.values()]

    async def verdict(self) -> Verdict | None:
        """Ask for the verdict now."""
        return explain_hang(await evidence_on(self.client, signal=True))

    async def until(self, is_so: Callable[[Verdict], bool], what: str) -> Verdict:
        """Ask until a verdict is as it should be."""
        deadline, verdict = time.monotonic() + PATIENCE, None
        while time.monotonic() < deadline:
            verdict = await self.verdict()
            if verdict and is_so(verdict):
                return verdict
        raise AssertionError(f"not {what!r}, but {verdict and verdict.sentence!r}")

    @asynccontextmanager
    async def runs(self, code: str, ranks: Iterable[int] = range(SIZE)) -> AsyncIterator[None]:
        """Run a cell, always as In[9], until it is left; stop what still runs then."""
        begun: list[Execution] = []
        work = self.client.execute(
            code,
            ranks,
            lambda *_: None,
            execution_count=9,
            allow_stdin=True,
            started=begun.append,
        )
        cell = asyncio.create_task(work)
        try:
            yield
        finally:
            for execution in begun:
                self.client.stop(execution)
            await asyncio.wait_for(cell, PATIENCE)

    async def says(self, cell: str, *sentences: str) -> Verdict:
        """Run a cell until its verdict is one of these sentences, and stop it.

        Earlier scenes may have used the group: ``#N`` stands for the number of a collective.
        """

        async with self.runs(cell):
            said = " or ".join(filter(None, sentences))
            return await self.until(lambda verdict: without_number(verdict) in sentences, said)


def without_number(verdict: Verdict) -> str:
    """Return the sentence with ``#N`` for each number of a collective."""
    return re.sub(r"#\d+", "#N", verdict.sentence)
