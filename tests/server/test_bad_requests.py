"""What is wrong with a request is said, with the field named, before anything is started."""

from __future__ import annotations

import http.client
import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.server.pools.pool_handlers import check_rank_list

from ..bad_fields import BAD_FIELDS
from ..server_driver import Server
from ..waiting import PATIENCE
from .client import Client
from .openapi import validate_named


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field, values in BAD_FIELDS.items() for value in values]
)
def test_a_pool_is_refused_with_the_field_named(client: Client, field: str, value: Any) -> None:
    before = {pool["id"] for pool in client.get("pools")["pools"]}
    error = client.post("pools", {field: value}, 400)
    assert error["code"] == "bad_request"
    assert error["field"] == field
    assert {pool["id"] for pool in client.get("pools")["pools"]} <= before  # others may be ending


@pytest.mark.parametrize("depth", [40, 100_000])
@pytest.mark.parametrize("route", ["pools", "pools/none/execute"])
def test_a_body_that_is_nested_deeply_is_refused(client: Client, route: str, depth: int) -> None:
    body = b'{"env": ' + b"[" * depth + b"]" * depth + b"}"
    answer = client.call("POST", route, body=body)
    assert (answer.status, answer.body["field"]) == (400, "body")
    assert "more than 32 levels of nesting" in answer.body["message"]


def test_a_body_that_is_too_long_is_refused_before_it_is_sent(client: Client) -> None:
    path = f"{client.base}jupyter-dist/pools"
    connection = http.client.HTTPConnection("127.0.0.1", client.url.port, timeout=PATIENCE)
    with closing(connection):
        connection.putrequest("POST", path)
        for name, value in {**client.headers, "Content-Length": str(200 << 20)}.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        assert answer.status == 413
        validate_named("Error", said := json.loads(answer.read()))
        assert "1,048,576 bytes" in said["message"]


def test_a_body_without_a_length_is_bounded_too(client: Client) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", client.url.port, timeout=PATIENCE)
    pieces = (b" " * 65536 for _ in range(20))
    with closing(connection):
        path = f"{client.base}jupyter-dist/pools"
        connection.request("POST", path, pieces, client.headers, encode_chunked=True)
        assert connection.getresponse().status == 413


def test_integers_may_be_written_with_a_point(client: Client) -> None:
    request = {"num_ranks": 1.0, "gpu_ids": [0.0], "kernel_pid": 1.0, "kernel_id": "none"}
    assert client.post("pools", request, 404)["code"] == "kernel_not_found"
    error = client.post("pools/none/kill", {"ranks": [0.0, 1.0]}, 404)
    assert error["code"] == "pool_not_found"


def test_a_kernel_of_another_language_gets_no_ranks(server: Server, client: Client) -> None:
    folder = Path(server.env["JUPYTER_DATA_DIR"]) / "kernels" / "ir"
    folder.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "R 4.5", "language": "R"}
    (folder / "kernel.json").write_text(json.dumps(spec))
    kernel = client.raw("POST", "api/kernels", body={"name": "ir"}).body["id"]
    error = client.post("pools", {"kernel_id": kernel}, 400)
    assert error["code"] == "kernel_not_python"
    assert client.raw("DELETE", f"api/kernels/{kernel}").status == 204


def test_a_list_of_ranks_is_bounded() -> None:
    assert check_rank_list({"ranks": [2.0, 0, 2]}) == [0, 2]
    with pytest.raises(DistError, match="limited to 1024 entries"):
        check_rank_list({"ranks": list(range(2000))})


def test_a_start_without_a_kernel_leaves_what_is_said_of_others(client: Client) -> None:
    failing = {"num_ranks": 1, "python": "/no/such/python"}
    first, second = (client.follow(client.post("pools", failing, 202))[-1] for _ in "12")
    assert client.get(f"pools/{first['id']}")["state"] == second["state"] == "FAILED"


@pytest.mark.parametrize("body", [b"{", b"num_ranks=2", b"\xff", b"[]", b"3", b'"text"'])
@pytest.mark.parametrize("route", ["pools", "pools/none/execute", "pools/none/interrupt"])
def test_a_body_that_is_no_json_object_is_refused(client: Client, route: str, body: bytes) -> None:
    answer = client.call("POST", route, body=body)
    # Whether there is such a pool may be looked at first.
    assert answer.body["code"] == ("pool_not_found" if "interrupt" in route else "bad_request")
    assert answer.status == (404 if "interrupt" in route else 400)


@pytest.mark.parametrize(
    ("method", "route"),
    [
        ("GET", "pools/none"),
        ("DELETE", "pools/none"),
        ("POST", "pools/none/interrupt"),
        ("POST", "pools/none/restart"),
        ("POST", "pools/none/kill"),
        ("GET", "pools/none/verdict"),
        ("GET", "pools/none/ranks/0/stack"),
        ("GET", "pools/none/ranks/0/log"),
        ("POST", "pools/none/execute"),
    ],
)
def test_an_unknown_pool_is_not_found(client: Client, method: str, route: str) -> None:
    answer = client.call(method, route, body={} if method == "POST" else None)
    assert answer.status == 404
    assert answer.body["code"] == "pool_not_found"
    assert "none" in answer.body["message"]


def test_an_unknown_kernel_is_not_found(client: Client) -> None:
    answer = client.call("GET", "kernels/none/pool")
    assert (answer.status, answer.body["code"]) == (404, "kernel_not_found")
    assert client.post("pools", {"kernel_id": "none"}, 404)["code"] == "kernel_not_found"


def test_nccl_without_gpus_is_refused(client: Client) -> None:
    if client.get("gpus")["gpus"]:
        pytest.skip("this machine has GPUs")
    error = client.post("pools", {"num_ranks": 2, "backend": "nccl"}, 400)
    assert (error["code"], error["field"]) == ("backend_needs_gpu", "backend")
    assert "gloo" in error["hint"]


def test_gpu_ids_without_gpus_are_ignored_with_a_notice(client: Client) -> None:
    if client.get("gpus")["gpus"]:
        pytest.skip("this machine has GPUs")
    pool = client.post("pools", {"num_ranks": 1, "gpu_ids": [0, 5]}, 202)
    client.call("DELETE", f"pools/{pool['id']}?wait=1")
    assert pool["notices"]
    assert pool["ranks"][0]["gpu"] is None


def test_a_method_that_is_not_there_is_refused_in_our_words(client: Client) -> None:
    answer = client.raw("PUT", "jupyter-dist/pools", body={})
    assert answer.status == 405
    assert answer.body == {"code": "http_405", "message": "Method Not Allowed", "hint": ""}
