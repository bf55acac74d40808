"""The process group on real ranks: broken, made again, and known to be whole or not."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import psutil
import pytest
from torch.distributed import ProcessGroup

from jupyter_dist_server.client.cell_execution import Execution, Reply
from jupyter_dist_server.client.pool_client import PoolClient
from jupyter_dist_server.client.stop_cell import interrupter_of
from jupyter_dist_server.common.patience import patience
from jupyter_dist_server.common.protocol.ranks.rank_messages import (
    BreakRequest,
    CancelRequest,
    RankRequest,
    RegroupReply,
    RegroupRequest,
)

from ..pool_driver import client_of, follow, request, running, text_of
from ..waiting import PATIENCE

REDUCE = "t = torch.ones(1)\ndist.all_reduce(t)\nassert t.item() == world_size"
UNCONNECTED = "[Tt]imed out|Connect timeout|has disconnected|remote worker (hanging|crashing)"
"""What gloo says if it does not connect a group in time, and of a rank that has given up."""


async def groups(client: PoolClient) -> set[str | None]:
    return {said.group for said in (await client.status(PATIENCE)).values()}


async def reduce(client: PoolClient) -> set[str]:
    replies = await client.execute(REDUCE, range(client.world_size), lambda *_: None)
    return {reply.status for reply in replies.values()}


async def test_a_broken_group_is_made_again_before_the_next_cell(tmp_path: Path) -> None:
    async with running(request(tmp_path, num_ranks=3)) as pool, client_of(pool) as client:
        assert await reduce(client) == {"ok"}
        (before,) = await groups(client)
        client.group.break_up()
        assert await groups(client) == {None}
        assert await reduce(client) == {"ok"}
        (after,) = await groups(client)
        assert after and before and after.partition(":")[0] != before.partition(":")[0]


async def test_a_new_client_finds_out_that_the_group_is_broken(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool:
        async with client_of(pool) as one:
            one.group.break_up()
            assert await groups(one) == {None}
        async with client_of(pool) as two:
            assert await reduce(two) == {"ok"}


async def test_a_break_that_comes_late_leaves_a_newer_group_alone(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool:
        async with client_of(pool) as client:
            old = client.link.generation
        await pool.commands.restart([1])
        await follow(pool)
        async with client_of(pool) as client:
            assert await reduce(client) == {"ok"}
            client.tell(BreakRequest(old))
            assert None not in await groups(client)
            assert await reduce(client) == {"ok"}


async def test_a_break_that_comes_late_to_a_rank_leaves_the_group_made_since_alone(
    tmp_path: Path,
) -> None:
    """A rank that was stopped hears of it as it meets the others again, who would wait for it."""
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        (before,) = await groups(client)
        old = str(before).partition(":")[0]
        late = BreakRequest(client.link.generation, old)
        client.tell(late)
        assert await groups(client) == {None}
        client.group.suspect = True
        assert await reduce(client) == {"ok"}
        client.tell(late)
        (now,) = await groups(client)
        assert now and not now.startswith(f"{old}:")


async def test_a_break_that_an_order_to_meet_overtook_leaves_the_new_group_alone(
    tmp_path: Path,
) -> None:
    """They come over two channels; the rank closed what others in the new group connected to."""
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        overtaken = BreakRequest(client.link.generation, sent=time.monotonic())
        client.group.break_up()
        assert await reduce(client) == {"ok"}
        (new,) = await groups(client)
        client.tell(overtaken)
        assert new and await groups(client) == {new}
        client.tell(msgspec.structs.replace(overtaken, sent=time.monotonic()))
        assert await groups(client) == {None}


async def test_who_stops_a_cell_breaks_the_group_that_it_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        (before,) = await groups(client)
        calls = (await client.status(PATIENCE, [0]))[0].calls
        told: list[RankRequest] = []
        tell = client.tell
        monkeypatch.setattr(client, "tell", lambda order: (told.append(order), tell(order)))
        started: list[Execution] = []
        begun = asyncio.Event()
        cell = client.execute(
            "print('in')\ndist.barrier()", [0], lambda *_: begun.set(), started=started.append
        )
        hanging = asyncio.create_task(cell)
        await begun.wait()
        # Until it waits in gloo, it would be interrupted in Python, and no group broken.
        while (await client.status(PATIENCE, [0]))[0].calls == calls:
            pass
        client.stop(started[0])
        assert (await hanging)[0].status == "error"
        (group,) = {order.group for order in told if isinstance(order, BreakRequest)}
        assert group == str(before).partition(":")[0]


async def test_a_stale_order_to_meet_is_not_obeyed(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        (before,) = await groups(client)
        order = RegroupRequest("late", generation=1, world_size=2, until=time.time() - 1)
        await client.request(order, RegroupReply, timeout=PATIENCE)
        assert await groups(client) == {before}


async def test_a_rank_that_nobody_meets_gives_up_and_the_next_try_succeeds(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        order = RegroupRequest("alone", generation=1, world_size=2, until=time.time() + 5)
        alone = await client.request(order, RegroupReply, [0], timeout=PATIENCE)
        assert "here/1" in alone[0].failure
        client.group.suspect = True
        assert await reduce(client) == {"ok"}


async def test_a_rank_that_comes_when_another_has_given_up_gives_up_too(tmp_path: Path) -> None:
    """It would wait in torch for half an hour, and run no cell; nobody could see why."""
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        for rank, seconds in ((1, 0.5), (0, 60.0)):
            order = RegroupRequest(
                "missed", generation=1, world_size=2, until=time.time() + seconds
            )
            replies = await client.request(order, RegroupReply, [rank], timeout=PATIENCE)
            assert replies[rank].failure
        client.group.suspect = True
        assert await reduce(client) == {"ok"}


async def test_a_rank_that_waits_in_torch_is_freed_once_others_give_up(tmp_path: Path) -> None:
    """It went on as all were there, one of which failed then."""
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        pool_store = "get_ipython().kernel.group._meeting._current"
        seen = f"store = dist.PrefixStore('jupyter_dist/alone', {pool_store})\n"
        await text_of(client, f"{seen}store.set('here/1', '')", 1)
        order = RegroupRequest("alone", generation=1, world_size=2, until=time.time() + PATIENCE)
        (waits,) = client.begin(order.kind, order.content, [0], channel="shell").values()
        while None not in await groups(client):  # until it has left the old one
            pass
        client.group.suspect = True
        assert await reduce(client) == {"ok"}, "the cell has waited for the next try"
        assert RegroupReply(**(await waits)["content"]).failure


async def test_an_interrupt_does_not_keep_a_rank_from_meeting_the_others(tmp_path: Path) -> None:
    """gloo on the others would wait for it, for hours."""
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        order = RegroupRequest("met", generation=1, world_size=2, until=time.time() + PATIENCE)
        (waits,) = client.begin(order.kind, order.content, [0], channel="shell").values()
        while None not in await groups(client):  # until it has left the old one
            pass
        async with interrupter_of(client.folder, client.link) as interrupter:
            await interrupter.interrupt(Execution(range(2), lambda *_: None))
        replies = await client.request(order, RegroupReply, [1], timeout=PATIENCE)
        assert not replies[1].failure and not RegroupReply(**(await waits)["content"]).failure
        assert await reduce(client) == {"ok"}


async def test_an_interrupt_of_whatever_runs_that_comes_late_leaves_the_next_cell_alone(
    tmp_path: Path,
) -> None:
    async with running(request(tmp_path, num_ranks=1)) as pool, client_of(pool) as client:
        begun, go = asyncio.Event(), tmp_path / "go"
        wait = (
            f"import os, time\nprint('in')\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)"
        )
        cell = asyncio.create_task(client.execute(wait, [0], lambda *_: begun.set()))
        await begun.wait()
        since = (await client.status(PATIENCE))[0].since
        client.tell(CancelRequest("", sent=since - 0.01))
        assert (await client.status(PATIENCE))[0].state == "busy"  # it has heard both
        go.touch()
        assert (await cell)[0].status == "ok"
        go.unlink()
        begun.clear()
        cell = asyncio.create_task(client.execute(wait, [0], lambda *_: begun.set()))
        await begun.wait()
        client.tell(CancelRequest("", sent=time.time()))
        assert (await cell)[0].status == "error"


async def test_ranks_that_wait_for_a_stopped_agent_are_freed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they ask the store passes through the agent."""
    monkeypatch.setitem(vars(patience), "end", 0.0)
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        assert await reduce(client) == {"ok"}
        agent = psutil.Process(pool.record.ranks[0].pid).parent()
        assert agent
        agent.suspend()
        try:
            client.group.break_up()
            replies = await client.execute("print('ran')", [0, 1], lambda *_: None)
            assert {reply.status for reply in replies.values()} == {"ok"}
        finally:
            agent.resume()
        monkeypatch.undo()
        assert await reduce(client) == {"ok"}


