"""The result of a cell: which ranks finished, failed, died or were stopped."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import msgspec

from ...client.cell_execution import Execution, Reply
from ...client.pool_client import PoolClient
from ...common.processes.process_ref import POOL_ENDED, RESTARTED, STOPPED
from ...common.protocol.jupyter_messages import Content
from ...common.protocol.ranks.cell_messages import ENDS_CELL, INTERRUPTED_AT, LOST_CUDA
from ...common.protocol.ranks.rank_messages import Whereabouts
from ...common.rank_specs import format_ranks, name_ranks
from .publish import Display, publish
from .remedies import ranks_on_lost_nodes, replace_busy, say_busy, say_lost_nodes
from .stop_result import (
    Errors,
    folded_details,
    folded_errors,
    in_notebooks_colours,
    one_sentence,
    places,
)
from .without_addresses import alike

_INTERRUPTS = ("KeyboardInterrupt", "CancelledError")
"""What an interrupt raises in a cell; the second in one that awaits something."""


class CellFailed(Exception):
    """A cell failed on at least one rank; shown as the first rank's traceback and one sentence."""

    stop_details: Display | None = None
    """Folded details below the error of a stopped cell."""

    def __init__(self, summary: str, traceback: list[str]) -> None:
        super().__init__(summary)
        self._lines = [*traceback, summary]

    def _render_traceback_(self) -> list[str]:
        return [in_notebooks_colours(line) for line in self._lines]


class CellInterrupted(CellFailed, KeyboardInterrupt):
    """A cell was interrupted on its ranks."""

    def for_future(self) -> CellFailed:
        """Return the same without `KeyboardInterrupt`, which ends event loops that await it."""
        failure = CellFailed(str(self), self._lines[:-1])
        failure.stop_details = self.stop_details
        return failure


