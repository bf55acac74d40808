"""What one rank does, as REST and stream tell it, and what can be done about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ..driver import Notebook, Server
from .client import Client

FOREVER = "import time\nwhile True: time.sleep(0.01)"


@pytest.fixture(scope="module")
def notebook(server: Server) -> Iterator[Notebook]:
    """Return a notebook with a pool of two ranks."""
    notebook = server.notebook()
    notebook.ok("%load_ext jupyter_dist_server")
    notebook.ok("%dist_init -n 2")
    yield notebook
    notebook.close()


@pytest.fixture(scope="module")
def pool(client: Client, notebook: Notebook) -> str:
    """Return the id of that pool."""
    pool_id: str = client.get(f"kernels/{notebook.kernel_id}/pool")["pool"]["id"]
    return pool_id


def cells(pool: dict[str, Any]) -> list[tuple[str, int | None]]:
    """Return what each rank does, and in which cell."""
    return [(rank["state"], rank["cell"]) for rank in pool["ranks"]]


def test_a_rank_says_which_cell_it_runs_or_ran_last(
    client: Client, notebook: Notebook, pool: str
) -> None:
    assert cells(client.get(f"pools/{pool}")) == [("idle", None)] * 2
    notebook.ok("%%distributed\npass")  # the notebook's third cell
    client.wait_until(pool, lambda p: cells(p) == [("idle", 3)] * 2)
    running = notebook.send(f"%%rank 1\n{FOREVER}")
    client.wait_until(pool, lambda p: cells(p) == [("idle", 3), ("busy", 4)])
    client.post(f"pools/{pool}/interrupt", {"ranks": [1]}, 202)
    notebook.follow(running)
    client.wait_until(pool, lambda p: cells(p) == [("idle", 3), ("idle", 4)])
    client.execute(pool, "pass", ranks=[0])  # not of the notebook
    client.wait_until(pool, lambda p: cells(p) == [("idle", None), ("idle", 4)])


def test_a_rank_that_was_replaced_has_run_no_cell(
    client: Client, notebook: Notebook, pool: str
) -> None:
    notebook.ok("%%distributed\npass")
    client.wait_until(pool, lambda p: None not in [rank["cell"] for rank in p["ranks"]])
    number = client.get(f"pools/{pool}")["ranks"][0]["cell"]
    notebook.ok("%dist_restart --ranks 1")
    assert cells(client.get(f"pools/{pool}")) == [("idle", number), ("idle", None)]
