"""A mistake in what is told of outputs keeps no cell from ending, and none are kept too long."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from pathlib import Path

import pytest

from jupyter_dist_server.server.pools.execute import run_limited
from jupyter_dist_server.server.pools.outputs import Collected

from ..pool_driver import client_of, request, running
from ..waiting import PATIENCE


async def test_a_callback_that_raises_keeps_no_cell_from_ending(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        async with running(request(tmp_path)) as pool, client_of(pool) as client:

            def fail(*_: object) -> None:
                raise RuntimeError("a mistake of ours")

            work = client.execute("for i in range(3):\n    display(i)", [0, 1], fail)
            replies = await asyncio.wait_for(work, PATIENCE)
            assert {reply.status for reply in replies.values()} == {"ok"}

            assert await client.execute("1", [], fail) == {}

            client.comm_listener = Faulty()  # type: ignore[misc]
            code = "from ipykernel.comm import Comm\nComm('t')\nprint('later')"
            replies = await asyncio.wait_for(
                client.execute(code, [0, 1], lambda *_: None), PATIENCE
            )
            assert {reply.status for reply in replies.values()} == {"ok"}
    assert "Handling an output" in caplog.text and "on channel iopub failed" in caplog.text


async def test_outputs_of_a_request_are_not_kept_after_its_answer(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        outputs = Collected([0, 1])
        kept = weakref.ref(outputs)
        gone = asyncio.Event()
        statuses = await run_limited(client, "print(1)", [0, 1], None, outputs.add, gone)
        assert statuses == {0: "ok", 1: "ok"} and "1\\n" in "".join(outputs.pieces(statuses))
        del outputs
        gc.collect()
        assert kept() is None


async def test_a_thread_that_still_prints_is_heard_after_many_cells(tmp_path: Path) -> None:
    start = """import threading
go, gone = threading.Event(), threading.Event()
def print_on():
    while True:
        go.wait()
        go.clear()
        print("late")
        gone.set()
threading.Thread(target=print_on, daemon=True).start()
"""
    shown, all_shown = 0, asyncio.Event()

    def count(_: int, kind: str, content: dict[str, str]) -> None:
        nonlocal shown
        shown += content["text"].count("late") if kind == "stream" else 0
        if shown == 100:
            all_shown.set()

    async with running(request(tmp_path, num_ranks=1)) as pool, client_of(pool) as client:
        await client.execute(start, [0], count)
        for _ in range(100):
            await client.execute("go.set(); gone.wait(); gone.clear()", [0], lambda *_: None)
        await asyncio.wait_for(all_shown.wait(), PATIENCE)


class Faulty:
    def heard(self, *_: object) -> None:
        raise RuntimeError("another mistake of ours")

    def lost(self, *_: object) -> None:
        pass
