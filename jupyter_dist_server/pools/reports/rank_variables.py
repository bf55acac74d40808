"""The variables of a pool's ranks, for a process that runs none of its cells."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ...client.ranks.rank_connection import RankConnection
from ...client.values.ask_variables import Gathered, gather_variables
from ...common.patience import patience
from ...common.protocol.ranks.variable_messages import VariablesRequest
from ...verdicts.compare_variables import Compared, History, compare, sentences
from ...verdicts.variable_list import ListedVariable, list_variables
from ..pool import Pool
from ..stack_and_log import check_pool_runs, pool_ended

_LARGEST = 16 << 20
"""Bytes of a variable that is compared without being asked to."""


class VariablesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The variables of a pool's ranks."""

    variables: list[ListedVariable]
    ranks: list[int]
    """Those that have answered."""
    busy: list[int]
    """They run a cell."""
    silent: list[int]
    """They do not respond."""
    dead: list[int]
    sentences: list[str] = []
    """What a check has found, line by line."""


class RankVariables:
    """Lists and compares variables, and remembers when they were equal."""

    def __init__(self) -> None:
        self._histories: weakref.WeakKeyDictionary[Pool, tuple[int, History]]
        self._histories = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    async def look(self, pool: Pool) -> bytes:
        """Return a `VariablesAnswer` as JSON, without values; only small ones are compared."""
        request = VariablesRequest([], largest=_LARGEST, values=False)
        return await self._ask(pool, request, None, 2 * patience.busy_answer, in_words=False)

    async def check(self, pool: Pool, names: Sequence[str], ranks: Sequence[int] | None) -> bytes:
        """Compare variables, all if none is named, on some ranks or all; see `look`."""
        request = VariablesRequest(list(names))
        limit = 4 * patience.program  # all of them, however large they are
        return await self._ask(pool, request, ranks, limit, in_words=True)

    async def _ask(
        self,
        pool: Pool,
        request: VariablesRequest,
        ranks: Sequence[int] | None,
        limit: float,
        *,
        in_words: bool,
    ) -> bytes:
        record, generation = pool.record, pool.record.generation
        chosen = range(record.world_size) if ranks is None else ranks
        dead = [one.rank for one in record.ranks if one.state == "dead" and one.rank in chosen]
        living = [rank for rank in chosen if rank not in dead]
        check_pool_runs(record)
        try:
            async with RankConnection(Path(record.folder)) as connection:
                gathered = await gather_variables(connection, request, living, limit)
        except OSError:  # this very moment; the record will say so soon
            raise pool_ended() from None

        def answer() -> bytes:
            found, since = self._compare(pool, generation, gathered)
            said = gathered.said
            words = sentences(found, said, since, {}) if in_words and found else []
            return msgspec.json.encode(
                VariablesAnswer(
                    variables=list_variables(said, since),
                    ranks=sorted(said),
                    busy=gathered.busy,
                    silent=gathered.silent,
                    dead=dead,
                    sentences=words,
                )
            )

        return await asyncio.to_thread(answer)  # there may be thousands of tensors on many ranks

    def _compare(
        self, pool: Pool, generation: int, gathered: Gathered
    ) -> tuple[list[Compared], dict[str, str]]:
        found = compare(gathered.said)
        with self._lock:
            known = self._histories.get(pool)
            if known is None or known[0] != generation:
                known = self._histories[pool] = generation, History()
            if len(gathered.said) < pool.record.world_size:
                return found, known[1].since  # what some ranks tell says nothing of all
            return found, known[1].note(found, gathered.said)
