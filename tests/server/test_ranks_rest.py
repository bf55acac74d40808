"""What one rank does, as REST and stream tell it, and what can be done about it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
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


@pytest.fixture
def cell(client: Client, notebook: Notebook, pool: str) -> Iterator[Callable[[str], None]]:
    """Return what runs a cell; it is stopped at the end of the test."""
    running: list[str] = []

    def run(code: str) -> None:
        running.append(notebook.send(code))
        client.wait_until(pool, lambda p: "busy" in [rank["state"] for rank in p["ranks"]])

    yield run
    notebook.interrupt()
    notebook.follow(running[0])


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


THREADS = """%%distributed
import threading

def fetch(page):
    threading.Event().wait()

threading.Thread(target=fetch, args=[1], name="fetcher", daemon=True).start()
if rank == 0:
    dist.barrier()
fetch(2)
"""


def test_a_stack_shows_every_thread_of_the_user(
    client: Client, pool: str, cell: Callable[[str], None]
) -> None:
    cell(THREADS)

    def stack(rank: int, words: str) -> str:
        def look() -> str:
            answer = client.call("GET", f"pools/{pool}/ranks/{rank}/stack")
            if answer.status == 503:
                return ""  # it gets no processor
            assert answer.status == 200, answer.body
            said = answer.body
            assert said["rank"] == rank
            return said["text"] if words in said["text"] else ""

        found: str = wait_for(look, f"a stack with {words}")
        return found

    stack(1, "fetch(2)")
    number = client.get(f"pools/{pool}")["ranks"][1]["cell"]
    there = f'  File "<Cell In[{number}]>", line 5, in fetch\n    threading.Event().wait()\n'
    main, fetcher, left_out = stack(1, "fetch(2)").split("\n\n")
    assert main.splitlines()[:3] == [
        'Thread "MainThread", which runs cells (most recent call last):',
        f'  File "<Cell In[{number}]>", line 10, in <module>',
        "    fetch(2)",
    ]
    assert there in main
    title = 'Thread "fetcher" (most recent call last):\n'
    assert fetcher.startswith(title + there)
    assert "fetch(2)" not in fetcher
    assert "Control" in left_out and "IOPub" in left_out
    assert "ipykernel" not in main + fetcher
    assert "distributed_c10d.py" in stack(0, "in barrier").partition("\n\n")[0]


def test_a_verdict_says_whom_a_rank_waits_for(
    client: Client, pool: str, cell: Callable[[str], None]
) -> None:
    assert client.get(f"pools/{pool}/verdict") == {"verdict": None}
    cell("%%distributed\nif rank == 0:\n    dist.barrier()")

    def look() -> dict[str, Any] | None:
        verdict: dict[str, Any] | None = client.get(f"pools/{pool}/verdict")["verdict"]
        # Where rank 1 has not received the cell yet, it is said to be idle.
        return verdict if verdict and "it has finished its cell." in verdict["sentence"] else None

    verdict = wait_for(look, "a verdict")
    assert verdict["kind"] == "never_joined" and verdict["line"] == 3 and verdict["ranks"] == [1]
    assert "Rank 1 never began it: it has finished its cell." in verdict["sentence"]
    assert client.get(f"pools/{pool}/verdict?seconds=3600") == {"verdict": None}
    assert client.call("GET", f"pools/{pool}/verdict?seconds=x").status == 400


def test_the_stack_of_an_idle_rank(client: Client, pool: str) -> None:
    client.execute(pool, "pass")
    client.wait_until(pool, lambda p: {rank["state"] for rank in p["ranks"]} == {"idle"})

    def told() -> Any:  # a busy machine may keep the rank from it
        answer = client.call("GET", f"pools/{pool}/ranks/0/stack")
        assert answer.status in (200, 503), answer.body
        return answer.body if answer.status == 200 else None

    text = wait_for(told, "a stack")["text"]
    assert text.startswith('Thread "MainThread", which runs cells:\n  idle\n\n')


def test_a_rank_that_is_stuck_in_c_is_silent_and_can_be_killed(
    client: Client, notebook: Notebook, pool: str
) -> None:
    code = "import ctypes, sys\nprint('good', 'bye', file=sys.stderr)\nctypes.PyDLL(None).pause()"
    running = notebook.send(f"%%rank 1\n{code}")
    log = f"pools/{pool}/ranks/1/log"
    wait_for(lambda: "good bye" in client.get(log)["lines"], "its last line")
    pids = [rank["pid"] for rank in client.get(f"pools/{pool}")["ranks"]]
    error = client.call("GET", f"pools/{pool}/ranks/1/stack")
    assert (error.status, error.body["code"]) == (503, "rank_silent")
    assert f"Rank 1 (pid {pids[1]}) does not respond: it is in C code" in error.body["message"]
    assert f"py-spy dump --native --pid {pids[1]}" in error.body["hint"]

    client.post(f"pools/{pool}/kill", {"ranks": [1]}, 202)
    record = client.wait_until(pool, lambda p: p["ranks"][1]["state"] == "dead")
    assert record["ranks"][1]["exit"] == "killed by request"
    assert [rank["pid"] for rank in record["ranks"]] == pids
    assert psutil.pid_exists(pids[0]) and not psutil.pid_exists(pids[1])
    assert "killed by request" in notebook.follow(running).error

    assert client.get(log)["lines"][-1] == "good bye"
    for answer in (
        client.call("GET", f"pools/{pool}/ranks/1/stack"),
        client.call("POST", f"pools/{pool}/kill", body={"ranks": [0, 1]}),
    ):
        assert (answer.status, answer.body["code"]) == (409, "rank_dead")
        assert answer.body["message"] == "Rank 1 is dead: killed by request."
        assert answer.body["hint"] == "Replace it with %dist_restart --ranks 1."
    assert client.get(f"pools/{pool}")["ranks"][0]["state"] == "idle"

    notebook.ok("%dist_restart --ranks 1")
    assert notebook.ok("%%distributed\nprint(world_size)").lines == ["[0-1] 2"]
    assert "good bye" not in client.get(log)["lines"]


def test_a_rank_that_was_stopped_is_not_said_to_be_in_c(client: Client, pool: str) -> None:
    rank = psutil.Process(client.get(f"pools/{pool}")["ranks"][0]["pid"])
    rank.send_signal(signal.SIGSTOP)
    wait_for(lambda: rank.status() == psutil.STATUS_STOPPED, "the stop")
    error = client.call("GET", f"pools/{pool}/ranks/0/stack")
    rank.send_signal(signal.SIGCONT)
    assert error.status == 503, error.body
    assert (error.status, error.body["code"]) == (503, "rank_silent")
    assert "it is stopped" in error.body["message"]
    assert f"kill -CONT {rank.pid}" in error.body["hint"]


LINES = """import os, sys
for number in range(40_000):
    print(f"line {number:06} " + 30 * "-", file=sys.stderr)
