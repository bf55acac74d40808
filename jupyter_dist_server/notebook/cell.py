"""One cell on its way through the ranks, seen from the kernel's main thread."""

from __future__ import annotations

import getpass
import html
import queue
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..pools.client import PoolClient
from ..pools.execution import Execution, Reply
from ..pools.processes import RESTARTED, STOPPED
from ..pools.ranks import format_ranks
from .loop import LoopThread
from .merge import Merger
from .publication import Display, Text, publish

INTERRUPT_PATIENCE = 0.8
"""Seconds for which interrupted ranks are waited for; the cell then ends without them."""

MAX_DRAIN = 0.1
"""Seconds for which outputs are taken in before they are shown."""
ANNOUNCE_AFTER = 1.0
"""Seconds after which a rank's failure is said although others still run."""

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_Event = tuple[int, str, dict[str, Any]]


class CellFailed(Exception):
    """A cell failed on at least one rank; shown as the first rank's traceback and one sentence."""

    def __init__(self, summary: str, traceback: list[str]) -> None:
        super().__init__(summary)
        self._lines = [*traceback, summary]

    def _render_traceback_(self) -> list[str]:
        return self._lines


class CellInterrupted(CellFailed, KeyboardInterrupt):
    """A cell was interrupted on its ranks."""


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
    """

    def __init__(self, client: PoolClient, loop: LoopThread, ranks: list[int], name: str) -> None:
        self._client = client
        self._loop = loop
        self._ranks = ranks
        self._merger = Merger(ranks, client.world_size, name)
        self._events: queue.SimpleQueue[_Event | None] = queue.SimpleQueue()
        self._execution: Execution | None = None
        self._interrupts = 0
        self._finished: set[int] = set()
        self._failed: dict[int, dict[str, Any]] = {}
        self._announce_at: float | None = None
        self._give_up_at: float | None = None

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
        work = self._client.execute(
            code,
            self._ranks,
            lambda *event: self._events.put(event),
            execution_count=execution_count,
            allow_stdin=allow_stdin,
            started=self._on_started,
        )
        future = self._loop.submit(work)
        future.add_done_callback(lambda _: self._events.put(None))
        with _on_sigint(self._interrupt):
            self._show_until_done()
        replies = future.result() if future.done() else self._abandon()
        publish(self._merger.take(time.monotonic(), last=True))
        self._raise_failures(replies)

    def _on_started(self, execution: Execution) -> None:
        self._execution = execution

    def _show_until_done(self) -> None:
        while True:
            now = time.monotonic()
            publish(self._merger.take(now))
            self._announce(now)
            if self._give_up_at and now >= self._give_up_at:
                return
            times = [self._merger.next_time(now), self._give_up_at, self._announce_at]
            wake = min((moment for moment in times if moment is not None), default=None)
            try:
                event = self._events.get(timeout=None if wake is None else max(0.0, wake - now))
            except queue.Empty:
                continue
            while event is not None:
                self._take(*event)
                if time.monotonic() - now > MAX_DRAIN:
                    break  # ranks that print without pause must not keep us from showing it
                try:
                    event = self._events.get_nowait()
                except queue.Empty:
                    break
            else:
                return

    def _take(self, rank: int, kind: str, content: dict[str, Any]) -> None:
        if kind == "finished":
            self._merger.finish(rank, time.monotonic())
            self._finished.add(rank)
            if content["status"] != "ok":
                self._failed[rank] = content
                self._announce_at = self._announce_at or time.monotonic() + ANNOUNCE_AFTER
        elif kind == "input_request":
            publish(self._merger.take(time.monotonic()))
            self._answer(rank, content)
        elif kind != "interrupt":
            self._merger.feed(rank, kind, content, time.monotonic())

    def _announce(self, now: float) -> None:
        """Say that a rank failed while others still run: they may wait for it in a collective."""
        if self._announce_at and now >= self._announce_at:
            for rank, end in self._failed.items():
                others = format_ranks(set(self._ranks) - self._finished)
                what = f"{end['ename']}: {end['evalue']}".removeprefix("RankDied: ").strip(": ")
                text = f"[{rank}] failed ({what}); ranks still running: {others}.\n"
                publish([Text("stderr", text)] if others else [])
            self._failed.clear()
            self._announce_at = None

    def _answer(self, rank: int, request: dict[str, Any]) -> None:
        prompt = f"[{rank}] {request['prompt']}"
        try:
            with _on_sigint(signal.default_int_handler):
                value = getpass.getpass(prompt) if request["password"] else input(prompt)
        except KeyboardInterrupt:
            self._interrupt()
        else:
            self._loop.call(self._client.send_input, rank, value, request["parent"])

    def _interrupt(self, *_: object) -> None:
        """Interrupt the ranks; the second time, stop waiting for them."""
        self._interrupts += 1
        if self._execution:
            self._loop.call(self._client.cancel, self._execution)
        patience = INTERRUPT_PATIENCE if self._interrupts == 1 else 0.0
        self._give_up_at = time.monotonic() + patience
        self._events.put((-1, "interrupt", {}))  # wakes the waiting main thread

    def _abandon(self) -> dict[int, Reply]:
        assert self._execution is not None
        late = self._execution.outstanding
        replies = dict(self._execution.replies)
        for rank in late:
            self._loop.call(self._execution.lose, rank, "nobody waits for it any more")
        begun = self._execution.begun
        return replies | {r: Reply(r, "late" if r in begun else "aborted") for r in late}

    # -- how it ended -----------------------------------------------------------------------

    def _raise_failures(self, replies: dict[int, Reply]) -> None:
        by_status: dict[str, list[int]] = {}
        for rank in self._ranks:
            by_status.setdefault(replies[rank].status, []).append(rank)
        if list(by_status) == ["ok"] and not self._interrupts:
            return
        traceback: list[str] = []
        if self._merger.errors:
            (ranks, first), *others = self._merger.errors
            traceback = [f"[{format_ranks(ranks)}] failed:", *first["traceback"]]
            if others:
                publish([_folded(others)])
        sentences = " ".join(self._sentences(by_status, replies))
        if self._interrupts:
            # Also when a rank took no notice, as `!command` does: who presses Stop means all.
            raise CellInterrupted(f"Interrupted. {sentences}", traceback)
        raise CellFailed(sentences, traceback)

    def _sentences(
        self, by_status: dict[str, list[int]], replies: dict[int, Reply]
    ) -> Iterator[str]:
        for ranks, first in self._merger.errors:
            if self._interrupts and first["ename"] == "KeyboardInterrupt":
                yield f"{_name(ranks)} stopped; {_whose(ranks)} variables are kept."
                continue
            what = f"{first['ename']}: {first['evalue']}" if first["evalue"] else first["ename"]
            yield f"{_name(ranks)} failed with {what}."
        causes: dict[str, list[int]] = {}
        for rank in by_status.get("dead", []):
            causes.setdefault(replies[rank].content["evalue"], []).append(rank)
        for cause, ranks in causes.items():
            if cause in (RESTARTED, STOPPED):
                yield f"{_name(ranks)} {'was' if len(ranks) == 1 else 'were'} {cause} meanwhile."
            else:
                yield f"{_name(ranks)} died: {cause}."
        if late := by_status.get("late"):
            yield (
                f"{_name(late)} did not stop within {INTERRUPT_PATIENCE:g} s, stuck in a "
                "collective or in C code: interrupt again, or replace all ranks with %dist_restart."
            )
        if waiting := by_status.get("aborted"):
            yield f"{_name(waiting)} had not begun: another cell runs there."
        if fine := by_status.get("ok"):
            yield f"{_name(fine)} finished; {_whose(fine)} variables are kept."
        if set(causes) - {RESTARTED, STOPPED}:
            yield "Replace all ranks with %dist_restart."


def _name(ranks: list[int]) -> str:
    return f"Rank {ranks[0]}" if len(ranks) == 1 else f"Ranks {format_ranks(ranks)}"


def _whose(ranks: list[int]) -> str:
    return "its" if len(ranks) == 1 else "their"


def _folded(errors: list[tuple[list[int], dict[str, Any]]]) -> Display:
    """Return further errors as one line each, their tracebacks one click away."""
    plain, rich = [], []
    for ranks, error in errors:
        line = f"[{format_ranks(ranks)}] {error['ename']}: {error['evalue']}"
        trace = _ANSI.sub("", "\n".join(error["traceback"]))
        plain.append(line)
        rich.append(
            f"<details><summary>{html.escape(line)}</summary>"
            f"<pre>{html.escape(trace)}</pre></details>"
        )
    return Display({"text/plain": "\n".join(plain), "text/html": "".join(rich)})


@contextmanager
def _on_sigint(handler: Callable[..., Any]) -> Iterator[None]:
    """Handle the kernel's interrupt; a no-op outside the main thread, where none arrives."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