HOLDS_THE_GIL = """
import ctypes, os, threading, time
def hold():
    while not os.path.exists("hold"):
        time.sleep(0.01)
    open("held", "w").close()
    ctypes.PyDLL(None).usleep(1_200_000)
threading.Thread(target=hold).start()
"""
FAILS_MEANWHILE = """
import os, time
open("hold", "w").close()
while not os.path.exists("held"):
    time.sleep(0.01)
raise ValueError
"""


async def test_a_rank_that_is_slow_to_answer_is_not_said_to_run_a_cell(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        await text_of(client, HOLDS_THE_GIL)
        replies = await client.execute(FAILS_MEANWHILE, [1], lambda *_: None)
        assert replies[1].status == "error"
        assert client.group.busy == {}


SHOWS_SLOWLY = """
import os, time
tracebacks = get_ipython().InteractiveTB
def slow(*arguments, **options):
    del tracebacks.structured_traceback
    open("shows", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.01)
    return tracebacks.structured_traceback(*arguments, **options)
tracebacks.structured_traceback = slow
"""


async def test_a_rank_that_shows_an_error_is_at_no_line_of_its_cell(tmp_path: Path) -> None:
    """The line of our own code was told as the cell's."""
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        await text_of(client, SHOWS_SLOWLY)
        cell = asyncio.create_task(client.execute("raise ValueError", [0], lambda *_: None))
        while not (tmp_path / "shows").exists():
            await asyncio.sleep(0.05)
        at = (await client.status(PATIENCE, [0]))[0].whereabouts
        (tmp_path / "go").touch()
        assert (await cell)[0].status == "error"
        assert at.line is None and not at.call


async def test_ranks_that_hang_for_somebody_else_are_freed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vars(patience), "cleanup", PATIENCE)
    async with (
        running(request(tmp_path)) as pool,
        client_of(pool) as one,
        client_of(pool) as two,
    ):
        begun = asyncio.Event()
        cell = one.execute("print('in')\ndist.barrier()", [0], lambda *_: begun.set())
        hanging = asyncio.create_task(cell)
        await begun.wait()
        assert await two.stop_all() == []
        assert (await hanging)[0].status == "error"
        assert await reduce(two) == {"ok"}


