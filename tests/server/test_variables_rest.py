"""What the variables of ranks are, and whether they are the same, as REST tells it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from ..notebook_driver import Notebook
from ..server_driver import Server
from ..waiting import wait_for
from .client import Client

FOREVER = "import time\nwhile True: time.sleep(0.01)"


@pytest.fixture(scope="module")
def notebook(server: Server) -> Iterator[Notebook]:
    """Return a notebook with a pool of three ranks."""
    notebook = server.notebook()
    notebook.ok("%load_ext jupyter_dist_server")
    notebook.ok("%dist_init -n 3")
    yield notebook
    notebook.close()


@pytest.fixture(scope="module")
def pool(client: Client, notebook: Notebook) -> str:
    """Return the id of that pool."""
    pool_id: str = client.get(f"kernels/{notebook.kernel_id}/pool")["pool"]["id"]
    return pool_id


def variables(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return variables by name."""
    return {variable["name"]: variable for variable in answer["variables"]}


def test_a_pool_without_variables(client: Client, pool: str) -> None:
    answer = client.get(f"pools/{pool}/variables")
    assert answer == {
        "variables": [],
        "ranks": [0, 1, 2],
        **{key: [] for key in ("busy", "silent", "dead", "sentences")},
    }
    assert client.post(f"pools/{pool}/check", {})["sentences"] == []


def test_variables_and_where_they_differ(client: Client, notebook: Notebook, pool: str) -> None:
    notebook.ok(
        "%%distributed\nlayer = torch.nn.Linear(2, 2, bias=False)\n"
        "layer.weight.data.fill_(1)\nmine = torch.ones(rank // 2 + 1)\n"
        "secret = f'secret of {rank}'\n"
        "if rank == 1:\n    own = torch.ones(4)"
    )
    found = variables(client.get(f"pools/{pool}/variables"))
    assert sorted(found) == ["layer", "mine", "own", "secret"]
    layer = found["layer"]
    assert (layer["content"], layer["nbytes"], layer["differences"]) == ("equal", 16, [])
    assert layer["forms"] == [
        {
            "ranks": [0, 1, 2],
            "type": "Linear",
            "items": 1,
            "shape": None,
            "shard": "",
            "dtypes": ["float32"],
            "devices": ["cpu"],
            "nbytes": 16,
        }
    ]
    mine = found["mine"]
    assert mine["content"] == "differs" and mine["nbytes"] == 8
    assert [(form["ranks"], form["shape"]) for form in mine["forms"]] == [([0, 1], [1]), ([2], [2])]
    assert found["own"]["content"] == "single" and found["own"]["forms"][0]["ranks"] == [1]

    cell = notebook.next_number()
    notebook.ok("%%distributed\nif rank == 2:\n    layer.weight.data += 1")
    for _ in range(2):
        layer = variables(client.get(f"pools/{pool}/variables"))["layer"]
        sentence = f"`layer.weight` differs on rank 2 since In[{cell}]."
        assert (layer["content"], layer["differences"]) == ("differs", [sentence])
        assert layer["differing"] == 1


def test_only_a_check_tells_values(client: Client, notebook: Notebook, pool: str) -> None:
    notebook.ok("%%distributed\nsecret = f'secret of {rank // 2}'")
    assert "secret of" not in str(client.get(f"pools/{pool}/variables"))
    answer = client.post(f"pools/{pool}/check", {"names": ["secret"]})
    expected = "`secret` is 'secret of 0' on ranks 0-1 and 'secret of 1' on rank 2."
    assert answer["sentences"][0] == expected
    assert answer["variables"][0]["differences"] == [expected]


def test_what_is_large_is_compared_by_a_check(
    client: Client, notebook: Notebook, pool: str
) -> None:
    notebook.ok("%%distributed\nlarge = torch.zeros(5_000_000)\nif rank:\n    large[7] = rank")
    large = variables(client.get(f"pools/{pool}/variables"))["large"]
    assert (large["content"], large["nbytes"]) == ("unchecked", 20_000_000)
    answer = client.post(f"pools/{pool}/check", {"names": ["large"], "ranks": [0, 1]})
    assert answer["ranks"] == [0, 1]
    assert answer["sentences"][0] == "`large` differs between rank 0 and rank 1."
    assert variables(client.post(f"pools/{pool}/check"))["large"]["content"] == "differs"
    notebook.ok("%%distributed\ndel large")


