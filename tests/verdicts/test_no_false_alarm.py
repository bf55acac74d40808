"""Healthy ranks that are slow, and unequally so, are told nothing."""

from __future__ import annotations

import asyncio
import os
import time

from jupyter_dist_server.notebook.cells.cell_wait import evidence_on
from jupyter_dist_server.verdicts.explain_hang import explain_hang

from ..waiting import PATIENCE
from .scene import SIZE, Scene

SECONDS = float(os.environ.get("JUPYTER_DIST_SOAK") or 15)
LIMIT = 10.0
"""Seconds; no wait in the cell comes near."""
WRAP = """
from torch.nn.parallel import DistributedDataParallel as DDP
DDP(torch.nn.Linear(8, 8))
"""
"""The first time takes seconds on some ranks: torch imports its compiler."""
CELL = f"""
import random, time
from torch.nn.parallel import DistributedDataParallel as DDP
pair = dist.new_group([0, 1])
model = DDP(torch.nn.Linear(8, 8))
go_on, end = torch.ones(1), time.monotonic() + {SECONDS}
while True:
    time.sleep(random.random() * 0.05 * (1 + rank))
    work = dist.all_reduce(torch.ones(64), async_op=True)
    model(torch.ones(4, 8)).sum().backward()
    work.wait()
    if rank < 2:
        dist.broadcast(torch.ones(3), 0, group=pair)
    if rank == 1:
        dist.send(torch.ones(5), 2)
    if rank == 2:
        dist.recv(torch.ones(5), 1)
        sum(range(200_000))
    go_on.fill_(time.monotonic() < end)
    dist.broadcast(go_on, 0)
    if not go_on:
        break
"""


async def test_slow_and_unequal_ranks(scene: Scene) -> None:
    client, looks = scene.client, 0
    await scene.ok(WRAP)
    replies = asyncio.create_task(client.execute(CELL, range(SIZE), lambda *_: None))
    while not replies.done():
        verdict = explain_hang(await evidence_on(client), older_than=time.time() - LIMIT)
        # A rank that gets no processor is silent, which is said after a second look only.
        silent = verdict is not None and verdict.kind == "silent"
        assert verdict is None or silent or not verdict.concerns_all, verdict.text
        looks += 1
    ends = await asyncio.wait_for(replies, PATIENCE)
    assert {reply.status for reply in ends.values()} == {"ok"} and looks > 10


async def test_a_rank_that_cannot_read_all_of_its_evidence_tells_the_rest(scene: Scene) -> None:
    broken = ("recorded", "groups_by_name", "_message")
    await scene.ok(
        "from jupyter_dist_server.rank.waits import own_evidence as evidence\n"
        f"kept = {{name: getattr(evidence, name) for name in {broken}}}\n"
        f"for name in {broken}:\n    setattr(evidence, name, lambda *_, **__: 1 / 0)"
    )
    try:

        async def all_answer() -> None:  # a rank that gets no processor answers later
            conditions = {""}
            while conditions != {"answers"}:
                found = await evidence_on(scene.client)
                conditions = {found[rank].condition for rank in range(SIZE)}

        await asyncio.wait_for(all_answer(), PATIENCE)
    finally:
        await scene.ok("for name, read in kept.items():\n    setattr(evidence, name, read)")