@dataclass
class Outcome:
    """How a cell has ended."""

    ranks: list[int]
    replies: dict[int, Reply]
    errors: Errors
    """See `Merger.errors`."""
    execution: Execution
    client: PoolClient
    interrupted: bool
    limit: float | None
    """Seconds after which the cell was stopped because it took too long."""
    causes: list[str]
    """Sentences on why ranks failed."""

    def __post_init__(self) -> None:
        replies, execution = self.replies, self.execution
        self._group = self.client.group
        self._at = {
            rank: msgspec.convert(reply.content[INTERRUPTED_AT], Whereabouts)
            for rank, reply in replies.items()
            if INTERRUPTED_AT in reply.content
        }
        self._at |= {
            rank: place.whereabouts
            for rank, place in execution.places.items()
            if place.whereabouts.line or rank not in self._at
        }
        self._places = places(execution, self._at)
        self.stopped = {rank for rank, reply in replies.items() if self._was_stopped(reply)}
        """Ranks on which the cell was stopped, so it has not failed there."""

    def raise_failures(self) -> None:
        """Raise `CellFailed` with the first traceback, and sentences on all that went wrong."""
        replies = self.replies
        by_status: dict[str, list[int]] = {}
        for rank in self.ranks:
            by_status.setdefault(replies[rank].status, []).append(rank)
        if list(by_status) == ["ok"] and not self.interrupted and self.limit is None:
            return
        stops = [error for error in self.errors if self.stopped.issuperset(error[0])]
        errors = [error for error in self.errors if not self.stopped.issuperset(error[0])]
        traceback: list[str] = []
        if errors:
            (ranks, first), *further = errors
            traceback = [f"[{format_ranks(ranks)}] failed:", *first["traceback"]]
            if further:
                publish([folded_errors(further)])
        for rank in by_status.get("dead", []):
            if words := self.client.last_words.get(rank):
                traceback += [f"[{rank}] last lines of stderr:", *words]
        sentences = " ".join(self._sentences(by_status))
        # The user who presses Stop means all ranks, also one that ignores it and finishes.
        interrupted = self.interrupted or (
            self.limit is None and (bool(self.stopped) or self.execution.stopping)
        )
        if not interrupted and self.limit is None:
            raise CellFailed(sentences, traceback)
        why = "Interrupted" if self.limit is None else f"Timed out after {self.limit:g} s"
        summary, untold = f"{why}. {sentences}", ""
        others = set(self.ranks) - self.stopped - set(by_status.get("ok", []))
        if not (others or self._group.suspect):
            summary = one_sentence(
                why,
                self.ranks,
                self._places,
                stopped=bool(self.stopped),
                repaired=self._group.repaired,
            )
            untold = sentences
        failure = (CellInterrupted if interrupted else CellFailed)(summary, traceback)
        failure.stop_details = folded_details(untold, stops)
        raise failure

    def _sentences(self, by_status: dict[str, list[int]]) -> Iterator[str]:
        replies = self.replies
        if said := ", ".join(self._places):
            yield f"{said[0].upper()}{said[1:]}."
        failed: dict[str, dict[int, str]] = {}
        for rank in by_status.get("error", []):
            if rank in self.stopped:
                continue
            # The traceback has the other lines.
            what = _what(replies[rank].content).partition("\n")[0].rstrip(": ")
            if self._group.suspect and "gloo" in what:  # its errors are for its developers
                what = "an unusable process group"
            failed.setdefault(alike(what), {})[rank] = what
        if stopped := sorted(self.stopped):
            yield f"{_who(stopped)} stopped; {_whose(stopped)} variables are kept."
        for common, whats in failed.items():
            what = common if len(set(whats.values())) > 1 else next(iter(whats.values()))
            yield f"{_who([*whats])} failed with {what.rstrip('.')}."
        causes: dict[str, list[int]] = {}
        for rank in by_status.get("dead", []):
            causes.setdefault(replies[rank].content["evalue"], []).append(rank)
        for cause, ranks in causes.items():
            if cause in (RESTARTED, STOPPED):
                were = "was" if len(ranks) == 1 else "were"
                yield f"{_who(ranks)} {were} {cause} meanwhile."
            else:
                yield f"{_who(ranks)}{self._where(ranks)} died: {cause}."
        if without_cuda := [rank for rank in self.ranks if LOST_CUDA in replies[rank].content]:
            where = self._where(without_cuda)
            yield f"CUDA no longer works on {name_ranks(without_cuda)}{where}."
        yield from self.causes
        late = by_status.get("late", [])
        if late:
            yield f"{_who(late)} did not stop{self._why_not(late)}."
        if waiting := by_status.get("aborted"):
            yield f"{_who(waiting)} had not begun."
        if fine := by_status.get("ok"):
            yield f"{_who(fine)} finished; {_whose(fine)} variables are kept."
        if POOL_ENDED in causes:
            yield "Start a new pool with %dist_init."
            return
        gone = {r for cause, rs in causes.items() if cause not in (RESTARTED, STOPPED) for r in rs}
        stops = failed or self.stopped
        elsewhere = set(self.client.dead) if self._group.suspect and stops else set()
        lost = gone | set(late) | elsewhere | {*without_cuda}
        if on_lost_nodes := lost.intersection(ranks_on_lost_nodes(self.client)):
            yield say_lost_nodes(self.client)
            lost -= on_lost_nodes
        if lost:
            them = f"rank{'s' * (len(lost) > 1)} {format_ranks(lost)}"
            yield f"Replace {them} with %dist_restart --ranks {format_ranks(lost)}."
            if late or without_cuda:
                yield f"{_whose(lost).capitalize()} variables are then lost."
            if without_cuda:
                yield (
                    "CUDA reports errors late. To see the line that caused this one, "
                    "start ranks with %dist_init --env CUDA_LAUNCH_BLOCKING=1."
                )
            if late:
                end = "replaced or idle" if lost == set(late) else "replaced"
                are = "it is" if len(lost) == 1 else "they are"
                yield f"Collectives work again once {are} {end}."
        elif self._group.busy:  # so the group could not be checked
            yield f"{say_busy(self._group.busy)}. {replace_busy(self._group.busy)}"
        # New ranks will have a new group.
        elif self._group.suspect and not (causes or on_lost_nodes or self.client.dead):
            yield (
                "The process group could not be re-created yet; the next cell tries it again. "
                "If that fails too, replace all ranks with %dist_restart."
            )
        elif self._group.repaired:
            yield (
                "The process group was re-created; "
                "create DDP models and groups from `new_group` again."
            )

    def _where(self, ranks: list[int]) -> str:
        """Name the GPUs of ranks that died: one of them may be the cause."""
        nodes = {rank: f" of node {name}" for rank, name in self.client.nodes.items()}
        names = {
            f"GPU {gpu.index} {gpu.name}{nodes.get(rank, '')}": None
            for rank in ranks
            if (gpu := self.client.gpus[rank])
        }
        return f" ({', '.join(names)})" if names else ""

    def _was_stopped(self, reply: Reply) -> bool:
        """Tell whether a rank failed because of a stop, which may break the process group."""
        if reply.status != "error":
            return False
        by_us, at = self.execution.stopping, self._at.get(reply.rank)
        if _what(reply.content) in _INTERRUPTS:
            return by_us or at is not None
        broke = self.execution.broke if by_us else self._group.suspect or self._group.repaired
        return broke and at is not None and at.is_waiting

    def _why_not(self, late: list[int]) -> str:
        if self.execution.stopped.issuperset(late):
            return f": {'its process is' if len(late) == 1 else 'their processes are'} stopped"
        if any(rank in self.execution.places for rank in late):  # another thread answered
            return ": stuck in C code, or catching interrupts"
        return ", stuck in C code"


def as_shown(kind: str, content: Content) -> tuple[str, Content]:
    """Return an output as it is shown at once: an error that does not end its cell as text."""
    if kind != "error" or content.get(ENDS_CELL):
        return kind, content
    text = in_notebooks_colours("\n".join([*content["traceback"], ""]))
    return "stream", {"name": "stderr", "text": text}


def _what(error: Content) -> str:
    return f"{error['ename']}: {error['evalue']}" if error["evalue"] else str(error["ename"])


def _who(ranks: list[int]) -> str:
    return name_ranks(ranks).capitalize()


def _whose(ranks: Collection[int]) -> str:
    return "its" if len(ranks) == 1 else "their"