def test_shards(client: Client, notebook: Notebook, pool: str) -> None:
    notebook.ok(
        "%%distributed\n"
        "from torch.distributed.tensor import distribute_tensor, init_device_mesh, Shard\n"
        "whole = torch.arange(6.0).reshape(6, 1)\n"
        "parts = distribute_tensor(whole, init_device_mesh('cpu', (3,)), [Shard(0)])"
    )
    parts = variables(client.get(f"pools/{pool}/variables"))["parts"]
    assert parts["content"] == "sharded" and parts["nbytes"] == 8
    assert [(form["ranks"], form["shape"], form["shard"]) for form in parts["forms"]] == [
        ([rank], [6, 1], f"[{2 * rank}:{2 * rank + 2}, 0:1]") for rank in range(3)
    ]
    notebook.ok("%%distributed\ndel parts, whole")


def test_one_variable_that_cannot_be_read_is_listed(
    client: Client, notebook: Notebook, pool: str
) -> None:
    notebook.ok(
        "%%distributed\nclass Odd(torch.nn.Module):\n"
        "    def named_parameters(self, *_, **__):\n        raise OSError('odd')\nodd = Odd()\n"
        "many = [object() for _ in range(20_000)]"
    )
    found = variables(client.get(f"pools/{pool}/variables"))
    assert found["odd"]["content"] == found["many"]["content"] == "incomparable"
    assert found["odd"]["forms"][0]["type"] == "Odd"
    notebook.ok("%%distributed\ndel odd, many")


def test_a_rank_that_runs_a_cell_is_named(client: Client, notebook: Notebook, pool: str) -> None:
    running = notebook.send(f"%%rank 1\n{FOREVER}")
    # A rank is busy before it begins with the cell's code.
    wait_for(lambda: client.get(f"pools/{pool}/variables")["busy"], "a rank that runs a cell")
    for answer in (client.get(f"pools/{pool}/variables"), client.post(f"pools/{pool}/check")):
        assert (answer["ranks"], answer["busy"]) == ([0, 2], [1])
        assert "layer" in variables(answer)
    notebook.interrupt()
    notebook.follow(running)


def test_a_rank_that_is_stopped_is_not_waited_for(client: Client, pool: str) -> None:
    rank = psutil.Process(client.get(f"pools/{pool}")["ranks"][2]["pid"])
    rank.send_signal(signal.SIGSTOP)
    try:
        answer = client.post(f"pools/{pool}/check", {"names": ["layer"]})
    finally:
        rank.send_signal(signal.SIGCONT)
    assert (answer["ranks"], answer["silent"]) == ([0, 1], [2])
    assert "Equal on ranks 0-1." in answer["sentences"]


def test_mistakes(client: Client, pool: str) -> None:
    def error(body: Any, route: str = pool) -> tuple[int, str]:
        answer = client.call("POST", f"pools/{route}/check", body=body)
        return answer.status, answer.body["code"]

    assert error({"names": ["nothing"]}) == (400, "value_missing")
    assert error({"names": ["1 / 0"]}) == (400, "value_failed")
    assert error({"names": "layer"}) == (400, "bad_request")
    assert error({"names": [1]}) == (400, "bad_request")
    assert error({"names": ["layer"] * 1001}) == (400, "bad_request")
    assert error({"name": ["layer"]}) == (400, "bad_request")
    assert error({"ranks": [3]}) == (400, "unknown_rank")
    assert error({}, "none") == (404, "pool_not_found")


def test_a_rank_that_died_is_named(client: Client, notebook: Notebook, pool: str) -> None:
    client.post(f"pools/{pool}/kill", {"ranks": [1]}, 202)
    client.wait_until(pool, lambda p: p["ranks"][1]["state"] == "dead")
    answer = client.get(f"pools/{pool}/variables")
    assert (answer["ranks"], answer["dead"]) == ([0, 2], [1])
    notebook.ok("%dist_shutdown")
    answer = client.call("GET", f"pools/{pool}/variables")
    assert (answer.status, answer.body["code"]) == (409, "pool_not_running")
