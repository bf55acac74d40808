"""Large values on their way between nodes, if somebody is slow or gives up meanwhile.

The ranks are on this machine: what they are asked is the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any

from jupyter_dist_server.client.pool_client import PoolClient
from jupyter_dist_server.client.ranks.rank_connection import read_reply
from jupyter_dist_server.client.values.push_and_pull import Mover
from jupyter_dist_server.common.pickling import PARCEL_FROM
from jupyter_dist_server.common.protocol.ranks.parcel_messages import (
    DropRequest,
    LoadReply,
    LoadRequest,
    StoreReply,
    StoreRequest,
)
from jupyter_dist_server.common.protocol.ranks.rank_messages import PullRequest, ValueReply

from ..pool_driver import client_of, linux, request, running
from ..waiting import PATIENCE

pytestmark = linux

PIECE = 4 << 20
BIG = f"import threading\ngo = threading.Event()\nbig = bytes({2 * PARCEL_FROM})"
LATE = "big if rank == 0 else (go.wait(), big)[1]"
"""A value that rank 1 has only once it may go on."""
LEFT = """import os
names = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
assert not [name for name in names if "jupyter-dist-" in name], names"""
GONE = """import time
from jupyter_dist_server.rank.variables import parcels
parcels._KEPT = 10.0
kept = get_ipython().kernel._parcels
print("begins", flush=True)
for awaited in (True, False):
    while bool(kept) != awaited:
        time.sleep(0.01)
parcels._KEPT = 60.0"""
"""Ends once a parcel was there that nobody has moved for 10 s."""

STEPS = f"""import threading
from jupyter_dist_server.rank.variables import parcels
write, may_write, written = parcels.write_piece, threading.Semaphore(2), []
def write_piece(descriptor, piece, offset):
    may_write.acquire()
    write(descriptor, piece, offset)
    written.append(offset)
parcels.write_piece = write_piece
big = bytes({5 * PIECE})"""
"""The rank copies two pieces of its value, and then one each time that it may."""
ENDED = """import os, time
may_write.release(9)
while any("jupyter-dist-" in os.path.realpath(f"/proc/self/fd/{fd}")
          for fd in os.listdir("/proc/self/fd")):
    time.sleep(0.01)
assert len(written) == 3, written"""


async def run(client: PoolClient, code: str, ranks: Iterable[int] = (0, 1)) -> None:
    replies = await client.execute(code, ranks, lambda *_: None)
    assert {reply.status for reply in replies.values()} == {"ok"}, replies


async def test_a_value_that_is_given_up_while_a_rank_makes_it_is_not_kept(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        await run(client, BIG)
        pull = PullRequest(LATE, None, {}, "late")
        question = client.ask(pull.kind, pull.content, [1], timeout=PATIENCE)
        asking = asyncio.create_task(question)
        await client.status(timeout=PATIENCE)  # the question is on its way
        client.tell(DropRequest("late"), [1])
        await client.status(timeout=PATIENCE)  # answered after that
        await run(client, "go.set()")
        said = (await asking)[1]
        reply = read_reply(1, said, ValueReply)
        assert reply and (reply.status, reply.kept, said["buffers"]) == ("failed", False, [])
        assert reply.why == "the client does not wait for it any more"
        await run(client, LEFT)


async def test_a_piece_is_sent_once_it_is_copied_and_a_value_that_is_dropped_is_copied_no_further(
    tmp_path: Path,
) -> None:
    async def load(offset: int) -> tuple[LoadReply | None, int]:
        piece = LoadRequest("copied", offset, PIECE)
        said = (await client.ask(piece.kind, piece.content, [0], timeout=PATIENCE))[0]
        return read_reply(0, said, LoadReply), sum(map(len, said["buffers"]))

    async with running(request(tmp_path, num_ranks=1)) as pool, client_of(pool) as client:
        await run(client, STEPS, [0])
        pull = PullRequest("big", None, {}, "copied")
        said = (await client.ask(pull.kind, pull.content, [0], timeout=PATIENCE))[0]
        reply = read_reply(0, said, ValueReply)
        assert reply and reply.kept
        assert await load(PIECE) == (LoadReply(True), PIECE)
        waiting = asyncio.create_task(load(4 * PIECE))
        await client.status(timeout=PATIENCE)  # answered after that was heard
        assert not waiting.done()
        client.tell(DropRequest("copied"), [0])
        assert await waiting == (LoadReply(False), 0)
        await run(client, ENDED, [0])


async def test_a_piece_of_a_parcel_that_was_dropped_begins_no_other(tmp_path: Path) -> None:
    async def store(offset: int) -> StoreReply:
        piece = StoreRequest("sent", 8192, offset)
        said = await client.ask(
            piece.kind, piece.content, [0], buffers=[bytes(4096)], timeout=PATIENCE
        )
        reply = read_reply(0, said[0], StoreReply)
        assert reply
        return reply

    async with running(request(tmp_path, num_ranks=1)) as pool, client_of(pool) as client:
        assert (await store(0)).memory and (await store(4096)).memory
        client.tell(DropRequest("sent"), [0])
        assert await store(4096) == StoreReply(None, "the parcel was dropped")
        await run(client, LEFT, [0])


async def test_a_rank_need_not_keep_its_value_until_another_one_has_its_own(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()

    def wait_for(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        await run(client, BIG)
        client.elsewhere = frozenset({0, 1})
        begun = asyncio.Event()
        watching = client.execute(GONE, [0], lambda *_: begun.set())
        gone = asyncio.create_task(watching)
        await asyncio.wait_for(begun.wait(), PATIENCE)
        pulling = asyncio.create_task(asyncio.to_thread(Mover(client, wait_for).pull, LATE, [0, 1]))
        assert {reply.status for reply in (await gone).values()} == {"ok"}
        await run(client, "go.set()", [1])
        values, _ = await pulling
        assert values == dict.fromkeys([0, 1], bytes(2 * PARCEL_FROM))
