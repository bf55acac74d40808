"""The schema of a start, as a form gets it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.common.protocol.leaseholder import Leaseholder
from jupyter_dist_server.jobs.leases.lease import Lease

from ..fake_nvml.build import State
from ..server_driver import Server
from .client import Client


def fields(client: Client) -> dict[str, Any]:
    """Return the fields of the form."""
    properties: dict[str, Any] = client.get("start-schema")["properties"]
    return properties


def test_what_a_form_shows_at_first_can_be_started(client: Client) -> None:
    offered = fields(client)
    if "gpu_ids" in offered:
        pytest.skip("this machine has GPUs")
    body = {name: field["default"] for name, field in offered.items() if "default" in field}
    assert body == {"num_ranks": 2, "start_method": "fork", "timeout": 120, "check": False}
    pool = client.post("pools", body, 202)
    assert pool["world_size"] == 2
    client.call("DELETE", f"pools/{pool['id']}?wait=1")


def test_a_cluster_that_hangs_is_not_asked_by_each_form(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    scontrol, asked = tmp_path / "bin" / "scontrol", tmp_path / "asked"
    scontrol.write_text(f"#!/bin/sh\necho $$ >> {asked}\nexec sleep 600\n")
    scontrol.chmod(0o755)
    path = f"{scontrol.parent}{os.pathsep}{os.environ['PATH']}"
    slurm = {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1-2]", "SLURMD_NODENAME": "n1"}
    server = Server(tmp_path / "home", tmp_path, PATH=path, **slurm)
    try:
        with ThreadPoolExecutor() as forms:
            answers = list(
                forms.map(lambda _: server.api("GET", "jupyter-dist/start-schema"), range(4))
            )
        assert all("nodes" not in answer["properties"] for answer in answers)
        assert len(asked.read_text().splitlines()) < len(answers)
    finally:
        server.close()


@pytest.mark.usefixtures("leases")
def test_a_rank_is_offered_for_each_gpu_that_nobody_has(gpu_client: Client, gpus: State) -> None:
    offered = fields(gpu_client)
    assert offered["gpu_ids"]["items"]["enum"] == list(range(8))
    assert offered["num_ranks"]["default"] == 8
    uuid = gpu_client.get("gpus")["gpus"][3]["uuid"]
    who = Leaseholder(pid=os.getpid(), pool="p-1", since=1.0, notebook="", host="here")
    with closing(Lease.take([uuid], who)):
        assert fields(gpu_client)["num_ranks"]["default"] == 7
