"""Ranks are replaced, whoever asks for it and how often."""

from __future__ import annotations

from pathlib import Path

import psutil

from jupyter_dist_server.common.protocol.agents.agent_messages import Restart

from ..pool_driver import client_of, follow, request, running


async def test_restarts_that_overlap_leave_no_rank_behind(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        agent = psutil.Process(pool.record.ranks[1].pid).parent()
        assert agent
        for ranks in ([1], [1], [0, 1], [1]):
            client.link.send(Restart(ranks))
        while pool.record.generation < 5:
            await pool.changed_since(pool.record.version, 60)
        await follow(pool)
        ranks = {rank.pid for rank in pool.record.ranks}
        assert {child.pid for child in agent.children()} == ranks
        async with client_of(pool) as anew:
            replies = await anew.execute("dist.barrier()", [0, 1], lambda *_: None)
        assert {reply.status for reply in replies.values()} == {"ok"}, replies


async def test_what_a_rank_left_in_a_session_of_its_own_ends_with_it(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool:
        code = (
            "import subprocess\n"
            "left = subprocess.Popen(['sleep', '600'], start_new_session=True)\nleft.pid"
        )
        shown: dict[int, str] = {}

        def note(rank: int, kind: str, content: dict[str, dict[str, str]]) -> None:
            if kind == "execute_result":
                shown[rank] = content["data"]["text/plain"]

        async with client_of(pool) as client:
            await client.execute(code, [0, 1], note)
        kept, ended = (psutil.Process(int(shown[rank])) for rank in (0, 1))
        await pool.commands.restart([1])
        await follow(pool)
        assert kept.is_running() and not ended.is_running()
