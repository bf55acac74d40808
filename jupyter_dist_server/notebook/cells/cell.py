"""The execution of one cell on ranks, from the kernel's main thread."""

from __future__ import annotations

import contextvars
import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from ...client.cell_execution import Execution, Reply
from ...client.pool_client import OUTPUT_LIMIT, PoolClient
from ...common.protocol.jupyter_messages import Content
from ...common.protocol.ranks.rank_messages import ProfileOptions
from ..loop_thread import LoopThread
from ..output.cell_outcome import Outcome
from ..output.early_failures import EarlyFailures, what_failed
from ..output.late_output import LateOutput
from ..output.merged.merge_outputs import WINDOW, Merger
from ..output.per_rank import PerRank
from ..output.publish import Publication, begin, publish
from ..output.rank_tabs import RankTabs
from .cell_events import ANSWERED, LOOKED, CellEvents, Event
from .cell_wait import WaitWatch
from .explain_failure import explain_failure
from .input_questions import ask, on_sigint, withdraw


@dataclass(frozen=True)
class Options:
    """How a cell is run and shown."""

    per_rank: bool = False
    """Show rank after rank, and merge nothing."""
    quiet: bool = False
    """Show nothing but errors."""
    tabs: bool = True
    """Whether JupyterLab may show a tab for each rank."""
    timeout: float | None = None
    """Seconds after which the cell is stopped."""
    limit: int = OUTPUT_LIMIT
    """Characters that all ranks together may show; the rest goes to files."""
    profile: ProfileOptions | None = None
    compared: bool = False
    """Whether its profile is compared with the cell's last one."""
    source: str | None = None
    """The editor's path of the cell, while the debugger is on."""
    takers: tuple[Callable[[int, str, Content], None], ...] = ()
    """Called with each rank's outputs."""