MISMATCHED = """
print("in")
for _ in range(5):
    dist.barrier(dist.new_group([0, 3] if rank in (0, 3) else [1, 2]))
"""
"""All ranks have to call `new_group` for each group: here some meet others than they want."""
IN_STORE = "print('in')\ndist.new_group([0, 1], use_local_synchronization=True)"


@pytest.mark.parametrize(("cell", "ranks"), [(MISMATCHED, [0, 1, 2, 3]), (IN_STORE, [0])])
async def test_ranks_that_hang_while_a_group_is_made_are_freed_at_once(
    tmp_path: Path, cell: str, ranks: list[int]
) -> None:
    """They wait in the store, or in gloo for who does not connect; nothing was lost by it."""
    async with running(request(tmp_path, num_ranks=4)) as pool, client_of(pool) as client:
        await text_of(client, "kept = rank", 2)
        begun = asyncio.Event()
        started: list[Execution] = []
        hanging = asyncio.create_task(
            client.execute(cell, ranks, lambda *_: begun.set(), started=started.append)
        )
        await begun.wait()
        inside = [True]
        while len(inside) > 0:  # those that hang are in C++, and call for nothing new
            status = await client.status(PATIENCE, ranks)
            waits = {r: said.whereabouts.call for r, said in status.items() if said.state == "busy"}
            inside = [call for call in waits.values() if call not in ("new_group", "barrier")]
        client.stop(started[0])
        replies = await hanging
        assert "late" not in {reply.status for reply in replies.values()}
        assert await reduce(client) == {"ok"}
        assert await text_of(client, "print(kept)", 2) == "2\n"


