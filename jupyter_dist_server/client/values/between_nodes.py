"""Moving large values to and from ranks on other nodes, in pieces."""

from __future__ import annotations

import asyncio
import mmap
import uuid
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from ...common.pickling import Buffer, cut, pieces, shared_size
from ...common.protocol.jupyter_messages import Message
from ...common.protocol.ranks.parcel_messages import (
    DropRequest,
    LoadReply,
    LoadRequest,
    StoreReply,
    StoreRequest,
)
from ...common.protocol.ranks.rank_messages import PushRequest, RankRequest, SharedAddress
from ..long_requests import ask_at_length
from ..pool_client import PoolClient
from ..ranks.rank_connection import read_reply

T = TypeVar("T")

_PIECE = 4 << 20
"""Bytes of a message: what else a rank is asked waits for no more than that."""
_AT_ONCE = 4
"""Pieces on their way at once, so that a slow answer does not leave the network idle."""

Progress = Callable[[int, int, int], None]
"""Takes how many bytes have moved to or from a rank, of how many, and the rank."""


class Lost(Exception):
    """A rank has died meanwhile, or has no memory for the value."""

    def __init__(self, rank: int) -> None:
        super().__init__(rank)
        self.rank = rank


class Run(Protocol):
    """Runs a coroutine in the client's event loop, and returns its result."""

    def __call__(self, work: Coroutine[Any, Any, T], /) -> T:
        """Wait for it."""


async def send_in_pieces(
    client: PoolClient,
    request: PushRequest,
    buffers: Sequence[memoryview],
    ranks: Sequence[int],
    progress: Progress,
) -> dict[int, Message]:
    """Send a value to ranks on other nodes: once to each node, where its ranks share it.

    Ranks that have not received it are missing in the returned replies.
    """
    by_node: dict[str, list[int]] = {}
    for rank in ranks:
        by_node.setdefault(client.nodes[rank], []).append(rank)

    async def send_to(there: list[int]) -> dict[int, Message]:
        name = uuid.uuid4().hex
        try:
            memory = await _send(client, there[0], name, buffers, progress)
            shared = msgspec.structs.replace(request, memory=memory)
            return await ask_at_length(client, shared, there)
        except Lost:
            return {}
        finally:
            client.tell(DropRequest(name), there[:1])

    said = await all_of(send_to(there) for there in by_node.values())
    return {rank: message for replies in said for rank, message in replies.items()}


async def _send(
    client: PoolClient,
    rank: int,
    name: str,
    buffers: Sequence[memoryview],
    progress: Progress,
) -> SharedAddress:
    """Send buffers to a rank; return where processes of its node can read them, or raise `Lost`."""
    size = shared_size(buffer.nbytes for buffer in buffers)
    done = 0
    found: SharedAddress | None = None

    async def store(offset: int, piece: memoryview) -> None:
        nonlocal done, found
        message = await _ask(client, rank, StoreRequest(name, size, offset), [piece])
        reply = read_reply(rank, message, StoreReply)
        if not reply or not reply.memory:
            raise Lost(rank)
        done, found = done + piece.nbytes, reply.memory
        progress(done, size, rank)

    await _some_at_once(store(offset, piece) for offset, piece in pieces(buffers, _PIECE))
    assert found
    return found


async def fetch_in_pieces(
    client: PoolClient, name: str, sizes: dict[int, list[int]], progress: Progress
) -> dict[int, list[Buffer]]:
    """Return the buffers of some sizes that ranks keep; raises `Lost` if one keeps them no more."""
    loading = (_load(client, rank, name, each, progress) for rank, each in sizes.items())
    return dict(zip(sizes, await all_of(loading), strict=True))


async def _load(
    client: PoolClient, rank: int, name: str, sizes: Sequence[int], progress: Progress
) -> list[Buffer]:
    size = shared_size(sizes)
    view = memoryview(mmap.mmap(-1, size))
    done = 0

    async def fetch(offset: int) -> None:
        nonlocal done
        wanted = min(_PIECE, size - offset)
        message = await _ask(client, rank, LoadRequest(name, offset, wanted))
        reply = read_reply(rank, message, LoadReply)
        came = message["buffers"]
        if not reply or not reply.is_there or len(came) != 1 or len(came[0]) != wanted:
            raise Lost(rank)
        view[offset : offset + wanted] = came[0]
        done += wanted
        progress(done, size, rank)

    await _some_at_once(fetch(offset) for offset in range(0, size, _PIECE))
    return cut(view, sizes)


async def _ask(
    client: PoolClient, rank: int, request: RankRequest, buffers: Sequence[memoryview] = ()
) -> Message:
    replies = await ask_at_length(client, request, [rank], buffers=buffers)
    if rank not in replies:
        raise Lost(rank)
    return replies[rank]


async def _some_at_once(moves: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run a few of these at once; each starts only when it is its turn."""
    turn = iter(moves)

    async def work() -> None:
        for move in turn:
            await move

    await all_of(work() for _ in range(_AT_ONCE))


async def all_of(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of all of these; if one fails, the others are cancelled."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
