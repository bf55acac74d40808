"""A pool with `--check`: what does not fit together is an error that names both sides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from jupyter_dist_server.client.cell_execution import Reply

from ..pool_driver import client_of, request, running
from ..waiting import PATIENCE
from .scene import Scene

SIZE = 2


@pytest.fixture(scope="module")
async def checked(tmp_path_factory: pytest.TempPathFactory, zygote: None) -> AsyncIterator[Scene]:
    asked = request(tmp_path_factory.mktemp("checked"), num_ranks=SIZE, check=True)
    async with running(asked) as pool, client_of(pool) as client:
        yield Scene(client)


async def run(checked: Scene, cell: str) -> list[Reply]:
    work = checked.client.execute(cell, range(SIZE), lambda *_: None)
    return list((await asyncio.wait_for(work, PATIENCE)).values())


@pytest.mark.parametrize(
    ("cell", "sides"),
    [
        ("dist.all_reduce(torch.ones(20 + 10 * rank))", ["TensorShape=[20]", "TensorShape=[30]"]),
        (
            "x = torch.ones(20)\ndist.all_reduce(x.double() if rank else x)",
            ["TensorDtypes=Float", "TensorDtypes=Double"],
        ),
        (
            "x = torch.ones(20)\ndist.broadcast(x, 0) if rank else dist.all_reduce(x)",
            ["OpType=ALLREDUCE", "OpType=BROADCAST"],
        ),
    ],
    ids=["shape", "dtype", "operation"],
)
async def test_a_mismatch_is_an_error(checked: Scene, cell: str, sides: list[str]) -> None:
    for reply in await run(checked, cell):
        assert reply.status == "error", reply.content
        said = str(reply.content["evalue"])
        assert all(side in said for side in sides), said
    after = "x = torch.ones(4)\ndist.all_reduce(x)\nassert x.sum() == 8"
    assert [reply.status for reply in await run(checked, after)] == ["ok"] * SIZE


async def test_what_torch_does_besides_contradicts_nothing(checked: Scene) -> None:
    """It compares the ranks by collectives and messages of its own."""
    before = "for _ in range(5):\n    dist.all_reduce(torch.ones(4))\n"
    cell = (
        f"{before}if rank:\n    import time\n    time.sleep(600)\ndist.all_reduce(torch.ones(20))"
    )
    async with checked.runs(cell, range(SIZE)):
        await checked.until(lambda verdict: "`time.sleep`" in verdict.sentence, "a verdict")
