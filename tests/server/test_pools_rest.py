"""The life of a pool over REST, with real ranks."""

from __future__ import annotations

import re
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psutil
import pytest

from .client import Client, assert_nothing_left, leftovers, rank_processes

FOREVER = "while True: pass"


@pytest.fixture(scope="module")
def kernel(client: Client) -> Iterator[str]:
    """Return the id of a kernel."""
    kernel_id = client.raw("POST", "api/kernels", body={"name": "python3"}).body["id"]
    yield kernel_id
    client.raw("DELETE", f"api/kernels/{kernel_id}")


@pytest.fixture(scope="module")
def pool(client: Client, kernel: str) -> dict[str, Any]:
    """Return a running pool of two ranks that serves the kernel."""
    return client.start(kernel_id=kernel, num_ranks=2, env={"FRUIT": "apple"})


def path(pool: dict[str, Any], what: str = "") -> str:
    """Return the route of a pool."""
    return f"pools/{pool['id']}" + (what and f"/{what}")


def test_a_start_is_accepted_and_can_be_followed(client: Client) -> None:
    answer = client.call("POST", "pools", body={"num_ranks": 1})
    assert answer.status == 202
    assert answer.body["state"] in ("PENDING", "CONFIGURING")
    location = answer.headers["Location"]
    assert urllib.parse.urlsplit(location).path == f"{client.base}jupyter-dist/{path(answer.body)}"
    seen = client.follow(answer.body, "RUNNING")
    versions = [version["version"] for version in seen]
    assert versions == sorted(set(versions))
    assert seen[-1]["state"] == "RUNNING"
    assert [rank["state"] for rank in seen[-1]["ranks"]] == ["idle"]

    processes = rank_processes(seen[-1])
    stopped = client.call("DELETE", path(answer.body))
    assert stopped.status == 202
    assert stopped.body["state"] == "COMPLETING"
    ended = client.follow(stopped.body)[-1]
    assert ended["state"] == "COMPLETED"
    assert_nothing_left(ended, processes)

    # What has ended stays to be read, and can do nothing any more.
    assert client.get(path(ended)) == ended
    assert client.call("DELETE", path(ended)).body == ended
    for what, body in (("execute", {"code": "1"}), ("interrupt", {}), ("restart", {})):
        error = client.post(path(ended, what), body, 409)
        assert error["code"] == "pool_not_running"
        assert "COMPLETED" in error["message"]


def test_a_start_can_be_cancelled(client: Client) -> None:
    request = {"num_ranks": 2, "start_method": "spawn"}  # no zygote makes it too quick for us
    pool_id = client.post("pools", request, 202)["id"]
    begun = client.wait_until(pool_id, lambda p: any(rank["pid"] for rank in p["ranks"]))
    assert begun["state"] == "CONFIGURING"
    processes = pool_processes(begun)
    assert processes, "the agent should run"
    cancelled = client.call("DELETE", f"{path(begun)}?wait=1").body
    assert cancelled["state"] == "CANCELLED"
    assert cancelled["started"] is None
    assert_nothing_left(cancelled, processes)


def pool_processes(pool: dict[str, Any]) -> list[psutil.Process]:
    """Return the agent of a pool, and whatever it has started."""
    agents = leftovers(pool)
    return agents + [child for agent in agents for child in agent.children(recursive=True)]


def test_a_restart_can_be_cancelled(client: Client) -> None:
    pool = client.start(num_ranks=1)
    processes = pool_processes(pool)
    restarting = client.post(path(pool, "restart"), None, 202)
    assert restarting["state"] == "CONFIGURING"
    ended = client.follow(client.call("DELETE", path(pool)).body)[-1]
    assert ended["state"] == "COMPLETED"
    assert_nothing_left(ended, processes)


def test_a_pool_that_is_not_ready_in_time_fails_and_leaves_nothing(client: Client) -> None:
    failed = client.follow(client.post("pools", {"num_ranks": 1, "timeout": 0.01}, 202))[-1]
    assert failed["state"] == "FAILED"
    assert failed["reason"]["code"] == "start_timeout"
    assert_nothing_left(failed, [])


