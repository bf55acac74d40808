"""A job that gets another name while somebody follows its output."""

from __future__ import annotations

import json

from ..server_driver import Server
from .client import Client


def test_the_output_of_a_job_that_is_renamed_while_it_waits_is_followed(
    client: Client, server: Server
) -> None:
    (server.root / "renamed").mkdir()
    body = {"command": ["echo", "up"], "cpus": 0, "hold": True, "name": "a", "output": "%x/log"}
    label = client.post("jobs", body, 201)["jobs"][0]["label"]
    with client.open("GET", f"jupyter-dist/jobs/{label}/log?follow=1") as pieces:
        assert pieces.status == 200, "it waits for the job now"
        client.call("PATCH", f"jobs/{label}", body={"name": "renamed"})
        client.post(f"jobs/{label}/release", status=202)
        assert "".join(json.loads(line)["text"] for line in pieces) == "up\n"
