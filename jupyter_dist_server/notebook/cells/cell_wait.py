"""Looks why a cell on ranks makes no progress, and says so in its output while it runs."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial

from ...client.cell_execution import Execution
from ...client.pool_client import PoolClient
from ...client.ranks.gather_evidence import Standstill, gather_evidence
from ...common.protocol.ranks.evidence import Evidence
from ...common.protocol.ranks.rank_messages import RankStatus
from ...common.rank_specs import name_ranks
from ...verdicts.explain_hang import explain
from ...verdicts.verdict import Verdict
from ..loop_thread import LoopThread
from ..output.publish import Display, Publication, Text
from ..output.remedies import replace_busy, replace_ranks, say_busy

_LOG = logging.getLogger(__name__)

_DEFAULT_LIMIT = 10.0


def read_limit(said: str) -> float:
    """Return the limit that the user has set, or the default if that is no number."""
    try:
        return float(said)
    except ValueError:
        what = "JUPYTER_DIST_WAIT_LIMIT is %r, not a number of seconds: %g is used."
        _LOG.warning(what, said, _DEFAULT_LIMIT)
        return _DEFAULT_LIMIT


LIMIT = read_limit(os.environ.get("JUPYTER_DIST_WAIT_LIMIT") or str(_DEFAULT_LIMIT))
"""Seconds for which ranks may wait before the cell says why; 0 is never."""
_EVERY = 2.0
"""Seconds between two looks; each costs a short message to each rank."""


async def evidence_on(client: PoolClient, *, signal: bool = False) -> Evidence:
    """Ask all ranks what they do; see `gather_evidence`."""
    snapshot = client.link.snapshot
    ranks = snapshot.ranks if snapshot else []
    return await gather_evidence(client, ranks, signal=signal)


def explain_wait(client: PoolClient, loop: LoopThread) -> Verdict | None:
    """Return why ranks wait, if they have waited longer than the limit."""
    if not LIMIT > 0:
        return None
    verdict, _ = loop.run(explain(partial(evidence_on, client), time.time() - LIMIT))
    return verdict


class WaitWatch:
    """The verdict on one cell while it waits.

    It is shown in the display `name`, or as text if that is `None`: then displays cannot be drawn
    again. `on_news` is called in the loop's thread when there may be something to `take`.
    """

    def __init__(
        self,
        client: PoolClient,
        loop: LoopThread,
        name: str | None,
        on_news: Callable[[], None],
    ) -> None:
        self._client = client
        self._loop = loop
        self._name = name
        self._on_news = on_news
        self._standstill = Standstill()
        self._shown = ""
        self._sentence = ""
        """The verdict that is shown, unless the wait is over."""
        self._doubted = ""
        """What the last look has found, if it may be true for a moment only."""
        self._failed = ""
        """Why the last look has failed."""
        self._looking: Future[Verdict | None] | None = None
        self.execution: Execution | None = None
        """The cell's, once it has begun: ranks may run an earlier one."""
        self.due: float | None = None
        """When to look next (monotonic)."""
        self._halted = client.halts.seconds
        self._plan_first(time.monotonic())

    def _plan_first(self, now: float) -> None:
        if LIMIT > 0:
            # The first look only finds out whether anything changes until the limit.
            self.due = now + max(LIMIT - _EVERY, LIMIT / 2)

    def look(self, now: float) -> None:
        """Begin a look that is due."""
        if self._client.halts.seconds > self._halted:  # the others wait for the debugger
            self._halted = self._client.halts.seconds
            self._standstill = Standstill()
            self._plan_first(now)
        if self.due is not None and now >= self.due and self._looking is None:
            self.due = None
            self._looking = self._loop.submit(self._explain())
            self._looking.add_done_callback(lambda _: self._on_news())

    async def _explain(self) -> Verdict | None:
        client = self._client
        before, self._doubted = self._doubted, ""
        said = await client.status()
        if verdict := self._has_not_begun(said, before):
            return verdict
        if not self._standstill.is_seen(said, set(range(client.world_size)) - set(client.dead)):
            return None
        look, since = partial(evidence_on, client), self._standstill.since
        verdict, _ = await explain(look, time.time() - LIMIT, since)
        return verdict

    def _has_not_begun(self, said: Mapping[int, RankStatus], before: str) -> Verdict | None:
        """Say that ranks have not begun the cell, and what they do instead.

        Idle ones may be about to begin it, unless the look `before` has found the same.
        """
        mine, ours = self.execution, self._client.link.lock.is_ours
        if not mine:
            return None
        others = {
            rank: status
            for rank in mine.outstanding
            if (status := said.get(rank)) and status.msg_id != mine.id
        }
        if not others:
            return None
        busy = {rank: status.cell for rank, status in others.items() if status.state == "busy"}
        ranks, hint = sorted(busy or others), ""
        run, have = ("runs", "has") if len(ranks) == 1 else ("run", "have")
        if stopped := self._client.link.lock.stopped_holder:
            who = f"process {stopped} has the execution lock, and is stopped (SIGSTOP, a debugger)"
            hint = f"Continue it with `kill -CONT {stopped}` or in its debugger, or end it."
        elif busy and ours:
            who, hint = say_busy(busy), replace_busy(ranks)
        elif busy:
            who = f"{name_ranks(ranks).capitalize()} {run} a cell of another notebook"
        elif ours:
            who = f"{name_ranks(ranks)} {run} no other cell, but {have} not begun this one"
            who = who.capitalize()
            hint = f"Stop the cell and run it again, or {replace_ranks(ranks)}"
        else:
            who = "Another notebook may be using the pool"
        self._doubted = f"Waiting to begin: {who[0].lower()}{who[1:]}."
        if not (busy or stopped) and self._doubted != before:
            return None
        return Verdict("not_joined_yet", self._doubted, ranks, stuck=False, hint=hint)

    def take(self) -> list[Publication]:
        """Return what to show once a look has ended."""
        if self._looking is None or not self._looking.done():
            return []
        error, looked = self._looking.exception(), self._looking
        self._looking, self.due = None, time.monotonic() + min(_EVERY, LIMIT / 2)
        before, self._failed = self._failed, ""
        if error:
            _LOG.warning("It could not be found out why ranks wait.", exc_info=error)
            self._failed = f"No verdict: {type(error).__name__}: {error}."
            if self._sentence or self._failed != before:  # what is shown may still be true
                return []
            self._sentence = self._failed
            return self._show(self._failed)
        verdict = looked.result()
        still = bool(self._sentence) and verdict is not None and verdict.kind == "slow"
        if verdict is None or not (verdict.concerns_all or still):
            return self.end()
        self._sentence = verdict.sentence
        return self._show(verdict.text)

    def end(self) -> list[Publication]:
        """Return what to show once no rank waits any more, if one did."""
        if not self._sentence:
            return []
        sentence, self._sentence = self._sentence, ""
        return self._show(f"The ranks no longer wait. Before: {sentence}")

    def _show(self, text: str) -> list[Publication]:
        before, self._shown = self._shown, text
        if text == before:
            return []
        if self._name is None:
            return [Text("stderr", f"{text}\n")]
        return [Display({"text/plain": text}, {}, self._name, update=bool(before))]