def test_a_kernel_has_one_pool(client: Client, kernel: str, pool: dict[str, Any]) -> None:
    assert client.get(f"kernels/{kernel}/pool")["pool"]["id"] == pool["id"]
    error = client.post("pools", {"kernel_id": kernel}, 409)
    assert error["code"] == "pool_exists"
    assert "2 ranks is RUNNING" in error["message"]


def test_outputs_come_back_by_rank(client: Client, pool: dict[str, Any]) -> None:
    code = "import os, sys; print(rank, os.environ['FRUIT']); print('!', file=sys.stderr); rank * 9"
    answers = client.execute(pool["id"], code)
    assert list(answers) == ["0", "1"]
    for rank, answer in answers.items():
        assert answer["status"] == "ok"
        streams = {o["name"]: o["text"] for o in answer["outputs"] if "name" in o}
        assert streams == {"stdout": f"{rank} apple\n", "stderr": "!\n"}
        (result,) = [o for o in answer["outputs"] if o["output_type"] == "execute_result"]
        assert result["data"]["text/plain"] == str(int(rank) * 9)


def test_some_ranks_can_be_chosen(client: Client, pool: dict[str, Any]) -> None:
    assert client.texts(pool["id"], "print(rank)", ranks=[1]) == ["1\n"]
    answers = client.execute(pool["id"], "count = 1", ranks=[0, 1])
    assert list(answers) == ["0", "1"]


def test_a_rank_named_twice_runs_the_code_once(client: Client, pool: dict[str, Any]) -> None:
    client.texts(pool["id"], "count = 0")
    client.texts(pool["id"], "count += 1", ranks=[1, 1, 0])
    assert client.texts(pool["id"], "print(count)") == ["1\n", "1\n"]


def test_an_error_on_one_rank_is_its_status(client: Client, pool: dict[str, Any]) -> None:
    answers = client.execute(pool["id"], "1 / rank")
    assert [answer["status"] for answer in answers.values()] == ["error", "ok"]
    (error,) = [o for o in answers["0"]["outputs"] if o["output_type"] == "error"]
    assert error["ename"] == "ZeroDivisionError"
    assert any("1 / rank" in re.sub(r"\x1b.*?m", "", line) for line in error["traceback"])


def test_outputs_stream_while_the_code_runs(client: Client, pool: dict[str, Any]) -> None:
    """The code waits for an interrupt, so lines that come before it were not held back."""
    code = "print('in', flush=True)\nwhile rank: pass"
    statuses, printed = {}, set()
    for line in client.lines(pool["id"], code):
        if "status" in line:
            statuses[line["rank"]] = line["status"]
        elif line["output"]["output_type"] == "stream":
            printed.add(line["rank"])
            if printed == {0, 1}:
                client.post(path(pool, "interrupt"), {"ranks": [1]}, 202)
    assert printed == {0, 1}
    assert statuses == {0: "ok", 1: "error"}


def test_a_stream_without_outputs_is_still_one(client: Client, pool: dict[str, Any]) -> None:
    lines = list(client.lines(pool["id"], "pass"))
    assert lines == [{"rank": 0, "status": "ok"}, {"rank": 1, "status": "ok"}]


def test_the_time_limit_interrupts_and_keeps_variables(
    client: Client, pool: dict[str, Any]
) -> None:
    client.execute(pool["id"], "kept = rank + 5")
    answers = client.execute(pool["id"], "while rank: pass", timeout=15)
    assert [answer["status"] for answer in answers.values()] == ["ok", "timeout"]
    assert client.texts(pool["id"], "print(kept)") == ["5\n", "6\n"]


@contextmanager
def running_on_both(
    client: Client, pool: dict[str, Any], code: str, first: str = "pass"
) -> Iterator[Iterator[dict[str, Any]]]:
    """Run code; give its stream once both ranks have done what comes first; end it with us."""
    code = f"{first}\nprint('in', flush=True)\n{code}"
    with closing(client.lines(pool["id"], code)) as lines:
        begun: set[int] = set()
        while begun != {0, 1}:
            begun.add(next(lines)["rank"])
        yield lines


def is_error(line: dict[str, Any]) -> bool:
    """Tell an error from a status, and from text: the end of a printed line may come by itself."""
    return "output" in line and line["output"]["output_type"] == "error"


