"""What zygotes and those who have them fork say to each other: one JSON object a message."""

from __future__ import annotations

import msgspec

from ..processes import ProcessRef
from .decoding import decode


class ZygoteOrders(msgspec.Struct, frozen=True):
    """What a new zygote is told, as its argument."""

    socket: int
    """Descriptor of the socket to its owner."""
    owner: ProcessRef


class AgentOrders(msgspec.Struct, frozen=True):
    """What a new agent finds in its pool's folder, beside ``pool.json``."""

    environment: dict[str, str]
    cwd: str


class StartAgent(msgspec.Struct, frozen=True):
    """Fork an agent; descriptors of its listening socket, its log and its lease come along."""

    folder: str
    """The pool's private folder."""
    stay: bool
    """Whether to fork; otherwise the zygote becomes the agent itself."""


class StartRunner(msgspec.Struct, frozen=True):
    """Fork the runner of a job; the descriptors of its lease come along. There is no answer."""

    folder: str
    """The store's."""
    job: int
    launch: str
    """Names this attempt."""


# -- what a zygote says -----------------------------------------------------------------------


class ZygoteReady(msgspec.Struct, frozen=True, tag_field="says", tag="ready"):
    """Agents can be forked: torch is imported."""


class AgentStarted(msgspec.Struct, frozen=True, tag_field="says", tag="started"):
    """Which process the agent of a pool is."""

    folder: str
    process: ProcessRef
    itself: bool
    """Whether it is the zygote, which has become the agent."""


class ForkRefused(msgspec.Struct, frozen=True, tag_field="says", tag="refused"):
    """Why no agent is forked; another zygote is needed."""

    folder: str
    why: str


class AgentExited(msgspec.Struct, frozen=True, tag_field="says", tag="exited"):
    """How an agent ended that this zygote forked."""

    pid: int
    code: int
    """The exit code; negative is a signal's number."""


ZygoteNews = ZygoteReady | AgentStarted | ForkRefused | AgentExited

_requests: msgspec.json.Decoder[StartAgent] = msgspec.json.Decoder(StartAgent)
_runners: msgspec.json.Decoder[StartRunner] = msgspec.json.Decoder(StartRunner)
_news: msgspec.json.Decoder[ZygoteNews] = msgspec.json.Decoder(ZygoteNews)


def decode_start(message: bytes) -> StartAgent:
    """Read what a zygote is asked for.

    Raises
    ------
    ValueError
        If it is nothing that an owner would ask for.
    """
    return decode(_requests, message)


def decode_start_runner(message: bytes) -> StartRunner:
    """Read what the zygote of runners is asked for.

    Raises
    ------
    ValueError
        If it is nothing that a dispatcher would ask for.
    """
    return decode(_runners, message)


def decode_zygote_news(message: bytes) -> ZygoteNews:
    """Read what a zygote says.

    Raises
    ------
    ValueError
        If it is nothing that a zygote would say.
    """
    return decode(_news, message)
