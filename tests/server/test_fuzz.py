"""Whatever is sent to the server, it answers as described, goes on, and holds nobody up.

`make fuzz` sends 10,000 requests and 2,000 frames; the tests, some of each.
"""

from __future__ import annotations

import json
import os
import random
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import psutil
import pytest

from jupyter_dist_server.server.routes import ROUTES

from ..fake_nvml.build import State
from ..server_driver import Server
from ..waiting import PATIENCE
from .client import NDJSON, UPGRADE, Client
from .conftest import CONFIG, EIGHT_GPUS
from .openapi import DESCRIPTION
from .stalls import SLOW, configuration, stalls

schemathesis = pytest.importorskip("schemathesis", reason="pip install schemathesis")
hypothesis = pytest.importorskip("hypothesis")

CASES = int(os.environ.get("FUZZ_CASES", "200"))
FRAMES = int(os.environ.get("FUZZ_FRAMES", "100"))
GROWTH = 300_000_000
"""Bytes by which the server may grow meanwhile."""

OPERATIONS = [
    (path, method)
    for path, operations in DESCRIPTION["paths"].items()
    for method in operations
    if method in ("get", "post", "delete") and not path.endswith("/stream")
]


@pytest.fixture(scope="module")
def stall_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file for what holds the server up."""
    return tmp_path_factory.mktemp("stalls") / "stalls"


@pytest.fixture(scope="module")
def fuzzed(
    fake_nvml_folder: Path, tmp_path_factory: pytest.TempPathFactory, stall_file: Path
) -> Iterator[Client]:
    """Return a caller of a server with eight GPUs and a pool, whose loop is watched."""
    folder = tmp_path_factory.mktemp("fuzz")
    config = CONFIG.format(leases=str(folder / "leases")) + configuration(stall_file)
    (folder / "config.py").write_text(config)
    state = State(folder / "state")
    state.write(**EIGHT_GPUS)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in state.environment(fake_nvml_folder).items():
            patch.setenv(name, value)
        server = Server(folder / "home", folder, f"--config={folder / 'config.py'}")
    client = Client(server)
    client.get("gpus/history")  # the sampler then runs
    stall_file.write_text("")
    yield client
    server.close()


@pytest.fixture(scope="module")
def pool(fuzzed: Client) -> str:
    """Return the id of a pool that runs."""
    pool: str = fuzzed.start(num_ranks=1)["id"]
    return pool


@pytest.fixture(autouse=True)
def watched(fuzzed: Client, stall_file: Path) -> Iterator[None]:
    """Check what a test has cost the server."""
    process = psutil.Process(fuzzed.server.process.pid)
    before = process.memory_info().rss
    yield
    assert fuzzed.get("status")
    grown = process.memory_info().rss - before
    found = stalls(stall_file)
    stall_file.write_text("")
    print(f"\nThe server has grown by {grown / 1e6:.0f} MB; {len(found)} callbacks > {SLOW} s.")
    for stall in found[:10]:
        print(f"{stall.seconds:.3f} s:\n{stall.where}")
    assert grown < GROWTH
    assert not found


# -- requests -------------------------------------------------------------------------------------


def path_of(case: Any, pool: str) -> str:
    """Return a case's path and query; half of the pools that it names are there."""
    names = {name: str(value) for name, value in (case.path_parameters or {}).items()}
    if case.method == "GET" and len(str(case.query)) % 2:
        names["pool_id"] = pool
    path = re.sub(r"\{(\w+)\}", lambda found: quote(names[found[1]], safe=""), case.path)
    # Who may call is tested elsewhere; an export that follows the GPUs has no end.
    query = {name: value for name, value in (case.query or {}).items() if name != "token"}
    if str(query.get("follow")) == "1":
        query["follow"] = "0"
    if "wait" in query and path.endswith(pool):
        query["wait"] = "0.01"
    text = urlencode({name: str(value) for name, value in query.items()}, errors="replace")
    return path.removeprefix("/") + (f"?{text}" if text else "")


def body_of(case: Any) -> bytes | None:
    """Return a case's body, tamed: no pool starts, and no code that was made up runs."""
    body = case.body
    if isinstance(body, bytes | None):
        return body
    if isinstance(body, dict) and case.path.endswith("/pools"):
        body = body | {"python": "/no/such/python", "wait": None}
    if isinstance(body, dict) and case.path.endswith("/jobs"):
        body = body | {"command": ["true"], "hold": True, "chdir": None, "array": None}
    if isinstance(body, dict) and isinstance(body.get("code"), str):
        body = body | {"code": "pass"}
    try:
        return json.dumps(body).encode()
    except TypeError:  # schemathesis's word for no body
        return None


def check(client: Client, case: Any, pool: str) -> None:
    """Send one request; the answer must be as described."""
    path, body = path_of(case, pool), body_of(case)
    bare = path.partition("?")[0]
    if any(re.fullmatch(route, bare) for route, _ in ROUTES):
        client.call(case.method, path.removeprefix("jupyter-dist/"), body=body)
    else:
        assert client.raw(case.method, path, body=body).status in (301, 302, 400, 403, 404, 405)


