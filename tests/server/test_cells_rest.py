"""What the server remembers of cells, with real ranks."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from tornado.websocket import WebSocketClientConnection

from ..waiting import PATIENCE, wait_for
from .client import Client
from .stream import Frame, connect, read_until


def cells_of(client: Client, pool_id: str) -> list[dict[str, Any]]:
    """Return what is known of a pool's cells."""
    return [cell for cell in client.get("cells")["cells"] if cell["pool"] == pool_id]


async def next_cells(stream: WebSocketClientConnection) -> Frame:
    """Return the next frame with cells."""
    return (await read_until(stream, lambda frame: frame["type"] == "cells"))[-1]


def states(pool: dict[str, Any]) -> list[str]:
    """Return what each rank does."""
    return [rank["state"] for rank in pool["ranks"]]


async def test_cells_are_known_while_they_run_and_after_their_pool(client: Client) -> None:
    kernel = client.raw("POST", "api/kernels", body={"name": "python3"}).body["id"]
    pool_id = client.start(kernel_id=kernel, num_ranks=2)["id"]
    assert cells_of(client, pool_id) == []
    stream = await connect(client)
    await stream.write_message('{"watch": ["cells"]}')
    first = await next_cells(stream)
    assert first["complete"]

    client.execute(pool_id, "1")
    both = []
    while len(both) < 2 or not all(one["end"] for one in both):
        news = await next_cells(stream)
        assert not news["complete"]
        (done,) = news["cells"]  # one request, one cell
        both = done["stretches"]
    assert {one["rank"] for one in both} == {0, 1}
    assert all(one["start"] <= one["end"] for one in both)

    options = {"timeout": PATIENCE, "ranks": [0]}
    work = threading.Thread(target=client.execute, args=(pool_id, "while True: 1"), kwargs=options)
    work.start()
    busy = await asyncio.to_thread(
        client.wait_until, pool_id, lambda pool: states(pool) == ["busy", "idle"]
    )
    rank = busy["ranks"][0]
    running = {
        "id": rank["msg_id"],
        "pool": pool_id,
        "kernel_id": kernel,
        "name": "",
        "cell": None,
        "cell_id": None,
        "stretches": [{"rank": 0, "gpu": None, "start": rank["since"], "end": None, "lanes": None}],
    }
    assert cells_of(client, pool_id) == [done, running]
    client.post(f"pools/{pool_id}/interrupt", {}, 202)
    await asyncio.to_thread(work.join)
    idle = client.wait_until(pool_id, lambda pool: states(pool) == ["idle", "idle"])
    ended = running["stretches"][0] | {"end": idle["ranks"][0]["since"]}
    compute = ended["end"] - rank["since"]
    lanes = {
        "compute": [[rank["since"], ended["end"]]],
        "communication": [],
        "waiting": [],
        "seconds": {"compute": compute, "communication": 0.0, "waiting": 0.0},
    }
    about = {"start": rank["since"], "end": ended["end"], "lanes": lanes}
    client.post(f"pools/{pool_id}/lanes", {"ranks": [{"rank": 0, **about}]}, 200)
    known = [done, running | {"stretches": [ended | {"lanes": lanes}]}]
    assert cells_of(client, pool_id) == known

    client.raw("DELETE", f"api/kernels/{kernel}")
    wait_for(lambda: client.call("GET", f"pools/{pool_id}").status == 404, "the end of the pool")
    assert cells_of(client, pool_id) == known
    # Whoever begins to look gets all of it.
    await stream.write_message('{"watch": []}')
    await stream.write_message('{"watch": ["cells"]}')
    again = await next_cells(stream)
    while not again["complete"]:
        again = await next_cells(stream)
    assert [cell for cell in again["cells"] if cell["pool"] == pool_id] == known
    stream.close()
