"""The result of a cell: which ranks finished, failed, died or were stopped."""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterator

from ...client.client import PoolClient
from ...client.execution import Execution, Reply
from ...common.processes import POOL_ENDED, RESTARTED, STOPPED
from ...common.protocol.cell_messages import ENDS_CELL
from ...common.protocol.jupyter_messages import Content
from ...common.rank_specs import format_ranks
from .publication import Display, publish

_STOPPED_BY_US = ""
_INTERRUPTS = ("KeyboardInterrupt", "CancelledError")
"""What an interrupt raises in a cell; the second where it waits for something."""
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class CellFailed(Exception):
    """A cell failed on at least one rank; shown as the first rank's traceback and one sentence."""

    def __init__(self, summary: str, traceback: list[str]) -> None:
        super().__init__(summary)
        self._lines = [*traceback, summary]

    def _render_traceback_(self) -> list[str]:
        return self._lines


class CellInterrupted(CellFailed, KeyboardInterrupt):
    """A cell was interrupted on its ranks."""


class Outcome:
    """The end of a cell.

    Parameters
    ----------
    ranks : list of int
        Where it ran.
    replies : dict
        By rank.
    errors : list
        Each different error with its ranks, see `Merger.errors`.
    execution : Execution
        What became of it.
    client : PoolClient
        Knows the state of the process group.
    interrupted : bool
        Whether somebody pressed Stop.
    limit : float or None
        Seconds after which it was stopped because it took too long.
    causes : list of str
        Sentences on why ranks failed.
    """

    def __init__(
        self,
        ranks: list[int],
        replies: dict[int, Reply],
        errors: list[tuple[list[int], Content]],
        execution: Execution,
        client: PoolClient,
        interrupted: bool,
        limit: float | None,
        causes: list[str],
    ) -> None:
        self._ranks = ranks
        self._replies = replies
        self._errors = errors
        self._execution = execution
        self._group = client.group
        self._dead = client.dead
        self._last_words = client.last_words
        self._gpus = client.gpus
        self._interrupted = interrupted
        self._limit = limit
        self._causes = causes

    def raise_failures(self) -> None:
        """Raise an error unless all went well.

        Raises
        ------
        CellFailed
            With the first traceback in full, and a sentence for each thing that went wrong.
        """
        replies = self._replies
        by_status: dict[str, list[int]] = {}
        for rank in self._ranks:
            by_status.setdefault(replies[rank].status, []).append(rank)
        if list(by_status) == ["ok"] and not self._interrupted and self._limit is None:
            return
        traceback: list[str] = []
        if self._errors:
            (ranks, first), *others = self._errors
            traceback = [f"[{format_ranks(ranks)}] failed:", *first["traceback"]]
            if others:
                publish([_folded(others)])
        for rank in by_status.get("dead", []):
            if words := self._last_words.get(rank):
                traceback += [f"[{rank}] last lines of stderr:", *words]
        sentences = " ".join(self._sentences(by_status, replies))
        if self._limit is not None:
            raise CellFailed(f"Timed out after {self._limit:g} s. {sentences}", traceback)
        if self._interrupted:
            # Also when a rank took no notice, as `!command` does: who presses Stop means all.
            raise CellInterrupted(f"Interrupted. {sentences}", traceback)
        raise CellFailed(sentences, traceback)

    def _sentences(
        self, by_status: dict[str, list[int]], replies: dict[int, Reply]
    ) -> Iterator[str]:
        if places := ", ".join(self._places()):
            yield f"{places}."
        failed: dict[str, list[int]] = {}
        for rank in by_status.get("error", []):
            error = replies[rank].content
            what = f"{error['ename']}: {error['evalue']}" if error["evalue"] else error["ename"]
            if self._was_stopped(rank, what):
                what = _STOPPED_BY_US
            elif self._group.suspect and "gloo" in what:  # whose words are for its developers
                what = "an unusable process group"
            failed.setdefault(what, []).append(rank)
        if stopped := failed.pop(_STOPPED_BY_US, []):
            yield f"{_name(stopped)} stopped; {_whose(stopped)} variables are kept."
        for what, ranks in failed.items():
            yield f"{_name(ranks)} failed with {what.rstrip('.')}."
        yield from self._causes
        causes: dict[str, list[int]] = {}
        for rank in by_status.get("dead", []):
            causes.setdefault(replies[rank].content["evalue"], []).append(rank)
        for cause, ranks in causes.items():
            if cause in (RESTARTED, STOPPED):
                yield f"{_name(ranks)} {'was' if len(ranks) == 1 else 'were'} {cause} meanwhile."
            else:
                yield f"{_name(ranks)}{self._where(ranks)} died: {cause}."
        late = by_status.get("late", [])
        if late:
            yield f"{_name(late)} did not stop{self._why_not(late)}."
        if waiting := by_status.get("aborted"):
            yield f"{_name(waiting)} had not begun: another cell runs there."
        if fine := by_status.get("ok"):
            yield f"{_name(fine)} finished; {_whose(fine)} variables are kept."
        if POOL_ENDED in causes:
            yield "Start a new pool with %dist_init."
            return
        gone = {r for cause, rs in causes.items() if cause not in (RESTARTED, STOPPED) for r in rs}
        elsewhere = set(self._dead) if self._group.suspect and failed else set()
        if lost := sorted(gone | set(late) | elsewhere):
            them = "it" if len(lost) == 1 else "them"
            yield f"Replace {them} with %dist_restart --ranks {format_ranks(lost)}."
            if late:
                yield f"{_whose(lost).capitalize()} variables are then lost."
                end = "replaced or idle" if set(lost) == set(late) else "replaced"
                are = "it is" if len(lost) == 1 else "they are"
                yield f"Collectives work again once {are} {end}."
        elif self._group.suspect and not causes:  # new ranks have a new group
            yield "The process group is no longer usable. Replace all ranks with %dist_restart."
        elif self._group.repaired:
            yield (
                "The process group was re-created; "
                "create DDP models and groups from `new_group` again."
            )

    def _where(self, ranks: list[int]) -> str:
        """Name the GPUs of ranks that died: one of them may be the cause."""
        gpus = [gpu for rank in ranks if (gpu := self._gpus[rank])]
        names = {f"GPU {gpu.index} {gpu.name}": None for gpu in gpus}
        return f" ({', '.join(names)})" if names else ""

    def _was_stopped(self, rank: int, error: str) -> bool:
        """Tell whether it was us who made a rank fail: by an interrupt, or by what we broke."""
        if not self._execution.stopping:
            return False
        place = self._execution.places.get(rank)
        return error in _INTERRUPTS or bool(
            self._execution.broke and place and place.whereabouts.is_waiting
        )

    def _why_not(self, late: list[int]) -> str:
        if self._execution.stopped.issuperset(late):
            return f": {'its process is' if len(late) == 1 else 'their processes are'} stopped"
        if any(rank in self._execution.places for rank in late):  # some thread of it answered
            return ": stuck in C code, or catching interrupts"
        return ", stuck in C code"

    def _places(self) -> Iterator[str]:
        """Say which ranks were where when the cell was stopped."""
        ranks: dict[str, list[int]] = {}
        for rank in sorted(self._execution.begun):
            place = self._execution.places.get(rank)
            if rank in self._execution.stopped:
                where = "stopped (SIGSTOP)"
            elif place is None:
                where = "in C code that holds the GIL"
            else:
                at = place.whereabouts
                code = "in backward" if at.backward else "in Python code"
                where = f"waiting in {at.call}" if at.call else code
                where += f" (line {at.line})" if at.line else ""
            ranks.setdefault(where, []).append(rank)
        for number, (where, there) in enumerate(ranks.items()):
            name = _name(there)
            verb = ("was " if len(there) == 1 else "were ") if number == 0 else ""
            yield f"{name if number == 0 else name.lower()} {verb}{where}"


def as_shown(kind: str, content: Content) -> tuple[str, Content]:
    """Return an output as it is shown at once: as text, if it is an error that ends no cell."""
    if kind != "error" or content.get(ENDS_CELL):
        return kind, content
    return "stream", {"name": "stderr", "text": "\n".join([*content["traceback"], ""])}


def _name(ranks: list[int]) -> str:
    return f"Rank {ranks[0]}" if len(ranks) == 1 else f"Ranks {format_ranks(ranks)}"


def _whose(ranks: Collection[int]) -> str:
    return "its" if len(ranks) == 1 else "their"


def _folded(errors: list[tuple[list[int], Content]]) -> Display:
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
