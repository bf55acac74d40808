"""What the server remembers of cells, with real ranks."""

from __future__ import annotations

import threading
from typing import Any

from ..waiting import wait_for
from .client import Client


def stretches(client: Client, pool_id: str) -> list[dict[str, Any]]:
    """Return what is known of a pool's cells, by rank and start."""
    (pool,) = [pool for pool in client.get("cells")["pools"] if pool["id"] == pool_id]
    return sorted(pool["stretches"], key=lambda one: (one["rank"], one["start"]))


def states(pool: dict[str, Any]) -> list[str]:
    """Return what each rank does."""
    return [rank["state"] for rank in pool["ranks"]]


def test_cells_are_known_while_they_run_and_after_their_pool(client: Client) -> None:
    kernel = client.raw("POST", "api/kernels", body={"name": "python3"}).body["id"]
    pool_id = client.start(kernel_id=kernel, num_ranks=2)["id"]
    assert pool_id not in [pool["id"] for pool in client.get("cells")["pools"]]

    client.execute(pool_id, "1", ranks=[1])
    options = {"timeout": 0.5, "ranks": [0]}
    work = threading.Thread(target=client.execute, args=(pool_id, "while True: 1"), kwargs=options)
    work.start()
    busy = client.wait_until(pool_id, lambda pool: states(pool) == ["busy", "idle"])
    running, done = stretches(client, pool_id)
    assert running == {
        "rank": 0,
        "gpu": None,
        "cell": None,
        "cell_id": None,
        "start": busy["ranks"][0]["since"],
        "end": None,
    }
    assert done["rank"] == 1
    assert done["start"] <= done["end"]  # the two ranks say so on two sockets, in any order
    work.join()
    idle = client.wait_until(pool_id, lambda pool: states(pool) == ["idle", "idle"])
    known = [running | {"end": idle["ranks"][0]["since"]}, done]
    assert stretches(client, pool_id) == known

    client.raw("DELETE", f"api/kernels/{kernel}")
    wait_for(lambda: client.call("GET", f"pools/{pool_id}").status == 404, "the end of the pool")
    (pool,) = [pool for pool in client.get("cells")["pools"] if pool["id"] == pool_id]
    assert (pool["kernel_id"], pool["name"]) == (kernel, "")
    assert stretches(client, pool_id) == known