def cases(path: str, method: str) -> int:
    """Return how often to ask for an operation in each mode; some start a child to read NVML."""
    all_weights = sum(weight(*operation) for operation in OPERATIONS)
    return max(1, CASES * weight(path, method) // all_weights // 2)


def weight(path: str, method: str) -> int:
    slow = (
        "/gpus" in path
        or path.endswith("-schema")
        or (path.endswith("/pools") and method == "post")
    )
    return 1 if slow else 4


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_every_answer_is_as_described(fuzzed: Client, pool: str, path: str, method: str) -> None:
    operation = schemathesis.openapi.from_dict(DESCRIPTION)[path][method.upper()]
    for mode in schemathesis.GenerationMode:

        @hypothesis.settings(
            max_examples=cases(path, method),
            database=None,
            deadline=None,
            derandomize=CASES < 1000,
            suppress_health_check=list(hypothesis.HealthCheck),
            phases=[hypothesis.Phase.generate],
        )
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
        def send(case: Any) -> None:
            check(fuzzed, case, pool)

        with suppress(
            hypothesis.errors.Unsatisfiable
        ):  # where nothing can be said, nothing is wrong
            send()


MUCH = """from IPython.display import display
for i in range(60):
    display({"text/plain": "x" * 1_000_000}, raw=True)
    print("y" * 100_000)
"""


@pytest.mark.parametrize("kind", ["application/json", NDJSON])
def test_much_output_holds_nobody_up(fuzzed: Client, pool: str, kind: str) -> None:
    path = f"jupyter-dist/pools/{pool}/execute"
    answer = fuzzed.raw("POST", path, body={"code": MUCH}, headers={"Accept": kind})
    assert answer.status == 200
    lines = answer.body if kind == NDJSON else [answer.body]
    assert "'ok'" in str(lines[-1])


# -- frames ---------------------------------------------------------------------------------------


def connect(client: Client) -> socket.socket:
    """Open the stream, without a library that would refuse to send what is wrong."""
    connection = socket.create_connection(("127.0.0.1", client.url.port), timeout=PATIENCE)
    headers = "".join(f"{name}: {value}\r\n" for name, value in (client.headers | UPGRADE).items())
    request = f"GET {client.base}jupyter-dist/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}\r\n"
    connection.sendall(request.encode())
    assert connection.recv(100).startswith(b"HTTP/1.1 101")
    return connection


def frame(first: int, payload: bytes, masked: bool = True, length: int | None = None) -> bytes:
    """Return a frame with any first byte, which may lie about its length."""
    size = len(payload) if length is None else length
    if size < 126:
        head = bytes([first, size | masked << 7])
    elif size < 1 << 16:
        head = bytes([first, 126 | masked << 7]) + size.to_bytes(2, "big")
    else:
        head = bytes([first, 127 | masked << 7]) + size.to_bytes(8, "big")
    return head + (bytes(4) if masked else b"") + payload  # a mask of zeros changes nothing


def hostile(chance: random.Random) -> bytes:
    """Return a frame that no client of ours would send."""
    text = chance.choice(
        [
            b"[" * chance.choice([40, 1000, 60_000]),
            b'{"watch": ' + b"[" * 100 + b"]" * 100 + b"}",
            json.dumps({"watch": ["gpus", chance.choice(["pcie", "", "cpus", "\ud800"])]}).encode(),
            json.dumps({"watch": [chance.choice([None, {}, [], 1e308])] * 1000}).encode(),
            chance.randbytes(chance.randrange(2000)),
            b'{"watch": 1e400}',
            b"",
        ]
    )
    return chance.choice(
        [
            lambda: frame(0x81, text),
            lambda: frame(0x82, text),
            lambda: frame(chance.randrange(256), text[:100]),
            lambda: frame(0x01, text) + frame(0x80, text),
            lambda: frame(0x81, text, masked=False),
            lambda: frame(0x89, text[:125]),
            lambda: frame(0x88, text[:125]),
            lambda: frame(0x81, b"x" * 200_000),
            lambda: frame(0x81, b"x", length=1 << chance.choice([20, 40, 62])),
            lambda: chance.randbytes(chance.randrange(1, 200)),
        ]
    )()


def is_open(connection: socket.socket) -> bool:
    """Read what is there; tell whether the server has not hung up."""
    connection.setblocking(False)
    try:
        while connection.recv(1 << 16):
            pass
        return False
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
    finally:
        connection.settimeout(PATIENCE)


def test_no_frame_does_any_harm(fuzzed: Client, pool: str) -> None:
    chance = random.Random(1)
    connection = connect(fuzzed)
    for _ in range(FRAMES):
        if not is_open(connection):
            connection.close()
            connection = connect(fuzzed)
        with suppress(ConnectionError):  # it hung up meanwhile
            connection.sendall(hostile(chance))
    connection.close()
    with connect(fuzzed) as connection:
        told = b""
        while pool.encode() not in told:
            told += (piece := connection.recv(1 << 16))
            assert piece
