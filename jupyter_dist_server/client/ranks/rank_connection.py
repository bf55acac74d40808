"""Sends requests to the ranks of a pool, and takes their replies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...common.errors import DistError
from ...common.processes.why_silent import RANK_PHRASES, Cause
from ...common.protocol.jupyter_messages import Content, Message
from ...common.protocol.ranks.rank_messages import (
    RankRequest,
    RankStatus,
    Reply,
    StatusRequest,
    read_content,
)
from ...common.rank_specs import format_ranks, name_ranks
from .rank_sockets import RankSockets, output_topics

_LOG = logging.getLogger(__name__)


def rank_silent(causes: Mapping[int, Cause], world_size: int) -> DistError:
    """Say why ranks do not respond, and which ranks could be used instead."""
    one = len(causes) == 1
    them = format_ranks(causes)
    others = format_ranks(set(range(world_size)) - causes.keys())
    instead = f", or run the cell on the others with %%rank {others}" if others else ""
    phrases = list(dict.fromkeys(RANK_PHRASES[cause] for cause in causes.values()))
    why = f"{'it is' if one else 'they are'} {' or '.join(phrases)}"
    hint = f"Replace {'it' if one else 'them'} with %dist_restart --ranks {them}"
    if set(causes.values()) == {"starved"}:
        hint = "Try again when other programs use the processors less"
    return DistError(
        "rank_silent",
        f"{'Rank' if one else 'Ranks'} {them} {'does' if one else 'do'} not respond: {why}.",
        f"{hint}{instead}.",
    )


def rank_died(ranks: Sequence[int], why: str) -> DistError:
    """Return what to raise if ranks died that were asked, the first one for this reason."""
    return DistError(
        "rank_dead",
        f"{name_ranks(ranks).capitalize()} died: {why}.",
        f"Replace {'it' if len(ranks) == 1 else 'them'} with %dist_restart, "
        "or choose other ranks with --ranks.",
    )


def read_reply(rank: int, message: Message, form: type[Reply]) -> Reply | None:
    """Return what a rank has replied; `None`, and a line in the log, if it is malformed."""
    content = message["content"]
    try:
        return read_content(content, form)
    except ValueError as error:
        why = content.get("evalue", error) if isinstance(content, dict) else error
        kind = message["header"]["msg_type"]
        _LOG.error("The %s of rank %s cannot be used: %s", kind, rank, why)
        return None


def read_replies(messages: Mapping[int, Message], form: type[Reply]) -> dict[int, Reply]:
    """Return what ranks have replied, without those that replied something else."""
    replies = {rank: read_reply(rank, message, form) for rank, message in messages.items()}
    return {rank: reply for rank, reply in replies.items() if reply is not None}


def read_replies_or_why(messages: Mapping[int, Message], form: type[Reply]) -> dict[int, Reply]:
    """Return what ranks have replied; ``failed``, and why, for those that replied something else.

    Replies of this form have a `status`, and say `why`.
    """
    return {
        rank: read_reply(rank, message, form)
        or read_content({"status": "failed", "why": _why_no_reply(message)}, form)
        for rank, message in messages.items()
    }


def _why_no_reply(message: Message) -> str:
    """Return the error that a rank has sent instead of a reply, in one line."""
    content = message["content"]
    error = content.get("evalue") if isinstance(content, dict) else None
    said = str(error or "").strip().partition("\n")[0].rstrip(". :")
    return said or "its reply is malformed, see the log"


def replies_of(answers: Mapping[int, asyncio.Future[Message]]) -> dict[int, Message]:
    """Return the replies that have come so far, by rank."""
    return {
        rank: answer.result()
        for rank, answer in answers.items()
        if answer.done() and not answer.cancelled()
    }


class RankConnection(RankSockets):
    """A connection to all ranks of one pool, for requests to them."""

    def __init__(self, folder: Path, channels: Collection[str] = ("control",)) -> None:
        super().__init__(folder, channels, output_topics)
        self.subshells: dict[int, str] = {}
        self._answers: dict[tuple[str, int], asyncio.Future[Message]] = {}

    def on_message(self, rank: int, channel: str, message: Message) -> None:
        """Take a reply; subclasses take whatever else a rank says."""
        answer = self._answers.get((message["parent_header"].get("msg_id", ""), rank))
        if channel == "iopub" or not answer:
            self.on_news(rank, channel, message)
        elif not answer.done():
            answer.set_result(message)

    def on_news(self, rank: int, channel: str, message: Message) -> None:
        """Take a message that is no reply; for subclasses."""

    def begin(
        self,
        kind: str,
        content: Content,
        ranks: Iterable[int],
        *,
        channel: str = "control",
        buffers: Sequence[Any] = (),
        header: Content | None = None,
    ) -> dict[int, asyncio.Future[Message]]:
        """Send one request to ranks; return the futures of their replies."""
        message = self.session.msg(kind, content)
        message["header"] |= header or {}
        request, loop = message["header"]["msg_id"], asyncio.get_running_loop()
        answers: dict[int, asyncio.Future[Message]] = {rank: loop.create_future() for rank in ranks}
        for rank, answer in answers.items():
            self._answers[request, rank] = answer
            answer.add_done_callback(partial(self._forget, (request, rank)))
        self.send(message, answers, channel, buffers)
        return answers

    def _forget(self, request: tuple[str, int], _: object) -> None:
        del self._answers[request]

    async def ask(
        self,
        kind: str,
        content: Content,
        ranks: Iterable[int] | None = None,
        *,
        channel: str = "control",
        buffers: Sequence[Any] = (),
        header: Content | None = None,
        timeout: float | None,
    ) -> dict[int, Message]:
        """Send one request to ranks and wait for their replies.

        The channel ``control`` is answered while a cell runs, ``shell`` after it. `header` is added
        to the message's header. Without a timeout, it is for the caller to notice that a rank is
        stopped, as `ask_at_length` does. Returns the messages by rank, without the ranks that died
        or did not answer in time.
        """
        living = self._living(ranks)
        answers = self.begin(kind, content, living, channel=channel, buffers=buffers, header=header)
        try:
            if answers:
                await asyncio.wait(answers.values(), timeout=timeout)
            return replies_of(answers)
        finally:
            for answer in answers.values():
                answer.cancel()

    async def request(
        self,
        request: RankRequest,
        form: type[Reply],
        ranks: Iterable[int] | None = None,
        *,
        timeout: float,
    ) -> dict[int, Reply]:
        """Send one of our own requests to ranks, as `ask` does; return valid replies by rank."""
        said = await self.ask(
            request.kind, request.content, ranks, channel=request.channel, timeout=timeout
        )
        return read_replies(said, form)

    def tell(self, request: RankRequest, ranks: Iterable[int] | None = None) -> None:
        """Send a request without a reply to the control channel of living ranks."""
        living = self._living(ranks)
        self.send(self.session.msg(request.kind, request.content), living, "control")

    def _living(self, ranks: Iterable[int] | None) -> list[int]:
        chosen = range(self.world_size) if ranks is None else ranks
        return [rank for rank in chosen if rank not in self.dead]

    async def status(
        self, timeout: float = 2.0, ranks: Iterable[int] | None = None
    ) -> dict[int, RankStatus]:
        """Ask living ranks for their status; those that do not answer in time are left out."""
        return await self.request(StatusRequest(), RankStatus, ranks, timeout=timeout)

    async def close(self) -> None:
        """Disconnect; the ranks go on."""
        self.give_up()
        await super().close()

    def give_up(self, rank: int | None = None) -> None:
        """Expect no more replies from one rank, or from all."""
        for (_, asked), answer in list(self._answers.items()):
            if rank in (None, asked):
                answer.cancel()