def test_an_interrupt_leaves_nobody_in_a_collective(client: Client, pool: dict[str, Any]) -> None:
    """Rank 1 waits, deaf to interrupts, for rank 0, which will not come."""
    code = f"if rank == 0:\n    {FOREVER}\ndist.barrier()"
    with running_on_both(client, pool, code) as lines:
        client.post(path(pool, "interrupt"), None, 202)
        statuses = {line["rank"]: line["status"] for line in lines if "status" in line}
    assert statuses == {0: "error", 1: "error"}
    code = "t = torch.ones(1)\ndist.all_reduce(t)\nprint(int(t))"
    assert client.texts(pool["id"], code) == ["2\n", "2\n"]


def test_an_interrupt_of_some_ranks_leaves_the_others_alone(
    client: Client, pool: dict[str, Any]
) -> None:
    with running_on_both(client, pool, FOREVER) as lines:
        for rank, states in ((1, ["busy", "idle"]), (0, ["idle", "idle"])):
            client.post(path(pool, "interrupt"), {"ranks": [rank]}, 202)
            line = next(filter(is_error, lines))
            assert (line["rank"], line["output"]["ename"]) == (rank, "KeyboardInterrupt")
            client.wait_until(pool["id"], lambda p, s=states: [r["state"] for r in p["ranks"]] == s)
        assert list(lines) == [{"rank": rank, "status": "error"} for rank in (0, 1)]


def test_an_interrupt_ends_the_code_on_all_ranks(client: Client, pool: dict[str, Any]) -> None:
    with running_on_both(client, pool, FOREVER, first="kept = 'yes'") as lines:
        assert client.post(path(pool, "interrupt"), None, 202)["id"] == pool["id"]
        names = [line["output"]["ename"] for line in filter(is_error, lines)]
    assert names == ["KeyboardInterrupt"] * 2
    assert client.texts(pool["id"], "print(kept)") == ["yes\n"] * 2


def test_a_caller_who_leaves_a_stream_ends_the_code(client: Client, pool: dict[str, Any]) -> None:
    with running_on_both(client, pool, FOREVER):
        pass  # the code says nothing more, so only the connection can tell that we leave
    assert client.texts(pool["id"], "print(rank)", timeout=30) == ["0\n", "1\n"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "code"),
        ({"code": 1}, "code"),
        ({"code": "1", "ranks": []}, "ranks"),
        ({"code": "1", "ranks": "0"}, "ranks"),
        ({"code": "1", "ranks": [True]}, "ranks"),
        ({"code": "1", "ranks": [0, 2]}, "ranks"),
        ({"code": "1", "ranks": [-1]}, "ranks"),
        ({"code": "1", "timeout": 0}, "timeout"),
        ({"code": "1", "timeout": "5"}, "timeout"),
        ({"code": "1", "timeout": 10**400}, "timeout"),
        (b'{"code": "1", "timeout": NaN}', "timeout"),
        ({"code": "1", "rank": [0]}, "rank"),
    ],
)
def test_bad_code_requests_name_the_field(
    client: Client, pool: dict[str, Any], body: Any, field: str
) -> None:
    error = client.post(path(pool, "execute"), body, 400)
    assert error["field"] == field


def test_other_bad_requests_name_the_field(client: Client, pool: dict[str, Any]) -> None:
    for body, field in (({"ranks": [7]}, "ranks"), ({"ranks": 0}, "ranks"), ({"all": 1}, "all")):
        assert client.post(path(pool, "interrupt"), body, 400)["field"] == field
    for query, field in (("after=x", "after"), ("wait=x", "wait")):
        answer = client.call("GET", f"{path(pool)}?{query}")
        assert (answer.status, answer.body["field"]) == (400, field)
    answer = client.call("DELETE", f"{path(pool)}?wait=x")
    assert (answer.status, answer.body["field"]) == (400, "wait")
    assert client.get(path(pool))["state"] == "RUNNING"


