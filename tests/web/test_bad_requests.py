"""What is wrong with a request is said, with the field named, before anything is started."""

from __future__ import annotations

from typing import Any

import pytest

from .client import Client

BAD_FIELDS = {
    "num_ranks": [0, -1, 1025, 1.5, "2", True],
    "gpu_ids": [[], "0,1", [1.5], [True], [None], {}],
    "placement": ["best", 1, []],
    "min_free_memory": [0, -1, 1.5, "20GB", True],
    "performance": [{}, [100], {"0": "fast"}, {"0": True}],
    "map": [{}, [0], {"a": 0}, {"1": 0}, {"0": 1.5}],
    "exclusive": [1, "yes"],
    "share": [1, "yes"],
    "force": [1, "yes"],
    "wait": [0, -1, "5", []],
    "kernel_pid": [0, "1", True],
    "backend": ["mpi", 1, []],
    "start_method": ["thread", 1],
    "env": [[], {"A": 1}, {"": "x"}, {"A=B": "x"}, {"A": "x\0y"}],
    "timeout": [0, -1, "5", True, []],
    "kernel_id": [5],
    "name": [5],
    "python": [["python"]],
    "cwd": [5],
    "base_env": [[], {"A": None}],
    "number_of_ranks": [2],
}


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field, values in BAD_FIELDS.items() for value in values]
)
def test_a_pool_is_refused_with_the_field_named(client: Client, field: str, value: Any) -> None:
    before = client.get("status")["pools"]
    error = client.post("pools", {field: value}, 400)
    assert error["code"] == "bad_request"
    assert error["field"] == field
    assert client.get("status")["pools"] == before


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
    assert any("GPU ids are ignored" in notice for notice in pool["notices"])
    assert pool["ranks"][0]["gpu"] is None


def test_a_method_that_is_not_there_is_refused_in_our_words(client: Client) -> None:
    answer = client.raw("PUT", "jupyter-dist/pools", body={})
    assert answer.status == 405
    assert answer.body == {"code": "http_405", "message": "Method Not Allowed", "hint": ""}
