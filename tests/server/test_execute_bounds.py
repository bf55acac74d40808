"""Running code by REST: one pool waits for no other, nobody is said to be dead who is not."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from ..server_driver import Server
from .client import NDJSON, Client
from .stalls import check

BIG = """from IPython.display import display
for i in range(30):
    display({"text/plain": "x" * 2_000_000}, raw=True)
"""


@pytest.fixture(scope="module")
def pool(client: Client) -> Iterator[dict[str, Any]]:
    """Return a running pool of two ranks."""
    pool = client.start(num_ranks=2)
    yield pool
    client.call("DELETE", f"pools/{pool['id']}?wait=1")


@pytest.fixture
def waiting(client: Client, pool: dict[str, Any]) -> Iterator[http.client.HTTPResponse]:
    """Return the answer to a big stream, of which nobody has read more than the header."""
    path = f"jupyter-dist/pools/{pool['id']}/execute"
    body = {"code": BIG, "ranks": [0]}
    with client.open("POST", path, body, {"Accept": NDJSON}) as response:
        yield response


def test_a_restart_of_one_rank_makes_no_other_dead(
    client: Client, pool: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "go on"
    code = (
        f"import os, time\nprint('in')\nwhile not os.path.exists({str(file)!r}): time.sleep(0.01)"
    )
    lines = client.lines(pool["id"], code, ranks=[0])
    said = next(lines)["output"]["text"]
    client.post(f"pools/{pool['id']}/restart", {"ranks": [1]}, 202)
    client.wait_until(pool["id"], lambda p: p["state"] == "RUNNING")
    # It has to wait for rank 0's, so it is dropped at its time limit.
    client.execute(pool["id"], "pass", ranks=[1], timeout=0.5)
    file.touch()
    *rest, status = lines  # the end of the printed line may come by itself
    assert said + "".join(line["output"]["text"] for line in rest) == "in\n"
    assert status == {"rank": 0, "status": "ok"}
    assert client.texts(pool["id"], "print(rank)") == ["0\n", "1\n"]


def test_a_deaf_pool_keeps_only_its_own_callers_waiting(
    client: Client, pool: dict[str, Any]
) -> None:
    deaf = client.start(num_ranks=1)
    agent = psutil.Process(deaf["ranks"][0]["pid"]).parent()
    os.kill(agent.pid, signal.SIGSTOP)
    try:
        path, body = f"{client.base}jupyter-dist/pools/{deaf['id']}/execute", b'{"code": "1"}'
        with closing(http.client.HTTPConnection("127.0.0.1", client.url.port)) as connection:
            connection.request("POST", path, body, client.headers)
            answered = threading.Event()

            def wait_for_answer() -> None:
                connection.getresponse().read()
                answered.set()

            waiting = threading.Thread(target=wait_for_answer)
            waiting.start()
            client.execute(pool["id"], "pass")
            assert not answered.is_set()
            os.kill(agent.pid, signal.SIGCONT)
            waiting.join()
    finally:
        os.kill(agent.pid, signal.SIGCONT)
        client.call("DELETE", f"pools/{deaf['id']}?wait=1")


def test_a_stream_that_nobody_reads_is_cut(
    client: Client, pool: dict[str, Any], waiting: http.client.HTTPResponse
) -> None:
    client.execute(pool["id"], "pass")  # after the other one, which is not read yet
    lines = [json.loads(line) for line in waiting.read().splitlines()]
    *outputs, status = [line.get("output") or line for line in lines]
    assert status == {"rank": 0, "status": "ok"}
    displayed = sum(output["output_type"] == "display_data" for output in outputs)
    assert displayed < 30, "16 MiB wait in the server, and some in the sockets"
    # Outputs that come while we read already are not cut: there may be more than one place.
    notices = [output["text"] for output in outputs if output["output_type"] == "stream"]
    said = [
        re.fullmatch(
            r"… ([\d.]+) MiB of outputs cut here: they came faster than they were read\n", text
        )
        for text in notices
    ]
    assert said and all(said), notices
    cut = sum(float(match[1]) for match in said if match)
    assert abs(cut * 2**20 / 2_000_000 + displayed - 30) < 0.1 * len(said)


def test_a_big_answer_arrives_whole(client: Client, pool: dict[str, Any]) -> None:
    code = "print('x' * 3_000_000)\n" + BIG.replace("30", "3") + "print(rank)"
    answer = client.execute(pool["id"], code, ranks=[0])["0"]
    assert answer["status"] == "ok"
    kinds = [output["output_type"] for output in answer["outputs"]]
    assert kinds == ["stream", "display_data", "display_data", "display_data", "stream"]
    assert len(answer["outputs"][0]["text"]) == 3_000_001


def test_a_huge_display_is_cut_and_holds_nobody_up(
    server: Server, client: Client, pool: dict[str, Any]
) -> None:
    """It is one message, so that it could not be read a piece at a time."""
    code = BIG.replace("30", "1").replace("2_000_000", "60_000_000") + "print('end')"
    (text,) = (said["text"] for said in client.execute(pool["id"], code, ranks=[0])["0"]["outputs"])
    said = re.match(r"… a display of 57.2 MiB was cut here; it is in (.+)\nend\n", text)
    assert said, text
    kept = json.loads(Path(said[1]).read_text())
    assert kept["data"] == {"text/plain": "x" * 60_000_000}
    # One that is not cut has been read and written in less than 50 ms.
    numbers = BIG.replace("30", "1").replace('"x" * 2_000_000', "[0.1234567] * 90_000")
    answer = client.execute(pool["id"], numbers.replace("text/plain", "application/json"))
    (shown,) = answer["1"]["outputs"]
    assert len(shown["data"]["application/json"]) == 90_000
    check(Path(server.env["JUPYTER_DATA_DIR"]).with_name("stalls"))
