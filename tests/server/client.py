"""Call our routes over HTTP, and hold every answer against the description of the API."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from jupyter_dist_server.agent.zygote import NAME as ZYGOTE
from jupyter_dist_server.common.processes.process_ref import ProcessRef

from ..server_driver import Server
from ..waiting import PATIENCE
from .openapi import answer_schema, validate

ENDED = ("CANCELLED", "FAILED", "COMPLETED")
NDJSON = "application/x-ndjson"
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@dataclass
class Answer:
    """What the server said."""

    status: int
    headers: Message
    body: Any


def _read(content: bytes, kind: str) -> Any:
    if kind == "application/json" and content:
        return json.loads(content)
    if kind == NDJSON:
        return [json.loads(line) for line in content.splitlines()]
    return content.decode() if kind.startswith("text/") else content


class Client:
    """A caller of one server's API; `headers` say who calls."""

    def __init__(self, server: Server, headers: dict[str, str] | None = None) -> None:
        self.server = server
        self.headers = {"Authorization": f"token {server.token}"} if headers is None else headers
        self.url = urlsplit(server.url)
        self.base = self.url.path

    @contextmanager
    def open(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request; the answer's body is still to be read."""
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.url.port, timeout=PATIENCE)
        with closing(connection):
            all_headers = self.headers | (headers or {})
            try:
                connection.request(method, self.base + path, content, all_headers)
            except ConnectionRefusedError:
                log = "".join(self.server.log)
                raise AssertionError(f"ended: {self.server.process.poll()}\n{log}") from None
            yield connection.getresponse()

    def raw(self, method: str, path: str, **options: Any) -> Answer:
        """Call any route of the server."""
        with self.open(method, path, **options) as response:
            content = response.read()
        kind = response.headers.get_content_type()
        return Answer(response.status, response.headers, _read(content, kind))

    def call(self, method: str, route: str, **options: Any) -> Answer:
        """Call a route of ours; its answer must be as the description says."""
        path = f"jupyter-dist/{route}"
        answer = self.raw(method, path, **options)
        kind = answer.headers.get_content_type()
        if schema := answer_schema(method, path, answer.status, kind):
            for part in answer.body if kind == NDJSON else [answer.body]:
                validate(schema, part)
        return answer

    def get(self, route: str) -> Any:
        """Return what a route shows."""
        answer = self.call("GET", route)
        assert answer.status == 200, answer.body
        return answer.body

    def post(self, route: str, body: Any = None, status: int = 200, **options: Any) -> Any:
        """Post, expect `status`, and return the body of the answer."""
        answer = self.call("POST", route, body=body, **options)
        assert answer.status == status, answer.body
        return answer.body

    def pid_of(self, kernel: str) -> int:
        """Return the process of one of the server's kernels."""
        children = psutil.Process(self.server.process.pid).children()
        (pid,) = [child.pid for child in children if kernel in str(child.cmdline())]
        return pid

    # -- pools ------------------------------------------------------------------------------

    def start(self, **request: Any) -> dict[str, Any]:
        """Start a pool and return it when it runs."""
        pool = self.follow(self.post("pools", request, 202), "RUNNING")[-1]
        assert pool["state"] == "RUNNING", pool["reason"]
        return pool

    def follow(self, pool: dict[str, Any], *states: str) -> list[dict[str, Any]]:
        """Return all versions seen until the pool is in one of `states`, or has ended."""
        seen = [pool]
        deadline = time.monotonic() + PATIENCE
        while seen[-1]["state"] not in (*states, *ENDED):
            assert time.monotonic() < deadline, seen[-1]
            query = f"?after={seen[-1]['version']}&wait=30"
            seen.append(self.get(f"pools/{pool['id']}{query}"))
        return seen

    def wait_until(self, pool_id: str, condition: Any) -> dict[str, Any]:
        """Return the pool as soon as `condition` holds of it."""
        pool: dict[str, Any] = self.get(f"pools/{pool_id}")
        deadline = time.monotonic() + PATIENCE
        while not condition(pool):
            assert time.monotonic() < deadline, pool
            pool = self.get(f"pools/{pool_id}?after={pool['version']}&wait=30")
        return pool

    def execute(self, pool_id: str, code: str, **options: Any) -> dict[str, Any]:
        """Run code on ranks, and return the answer by rank."""
        body = {"code": code} | options
        ranks: dict[str, Any] = self.post(f"pools/{pool_id}/execute", body)["ranks"]
        return ranks

    def texts(self, pool_id: str, code: str, **options: Any) -> list[str]:
        """Run code that must go well, and return what each rank printed."""
        answers = self.execute(pool_id, code, **options)
        assert all(answer["status"] == "ok" for answer in answers.values()), answers
        return ["".join(o["text"] for o in answer["outputs"]) for answer in answers.values()]

    def lines(
        self, pool_id: str, code: str, **options: Any
    ) -> Generator[dict[str, Any], None, None]:
        """Run code, and yield each line of the stream as it comes."""
        path = f"jupyter-dist/pools/{pool_id}/execute"
        body = {"code": code} | options
        with self.open("POST", path, body, {"Accept": NDJSON}) as response:
            assert response.headers.get_content_type() == NDJSON
            schema = answer_schema("POST", path, response.status, NDJSON)
            assert schema
            while line := response.readline():
                validate(schema, json.loads(line))
                yield json.loads(line)


def rank_processes(pool: dict[str, Any]) -> list[psutil.Process]:
    """Return the processes of a running pool's ranks; pid and start time must fit."""
    processes = [psutil.Process(rank["pid"]) for rank in pool["ranks"]]
    for process, rank in zip(processes, pool["ranks"], strict=True):
        assert ProcessRef.of(process.pid).start_ticks == rank["start_ticks"]
    return processes


def leftovers(pool: dict[str, Any]) -> list[psutil.Process]:
    """Return the processes that have a log of a pool's private folder open: agent and ranks.

    So has the zygote that the agent left for the next pools; it is the server's.
    """
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            logs = [file for file in process.open_files() if pool["folder"] in file.path]
            if logs and process.name() != ZYGOTE:
                found.append(process)
    return found


def assert_nothing_left(pool: dict[str, Any], processes: list[psutil.Process]) -> None:
    """Check that a pool which has ended left no process and no file."""
    assert pool["folder"]
    assert [process for process in processes if process.is_running()] == []
    assert leftovers(pool) == []
    assert not Path(pool["folder"]).exists()