os.write(2, b"from C\\n")
for step in range(300):
    print(f"\\rstep {step}", end="", file=sys.stderr)
print("not here")
"""


def test_the_log_is_the_end_of_what_a_living_rank_wrote_to_stderr(
    client: Client, pool: str
) -> None:
    """Also where 1.6 MB of it have been shown and freed."""
    client.execute(pool, LINES, ranks=[0])
    said = client.get(f"pools/{pool}/ranks/0/log")
    lines = said["lines"]
    assert (said["rank"], len(lines)) == (0, 200)
    assert lines[-2:] == ["from C", "step 299"]
    assert lines[0].startswith("line 039802 ---")
    assert client.get(f"pools/{pool}/ranks/1/log")["lines"] == []


def test_what_is_wrong_with_a_rank_is_said(client: Client, pool: str) -> None:
    for rank in ("2", "99999999999", "one", "-1"):
        for what in ("stack", "log"):
            answer = client.call("GET", f"pools/{pool}/ranks/{rank}/{what}")
            assert (answer.status, answer.body["code"]) == (400, "unknown_rank")
            assert rank in answer.body["message"]
    for body in ({}, {"ranks": []}, {"ranks": [2]}, {"ranks": "0"}, {"all": True}):
        assert client.post(f"pools/{pool}/kill", body, 400)["field"] == next(iter(body), "ranks")
    assert cells(client.get(f"pools/{pool}"))[0][0] == "idle"


def test_a_pool_that_has_ended_tells_what_its_record_keeps(client: Client) -> None:
    pool = client.start(num_ranks=1)
    client.execute(pool["id"], "import os, sys\nprint('why', file=sys.stderr)\nos._exit(3)")
    dead = client.wait_until(pool["id"], lambda p: p["ranks"][0]["state"] == "dead")
    assert dead["ranks"][0]["stderr"] == ["why"]
    client.call("DELETE", f"pools/{pool['id']}?wait=1")
    assert client.get(f"pools/{pool['id']}/ranks/0/log")["lines"] == ["why"]
    for answer in (
        client.call("GET", f"pools/{pool['id']}/ranks/0/stack"),
        client.call("POST", f"pools/{pool['id']}/kill", body={"ranks": [0]}),
    ):
        assert (answer.status, answer.body["code"]) == (409, "pool_not_running")
