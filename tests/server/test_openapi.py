"""``docs/openapi.yaml`` says what the server does: no more, no less."""

from __future__ import annotations

import re

import jsonschema
import pytest

from jupyter_dist_server.server.routes import ROUTES

from .client import Client
from .openapi import DESCRIPTION, METHODS, validate_named


def test_the_description_has_every_route_and_no_other() -> None:
    ours = {
        ("/" + re.sub(r"\(\?P<(\w+)>.*?\)", r"{\1}", route).replace("\\.", "."), method)
        for route, handler in ROUTES
        for method in METHODS
        if method in vars(handler)
    }
    described = {
        (path, method)
        for path, operations in DESCRIPTION["paths"].items()
        for method in METHODS
        if method in operations
    }
    assert described == ours


def test_every_path_parameter_is_described() -> None:
    for path, operations in DESCRIPTION["paths"].items():
        parameters = operations.get("parameters", [])
        names = {
            DESCRIPTION["components"]["parameters"][p["$ref"].rpartition("/")[2]]["name"]
            if "$ref" in p
            else p["name"]
            for p in parameters
        }
        assert names == set(re.findall(r"\{(\w+)\}", path)), path


def test_every_reference_leads_somewhere() -> None:
    for reference in set(re.findall(r"'\$ref': '#/([^']+)'", str(DESCRIPTION))):
        part = DESCRIPTION
        for name in reference.split("/"):
            part = part[name]


def test_server_answers_are_as_described(client: Client) -> None:
    validate_named("Status", client.get("status"))
    validate_named("Gpus", client.get("gpus"))
    validate_named("GpuHistory", client.get("gpus/history"))
    validate_named("Pools", client.get("pools"))
    validate_named("Cells", client.get("cells"))


def test_a_pool_is_as_described_in_every_state(client: Client) -> None:
    seen = client.follow(client.post("pools", {"num_ranks": 1}, 202), "RUNNING")
    pool_id = seen[-1]["id"]
    answer = client.post(f"pools/{pool_id}/execute", {"code": "display(1); print(2); 1 / 0"})
    validate_named("ExecuteAnswer", answer)
    kinds = [output["output_type"] for output in answer["ranks"]["0"]["outputs"]]
    assert sorted(kinds) == ["display_data", "error", "stream"]
    seen += client.follow(client.call("DELETE", f"pools/{pool_id}").body)
    for pool in seen:
        validate_named("Pool", pool)
    assert {pool["state"] for pool in seen} >= {
        "CONFIGURING",
        "RUNNING",
        "COMPLETING",
        "COMPLETED",
    }


def test_a_failed_pool_is_as_described(client: Client) -> None:
    pool = client.post("pools", {"num_ranks": 1, "python": "/no/such/python"}, 202)
    failed = client.follow(pool)[-1]
    validate_named("Pool", failed)
    assert failed["state"] == "FAILED"
    assert failed["reason"]["code"] == "agent_failed"
    assert "/no/such/python" in failed["reason"]["message"]


def test_a_field_that_nobody_described_is_noticed(client: Client) -> None:
    """Otherwise none of the checks above could fail."""
    status = client.get("status")
    with pytest.raises(jsonschema.ValidationError, match="color"):
        validate_named("Status", status | {"color": "red"})
    with pytest.raises(jsonschema.ValidationError, match="pools"):
        validate_named("Status", {k: v for k, v in status.items() if k != "pools"})