class Cell:
    """Run code on ranks and show what they show, until all are done."""

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
        has_tabs = options.tabs and not (options.per_rank or options.quiet)
        if self._late.cell_id and len(ranks) > 1 and has_tabs:
            self._tabs = RankTabs(ranks, client.world_size, f"{name}-tabs")
        self._events = CellEvents(self._late, as_they_are=options.quiet)
        self._late_at: float | None = None
        """When it is stopped because it takes too long, unless the debugger stops ranks."""
        self._took_too_long = False
        self._future: Future[dict[int, Reply]]
        self._execution: Execution | None = None
        self._stops = 0
        """How many stops were requested before the loop had begun to execute."""
        self._interrupts = 0
        self._failures = EarlyFailures(ranks)
        self._questions: deque[tuple[float, int, Content]] = deque()
        """When each question may be asked, its rank, and the question."""
        self._is_asking = False
        """Whether the main thread waits for the user's answer, while another one shows outputs."""
        self._is_withdrawn = False
        """Whether that wait was ended: all ranks have ended, or their output cannot be shown."""
        self._is_over = False
        why = f"{name}-why" if self._late.in_notebook else None
        self._watch = WaitWatch(client, loop, why, lambda: self._events.note(LOOKED))

    def run(self, code: str, execution_count: int | None, allow_stdin: bool) -> None:
        """Run the code; raise `CellFailed` if it failed, was interrupted, or a rank died."""
        with on_sigint(self.interrupt):  # first: a cell that has begun is always stopped
            self.start(code, execution_count, allow_stdin)
            self.show()
        self.raise_failures()

    def start(
        self, code: str, execution_count: int | None = None, allow_stdin: bool = False
    ) -> None:
        """Begin to run the code."""
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
            source=self._options.source,
            started=self._on_started,
        )
        self._future = self._loop.submit(work)
        if self._options.timeout:
            self._late_at = time.monotonic() + self._options.timeout - self._client.halts.seconds
        self._future.add_done_callback(self._events.end)

    def show(self) -> None:
        """Show what the ranks show, and ask what they ask, until all are done."""
        try:
            while not self._is_over:
                self._show()
                self._ask(time.monotonic())
            self._publish(self._view.take(time.monotonic(), last=True))
            if not self._interrupts:  # otherwise it shows why the user pressed Stop
                publish(self._watch.end())
        except BaseException:  # the ranks must not go on unseen
            self._loop.call(self._stop)
            wait([self._future])
            raise
        finally:
            self._events.leave_to_late_output()

    def raise_failures(self) -> None:
        """Raise `CellFailed` unless all went well."""
        replies = self._future.result()
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
        try:
            return self._loop.run(explain_failure(self._client, bad)) if bad else []
        except KeyboardInterrupt:  # the errors are shown anyway
            return []

    def _publish(self, published: list[Publication], *, always: bool = False) -> None:
        if always or not self._options.quiet:
            publish(self._tabs.mark(published) if self._tabs else published)

    def _mark_failed(self, ends: dict[int, Content]) -> None:
        whats = {rank: what_failed(end) for rank, end in ends.items()}
        # A rank that was stopped on request has not failed.
        failed = {r: what for r, what in whats.items() if not what.startswith("KeyboardInterrupt")}
        if self._tabs:
            publish(self._tabs.fail(failed))

    def _on_started(self, execution: Execution) -> None:
        self._execution = self._watch.execution = execution
        for _ in range(self._stops):
            self._client.stop(execution)

    def _show(self) -> None:
        """Show what has come, and wait for what comes next."""
        now = time.monotonic()
        self._publish(self._view.take(now))
        self._announce(now)
        late_at = self._when_late()
        if late_at is not None and now >= late_at:
            self._late_at = late_at = None
            self._took_too_long = True
            self._loop.call(self._stop)
        looks = not (self._interrupts or self._is_asking)  # or it is known why ranks wait
        if looks:
            self._watch.look(now)
        times = [
            self._view.next_time(now),
            self._failures.due,
            late_at,
            self._questions[0][0] if self._questions and not self._is_asking else None,
            self._watch.due if looks else None,
        ]
        # A limit that the user has set may be infinite; queues cannot wait for that.
        wake = min((t for t in times if t is not None and t < math.inf), default=None)
        try:
            event = self._events.next(None if wake is None else max(0.0, wake - now))
        except queue.Empty:
            return
        self._drain(event, now)

    def _when_late(self) -> float | None:
        """Return when the cell takes too long; while a rank is stopped, when to look again."""
        if self._late_at is None:
            return None
        late_at = self._late_at + self._client.halts.seconds
        return late_at + 1.0 if self._client.halts.is_running else late_at

    def _drain(self, event: Event | None, now: float) -> None:
        while event is not None:
            self._take(*event)
            if time.monotonic() - now > 0.1:
                return  # show it in between, even if ranks print without pause
            try:
                event = self._events.next(0)
            except queue.Empty:
                return
        self._is_over = True

    def _take(self, rank: int, kind: str, content: Content) -> None:
        if kind == ANSWERED:  # it only wakes the thread that shows outputs
            return
        if kind == LOOKED:
            if not self._interrupts:
                publish(self._watch.take())
            return
        for take in self._options.takers:
            take(rank, kind, content)
        if kind == "finished":
            self._view.finish(rank, time.monotonic())
            self._failures.finish(rank, content, time.monotonic())
        elif kind == "input_request":
            # Others may be about to show the same, and ask.
            at = time.monotonic() + (WINDOW if len(self._ranks) > 1 else 0)
            self._questions.append((at, rank, content))
        else:
            self._view.feed(rank, kind, content, time.monotonic())

    def _announce(self, now: float) -> None:
        """Say that a rank failed while others still run."""
        if self._failures.due and now >= self._failures.due:
            said, failed = self._failures.take()
            if not self._interrupts:  # otherwise they were asked to
                self._publish([*said], always=True)
                self._mark_failed(failed)

    def _ask(self, now: float) -> None:
        """Ask a rank's question, below all output that came before."""
        if self._questions and now >= self._questions[0][0]:
            _, rank, request = self._questions.popleft()
            if not self._interrupts and self._failures.is_running(rank):
                self._publish(self._view.take_all(rank, now))
                self._answer(rank, request)

    def _answer(self, rank: int, request: Content) -> None:
        """Ask in the main thread, as kernels require; another one shows what ranks print."""
        self._is_asking = True
        context = contextvars.copy_context()  # a kernel finds the running cell in it
        with ThreadPoolExecutor(1, "jupyter-dist-show") as thread:
            asking = threading.current_thread()
            shown = thread.submit(context.run, self._show_until_answered, asking)
            try:
                value = ask(rank, request, lambda: not (self._is_withdrawn or self._interrupts))
            except KeyboardInterrupt:
                self.interrupt()
            else:
                if value is not None:
                    self._loop.call(self._client.send_input, rank, value, request["parent"])
            finally:
                self._is_asking = False
                self._events.note(ANSWERED)
        try:
            shown.result()
        finally:
            self._is_withdrawn = False

    def _show_until_answered(self, asking: threading.Thread) -> None:
        """Show what ranks print, until the thread `asking` has the answer, or all have ended.

        A dead rank's prompt stays while others run: a front end cannot be told that it is
        withdrawn, so the answer to it would go to the next prompt.
        """
        try:
            while self._is_asking and not self._is_over:
                self._show()
        finally:  # the answer is not needed, or output cannot be shown
            if self._is_asking:
                self._is_withdrawn = True
                withdraw(asking)

    def interrupt(self, *_: object) -> None:
        """Stop the ranks, gently first; each further call goes on to the next step at once."""
        if self._is_withdrawn:  # the signal is ours
            return
        self._interrupts += 1
        self._loop.call(self._stop)

    def _stop(self) -> None:
        if self._execution:
            self._client.stop(self._execution)
        else:
            self._stops += 1
