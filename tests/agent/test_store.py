"""The store of a pool's process group, beside torch's own: they do the same."""

from __future__ import annotations

import asyncio
import datetime
import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist

from jupyter_dist_server.agent.group_store import KeyValues, serve_store
from jupyter_dist_server.common.pool_folder import store_socket
from jupyter_dist_server.rank.group.pool_store import PoolStore

from ..waiting import PATIENCE

LIMIT = datetime.timedelta(seconds=PATIENCE)
SHORT = datetime.timedelta(milliseconds=50)

Client = Callable[[], PoolStore]


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """Return what makes clients of a store that is served here."""
    server = await serve_store(tmp_path, KeyValues().answer)
    made: list[PoolStore] = []

    def make() -> PoolStore:
        made.append(PoolStore(str(store_socket(tmp_path)), LIMIT, lambda: None))
        return made[-1]

    yield make
    for store in made:
        store.break_waits()
    server.close()


def use(store: dist.Store) -> list[Any]:
    """Use a store as torch does, also through C++ (`PrefixStore`); return all results."""
    inner = dist.PrefixStore("inner", store)
    said: list[Any] = []
    for each in (store, inner):
        each.set("a", "1")
        each.set("binary", b"\x00\xff")
        said += [each.get("a"), each.get("binary"), each.add("n", 5), each.add("n", -2)]
        said += [each.get("n"), each.check(["a", "n"]), each.check(["a", "none"])]
        said += [
            each.compare_set("c", "x", "y"),  # it is not there
            each.check(["c"]),
            each.compare_set("c", "", "one"),
            each.compare_set("c", "other", "two"),
            each.compare_set("c", "one", "two"),
            each.get("c"),
        ]
        each.append("log", "be")
        each.append("log", "gun")
        each.multi_set(["k1", "k2"], ["v1", "v2"])
        said += [each.multi_get(["k1", "log", "k2"]), each.has_extended_api()]
        said += [each.delete_key("a"), each.delete_key("a"), each.check(["a"])]
        each.wait(["k1", "k2"])
        try:
            each.wait(["k1", "never"], SHORT)
        except dist.DistStoreError as error:
            said.append("never" in str(error))
    return said


async def test_it_does_what_torchs_store_does(client: Client) -> None:
    torchs = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=LIMIT)
    expected = await asyncio.to_thread(use, torchs)
    assert await asyncio.to_thread(use, client()) == expected
    ours = client()
    keys = set(await asyncio.to_thread(ours.list_keys))
    assert {"n", "inner/n", "c", "inner/c"} <= keys
    assert await asyncio.to_thread(ours.num_keys) == len(keys)


async def test_who_waits_is_told_when_another_one_sets_the_key(client: Client) -> None:
    one, two = client(), client()
    waiting = asyncio.ensure_future(asyncio.to_thread(one.multi_get, ["late", "later"]))
    await asyncio.to_thread(two.set, "later", "2")
    assert not waiting.done()
    await asyncio.to_thread(two.clone().set, "late", "1")
    assert await waiting == [b"1", b"2"]


async def test_a_wait_ends_when_it_is_broken_and_so_do_those_to_come(client: Client) -> None:
    store = client()
    clone = store.clone()  # as torch makes for groups that are split off
    waits = [asyncio.ensure_future(asyncio.to_thread(one.get, "never")) for one in (store, clone)]
    while len(store._open) < len(waits):
        await asyncio.sleep(0.01)
    store.break_waits()
    later = [asyncio.to_thread(one.add, "n", 1) for one in (store, clone)]
    for work in (*waits, *later):
        with pytest.raises(dist.DistNetworkError, match="broken"):
            await work
    assert await asyncio.to_thread(client().add, "n", 1) == 1, "others go on"


async def test_threads_have_connections_of_their_own(client: Client) -> None:
    """NCCL's watchdog asks while the main thread waits."""
    store = client()
    waiting = threading.Thread(target=store.wait, args=(["go"],))
    waiting.start()
    await asyncio.to_thread(store.set, "go", b"")
    await asyncio.to_thread(waiting.join, PATIENCE)
    assert not waiting.is_alive()


async def test_large_values_and_many_waits(client: Client) -> None:
    store, size = client(), 8 << 20
    big = os.urandom(size)
    await asyncio.to_thread(store.set, "big", big)
    assert await asyncio.to_thread(store.get, "big") == big
    many = [client() for _ in range(16)]
    waits = [asyncio.ensure_future(asyncio.to_thread(one.get, "last")) for one in many[:8]]
    begun = time.monotonic()
    await asyncio.to_thread(many[8].set, "last", "now")
    assert {await wait for wait in waits} == {b"now"}
    assert time.monotonic() - begun < PATIENCE