async def test_a_cell_is_begun_on_no_rank_while_one_runs_a_stopped_cell(tmp_path: Path) -> None:
    """Its collectives would fail on the others."""
    stuck = """
import os, time
print("in")
while not os.path.exists("go"):
    try:
        time.sleep(0.01)
    except KeyboardInterrupt:
        pass
"""
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        begun = asyncio.Event()
        started: list[Execution] = []
        cell = client.execute(stuck, [1], lambda *_: begun.set(), started=started.append)
        hanging = asyncio.create_task(cell)
        await begun.wait()
        client.stop(started[0])
        assert (await hanging)[1].status == "late"
        shown: list[str] = []
        nxt = client.execute(f"print('next')\n{REDUCE}", [0, 1], lambda *_: shown.append("next"))
        waiting = asyncio.create_task(nxt)
        while client.group.running != {1}:
            await asyncio.sleep(0.05)
        alone = await client.status(PATIENCE, [0])
        assert alone[0].state == "idle" and not shown
        (tmp_path / "go").touch()
        assert {reply.status for reply in (await waiting).values()} == {"ok"}


async def test_torchs_own_store_can_be_used_instead(tmp_path: Path) -> None:
    wanted = request(tmp_path, env={"JUPYTER_DIST_STORE": "tcp"})
    async with running(wanted) as pool, client_of(pool) as client:
        assert any("TCPStore" in notice for notice in pool.record.notices)
        store = "dist.distributed_c10d._get_default_store().underlying_store"
        assert "TCPStore" in await text_of(client, f"print({store}.underlying_store)")
        begun = asyncio.Event()
        started: list[Execution] = []
        hanging = asyncio.create_task(
            client.execute(IN_STORE, [0], lambda *_: begun.set(), started=started.append)
        )
        await begun.wait()
        client.stop(started[0])
        assert (await hanging)[0].status == "error"
        assert await reduce(client) == {"ok"}
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        assert pool.record.notices == []
        assert "PoolStore" in await text_of(client, f"print({store}.underlying_store)")


def _skip_unconnected(replies: Mapping[int, Reply]) -> None:
    said = [reply.content["evalue"] for reply in replies.values() if reply.status != "ok"]
    assert all(re.search(UNCONNECTED, why) for why in said), said
    if said:  # in plain torch 2.13 too, on a busy machine
        pytest.skip(f"gloo did not connect a group that was split: {said[0]}")


async def test_ranks_that_hang_in_a_group_split_off_are_freed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`DeviceMesh` splits groups where they are bound to a GPU."""
    if not hasattr(ProcessGroup, "split_group"):
        pytest.skip("this torch splits no groups")
    monkeypatch.setitem(vars(patience), "cleanup", PATIENCE)
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        split = "import datetime\nlimit = datetime.timedelta(seconds=20)\n"
        split += "half = dist.group.WORLD.split_group([0, 1], limit, None, '{}', '')"
        replies = await client.execute(split.format("half"), [0, 1], lambda *_: None)
        _skip_unconnected(replies)
        begun = asyncio.Event()
        cell = client.execute("print('in')\nhalf.barrier().wait()", [0], lambda *_: begun.set())
        hanging = asyncio.create_task(cell)
        await begun.wait()
        assert await client.stop_all() == []
        assert (await hanging)[0].status == "error"
        assert await reduce(client) == {"ok"}
        replies = await client.execute(split.format("of a new one"), [0, 1], lambda *_: None)
        _skip_unconnected(replies)
        assert {reply.status for reply in replies.values()} == {"ok"}, replies


async def test_ranks_are_replaced_one_by_one(tmp_path: Path) -> None:
    async with running(request(tmp_path, num_ranks=3)) as pool:
        pids = [rank.pid for rank in pool.record.ranks]
        port = ""
        for replaced in ([1], [0], [0, 2]):
            async with client_of(pool) as client:
                for rank in range(3):
                    await text_of(client, "kept = True", rank)
                port = port or await text_of(client, "import os; print(os.environ['MASTER_PORT'])")
            await pool.commands.restart(replaced)
            await follow(pool)
            async with client_of(pool) as client:
                assert await reduce(client) == {"ok"}
                for rank in range(3):
                    known = await text_of(client, "print('kept' in globals())", rank)
                    assert known == f"{rank not in replaced}\n"
                code = "import os; print(os.environ['MASTER_PORT'])"
                assert await text_of(client, code) == port
            now = [rank.pid for rank in pool.record.ranks]
            assert [r for r in range(3) if now[r] != pids[r]] == replaced
            pids = now