def test_waiting_ends_with_the_first_news(client: Client, pool: dict[str, Any]) -> None:
    """A call that waits for 60 s returns as soon as a rank is busy, and says so."""
    idle = client.wait_until(pool["id"], lambda p: {r["state"] for r in p["ranks"]} == {"idle"})
    work = threading.Thread(
        target=client.execute, args=(pool["id"], FOREVER), kwargs={"ranks": [1]}
    )
    work.start()
    news = client.get(f"{path(pool)}?after={idle['version']}&wait=60")
    assert [rank["state"] for rank in news["ranks"]] == ["idle", "busy"]
    client.post(path(pool, "interrupt"), {"ranks": [1]}, 202)
    work.join()


def test_a_restart_replaces_every_rank(client: Client, pool: dict[str, Any]) -> None:
    client.texts(pool["id"], "kept = 1")
    before = client.get(path(pool))
    processes = rank_processes(before)
    answer = client.post(path(pool, "restart"), None, 202)
    assert answer["state"] == "CONFIGURING"
    restarted = client.follow(answer, "RUNNING")[-1]
    assert restarted["state"] == "RUNNING"
    assert restarted["generation"] == before["generation"] + 1
    assert restarted["started"] == before["started"]
    assert [process for process in processes if process.is_running()] == []
    assert not {p.pid for p in processes} & {p.pid for p in rank_processes(restarted)}
    assert client.texts(pool["id"], "print(rank, 'kept' in globals())") == [
        "0 False\n",
        "1 False\n",
    ]


@pytest.mark.parametrize("more", [{}, {"ranks": [0]}, {"without_lost_nodes": "yes"}])
def test_a_pool_that_has_lost_no_node_is_not_made_smaller(
    client: Client, pool: dict[str, Any], more: dict[str, Any]
) -> None:
    error = client.post(path(pool, "restart"), {"without_lost_nodes": True} | more, 400)
    assert error["field"] == "without_lost_nodes"
    assert client.get(path(pool))["state"] == "RUNNING"


def test_one_rank_is_replaced_and_the_others_keep_their_variables(
    client: Client, pool: dict[str, Any]
) -> None:
    client.texts(pool["id"], "kept = 1")
    before = client.get(path(pool))
    restarted = client.follow(client.post(path(pool, "restart"), {"ranks": [1]}, 202), "RUNNING")[
        -1
    ]
    assert restarted["generation"] == before["generation"] + 1
    assert [
        rank["pid"] == old["pid"]
        for rank, old in zip(restarted["ranks"], before["ranks"], strict=True)
    ] == [True, False]
    code = "t = torch.ones(1)\ndist.all_reduce(t)\nprint(int(t), 'kept' in globals())"
    assert client.texts(pool["id"], code) == ["2 True\n", "2 False\n"]
    for ranks in ([7], [], "1"):
        answer = client.call("POST", path(pool, "restart"), body={"ranks": ranks})
        assert (answer.status, answer.body["field"]) == (400, "ranks")


def test_a_kernel_restart_keeps_the_pool(client: Client, kernel: str, pool: dict[str, Any]) -> None:
    client.texts(pool["id"], "kept = rank")
    processes = rank_processes(client.get(path(pool)))
    assert client.raw("POST", f"api/kernels/{kernel}/restart").status == 200
    after = client.get(f"kernels/{kernel}/pool")["pool"]
    assert (after["id"], after["state"]) == (pool["id"], "RUNNING")
    assert rank_processes(after) == processes
    assert client.texts(pool["id"], "print(kept)") == ["0\n", "1\n"]


def test_a_kernel_shutdown_ends_the_pool(client: Client, kernel: str, pool: dict[str, Any]) -> None:
    """The last test of this module's pool."""
    running = client.get(path(pool))
    processes = rank_processes(running) + pool_processes(running)
    assert client.raw("DELETE", f"api/kernels/{kernel}").status == 204
    last = running
    while (answer := client.call("GET", f"{path(pool)}?after={last['version']}&wait=30")).body[
        "code" if "code" in answer.body else "state"
    ] not in ("pool_not_found", "COMPLETED"):
        last = answer.body
    assert_nothing_left(last, processes)
    assert client.call("GET", path(pool)).body["code"] == "pool_not_found"
    assert client.call("GET", f"kernels/{kernel}/pool").body["code"] == "kernel_not_found"
