"""The execution of one cell on ranks, from the kernel's main thread."""

from __future__ import annotations

import contextvars
import gc
import math
import queue
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager

from ...client.cell_execution import Execution, Reply
from ...client.pool_client import PoolClient
from ...common.protocol.jupyter_messages import Content
from ..loop_thread import LoopThread
from ..output.cell_outcome import Outcome
from ..output.early_failures import EarlyFailures, what_failed
from ..output.late_output import LateOutput
from ..output.merged.merge_outputs import WINDOW, Merger
from ..output.per_rank import PerRank
from ..output.publish import Publication, begin, publish
from ..output.rank_tabs import RankTabs
from .ask_what_holds_memory import explain_out_of_memory, ran_out
from .ask_what_was_begun import explain_sizes, sizes_differ
from .cell_events import ANSWERED, LOOKED, CellEvents, Event
from .cell_options import Options
from .input_questions import Questions, ask, on_sigint, withdraw
from .wait_watch import WaitWatch

MAX_DRAIN = 0.1
"""Seconds for which outputs are taken in before they are shown."""

_STOPPED = "KeyboardInterrupt"


class Cell:
    """Run code on ranks and show what they show, until all are done.

    Parameters
    ----------
    client : PoolClient
        Connected, and living in `loop`.
    loop : LoopThread
        Where the client lives.
    ranks : list of int
        Where to run.
    name : str
        Distinguishes this cell's displays from those of others.
    options : Options
        How it is run and shown.
    """

    def __init__(
        self,
        client: PoolClient,
        loop: LoopThread,
        ranks: list[int],
        name: str,
        options: Options,
    ) -> None:
        self._client = client
        self._loop = loop
        self._ranks = ranks
        self._options = options
        self._late = LateOutput()
        self._view: Merger | PerRank
        if options.per_rank:
            self._view = PerRank(ranks)
        else:
            self._view = Merger(ranks, client.world_size, name, self._late.in_notebook)
        self._tabs: RankTabs | None = None
        if self._late.cell_id and len(ranks) > 1 and not (options.per_rank or options.quiet):
            self._tabs = RankTabs(ranks, client.world_size, f"{name}-tabs")
        self._events = CellEvents(self._late, as_they_are=options.quiet)
        self._late_at: float | None = None
        """When it is stopped, as it takes too long."""
        self._took_too_long = False
        self._execution: Execution | None = None
        self._stops = 0
        """How often a stop was asked for before the loop had begun to execute."""
        self._interrupts = 0
        self._failures = EarlyFailures(ranks)
        self._questions = Questions()
        self._is_asking = False
        """Whether the main thread waits for the user's answer, and another one shows outputs."""
        self._is_withdrawn = False
        """Whether that wait was ended: all ranks have ended, or nobody could see what they show."""
        self._is_over = False
        """Whether all of the cell's events were taken."""
        why = f"{name}-why" if self._late.in_notebook else None
        self._watch = WaitWatch(client, loop, why, self._events.note_look)

    def run(self, code: str, execution_count: int | None, allow_stdin: bool) -> None:
        """Run the code.

        Parameters
        ----------
        code : str
            A cell, as IPython understands it.
        execution_count : int or None
            The notebook's number for it.
        allow_stdin : bool
            Whether the front end can be asked for ``input()``.

        Raises
        ------
        CellFailed
            If the cell failed, was interrupted, or a rank died.
        """
        begin()
        work = self._client.execute(
            code,
            self._ranks,
            self._events.hear,
            execution_count=execution_count,
            cell_id=self._late.cell_id,
            allow_stdin=allow_stdin,
            limit=self._options.limit,
            profile=self._options.profile,
            started=self._on_started,
        )
        try:
            with on_sigint(self._interrupt):  # first: a cell that has begun is always stopped
                future = self._loop.submit(work)
                if self._options.timeout:
                    self._late_at = time.monotonic() + self._options.timeout
                future.add_done_callback(self._events.end)
                try:
                    self._show_until_done()
                except BaseException:  # nobody would see what the ranks go on to do
                    self._loop.call(self._stop)
                    wait([future])
                    raise
            self._publish(self._view.take(time.monotonic(), last=True))
            if not self._interrupts:  # or it shows why somebody pressed Stop
                publish(self._watch.end())
        finally:
            self._events.leave_to_late_output()
        replies = future.result()
        bad = {r: reply for r, reply in replies.items() if reply.status not in ("ok", "aborted")}
        causes = self._explain(bad)
        assert self._execution
        limit = self._options.timeout if self._took_too_long else None
        outcome = Outcome(
            self._ranks,
            replies,
            self._view.errors,
            self._execution,
            self._client,
            self._interrupts > 0,
            limit,
            causes,
        )
        failed = bad.keys() - outcome.stopped
        self._mark_failed({rank: bad[rank].content for rank in sorted(failed)})
        outcome.raise_failures()

    def _explain(self, bad: dict[int, Reply]) -> list[str]:
        """Ask the ranks why some failed, unless somebody presses Stop: errors are shown anyway."""
        if memory := ran_out(bad):
            work = explain_out_of_memory(self._client, memory)
        elif sizes_differ(bad):
            work = explain_sizes(self._client)
        else:
            return []
        try:
            return self._loop.run(work)
        except KeyboardInterrupt:
            return []

    def _publish(self, published: list[Publication]) -> None:
        if not self._options.quiet:
            self._publish_always(published)

    def _publish_always(self, published: list[Publication]) -> None:
        publish(self._tabs.mark(published) if self._tabs else published)

    def _mark_failed(self, ends: dict[int, Content]) -> None:
        """Who was stopped on request has not failed."""
        whats = {rank: what_failed(end) for rank, end in ends.items()}
        failed = {rank: what for rank, what in whats.items() if not what.startswith(_STOPPED)}
        if self._tabs:
            publish(self._tabs.fail(failed))

    def _on_started(self, execution: Execution) -> None:
        self._execution = self._watch.execution = execution
        for _ in range(self._stops):
            self._client.stop(execution)

    def _show_until_done(self) -> None:
        while not self._is_over:
            self._show()
            self._ask(time.monotonic())

    def _show(self) -> None:
        """Show what has come, and wait for what comes next."""
        now = time.monotonic()
        self._publish(self._view.take(now))
        self._announce(now)
        self._check_limit(now)
        looks = not (self._interrupts or self._is_asking)  # or it is known why ranks wait
        if looks:
            self._watch.look(now)
        times = [
            self._view.next_time(now),
            self._failures.due,
            self._late_at,
            None if self._is_asking else self._questions.due,
            self._watch.due if looks else None,
        ]
        # A limit that the user has set may be infinite; queues cannot wait for that.
        wake = min((t for t in times if t is not None and t < math.inf), default=None)
        try:
            event = self._events.next(None if wake is None else max(0.0, wake - now))
        except queue.Empty:
            return
        with _without_collections():
            self._drain(event, now)

    def _drain(self, event: Event | None, now: float) -> None:
        """Take what has come."""
        while event is not None:
            self._take(*event)
            if time.monotonic() - now > MAX_DRAIN:
                return  # ranks that print without pause must not keep us from showing it
            try:
                event = self._events.next(0)
            except queue.Empty:
                return
        self._is_over = True

    def _check_limit(self, now: float) -> None:
        """Stop a cell that takes too long."""
        if self._late_at is not None and now >= self._late_at:
            self._late_at, self._took_too_long = None, True
            self._loop.call(self._stop)

    def _take(self, rank: int, kind: str, content: Content) -> None:
        if kind == ANSWERED:  # it has only to wake whoever shows outputs meanwhile
            return
        if kind == LOOKED:
            if not self._interrupts:
                publish(self._watch.take())
            return
        if self._options.results is not None:
            self._options.results.add(rank, kind, content)
        if kind == "finished":
            self._view.finish(rank, time.monotonic())
            self._failures.finish(rank, content, time.monotonic())
        elif kind == "input_request":
            # Others may be about to show the same, and ask.
            at = time.monotonic() + (WINDOW if len(self._ranks) > 1 else 0)
            self._questions.add(rank, content, at)
        else:
            self._view.feed(rank, kind, content, time.monotonic())

    def _announce(self, now: float) -> None:
        """Say that a rank failed while others still run."""
        if self._failures.due and now >= self._failures.due:
            said, failed = self._failures.take()
            if not self._interrupts:  # or that is what they were asked for
                self._publish_always([*said])
                self._mark_failed(failed)

    def _ask(self, now: float) -> None:
        """Ask what a rank asks, below all that came before."""
        if question := self._questions.take(now):
            rank, request = question
            if not self._interrupts and self._failures.is_running(rank):
                self._publish(self._view.take_all(rank, now))
                self._answer(rank, request)

    def _answer(self, rank: int, request: Content) -> None:
        """Ask in the main thread, as kernels only can; another one shows what ranks print."""
        self._is_asking = True
        context = contextvars.copy_context()  # a kernel finds the running cell in it
        with ThreadPoolExecutor(1, "jupyter-dist-show") as thread:
            asking = threading.current_thread()
            shown = thread.submit(context.run, self._show_until_answered, asking)
            try:
                value = ask(rank, request, lambda: not (self._is_withdrawn or self._interrupts))
            except KeyboardInterrupt:
                self._interrupt()
            else:
                if value is not None:
                    self._loop.call(self._client.send_input, rank, value, request["parent"])
            finally:
                self._is_asking = False
                self._events.note_answer()
        try:
            shown.result()
        finally:
            self._is_withdrawn = False

    def _show_until_answered(self, asking: threading.Thread) -> None:
        """Show what ranks print, until the thread `asking` has the answer, or all have ended.

        A prompt of a rank that has died stays while others run: front ends are not told that one
        is withdrawn, and the answer to it would go to whoever asks next.
        """
        try:
            while self._is_asking and not self._is_over:
                self._show()
        finally:  # nobody needs the answer, or nobody could see what goes on
            if self._is_asking:
                self._is_withdrawn = True
                withdraw(asking)

    def _interrupt(self, *_: object) -> None:
        """Stop the ranks, gently first; each further time, go on to the next step at once."""
        if self._is_withdrawn:  # not by the user
            return
        self._interrupts += 1
        self._loop.call(self._stop)

    def _stop(self) -> None:
        if self._execution:
            self._client.stop(self._execution)
        else:
            self._stops += 1


@contextmanager
def _without_collections() -> Iterator[None]:
    """Put off garbage collection: of many new lines, each pass would look at all again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
