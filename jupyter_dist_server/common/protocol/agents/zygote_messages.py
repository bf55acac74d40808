"""What zygotes and their owners say to each other: one JSON object a message."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...processes.process_ref import ProcessRef
from ..decode_message import reader


class ZygoteOrders(msgspec.Struct, frozen=True):
    """What a new zygote is told, as its argument."""

    socket: int
    owner: ProcessRef


class AgentOrders(msgspec.Struct, frozen=True):
    """What a new agent finds in its pool's folder, beside ``pool.json``."""

    environment: dict[bytes, bytes]
    """Bytes, as neither variables nor paths need be UTF-8, but JSON is."""
    cwd: bytes


class StartAgent(msgspec.Struct, frozen=True):
    """Fork an agent; descriptors of its listening socket, its log and its lease come along."""

    folder: str
    stay: bool
    """Whether to fork; otherwise the zygote becomes the agent itself."""


class StartRunner(msgspec.Struct, frozen=True):
    """Fork the runner of a job; the descriptors of its lease come along. There is no answer."""

    folder: str
    job: int
    launch: str


# -- what a zygote says -----------------------------------------------------------------------


class ZygoteReady(msgspec.Struct, frozen=True, tag_field="says", tag="ready"):
    """Agents can be forked: torch is imported."""


class AgentStarted(msgspec.Struct, frozen=True, tag_field="says", tag="started"):
    """Which process the agent of a pool is; `itself` says that the zygote has become it."""

    folder: str
    process: ProcessRef
    itself: bool


class ForkRefused(msgspec.Struct, frozen=True, tag_field="says", tag="refused"):
    """Why no agent is forked; another zygote is needed."""

    folder: str
    why: str


class AgentExited(msgspec.Struct, frozen=True, tag_field="says", tag="exited"):
    """How an agent that this zygote forked has ended."""

    pid: int
    code: int
    """The exit code; negative is a signal's number."""


ZygoteNews = ZygoteReady | AgentStarted | ForkRefused | AgentExited

decode_start: Callable[[bytes], StartAgent] = reader(StartAgent)
decode_start_runner: Callable[[bytes], StartRunner] = reader(StartRunner)
decode_zygote_news: Callable[[bytes], ZygoteNews] = reader(ZygoteNews)
