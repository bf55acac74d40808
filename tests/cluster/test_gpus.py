"""GPUs of several nodes: sampled on each while somebody looks, and shown with their node."""

from __future__ import annotations

import contextlib
import json
import subprocess
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from jupyter_dist_server.common.files.shared_folder import FOLDER

from ..waiting import wait_for
from .host_server import HostServer, read_until
from .hosts import Hosts
from .lab import Lab
from .slurm_hosts import start_slurm, why_not

pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(why_not()), reason=why_not())]

EMPTY = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
SUM = "%%distributed\nt = torch.ones(1)\ndist.all_reduce(t)\nprint('sum', t.item())"
MACHINE = "gpus=2\nname=NVIDIA H100 80GB HBM3\nmemory=85899345920\nuuid=GPU-n{number}\n"


def tell(hosts: Hosts, number: int, more: str = "") -> None:
    """Tell what NVML says on a host."""
    path = hosts.variables["FAKE_NVML_STATE"]
    content = MACHINE.format(number=number) + more
    hosts.run(number, "sh", "-c", f"printf '%s' '{content}' > {path}.new && mv {path}.new {path}")


@pytest.fixture(scope="module")
def hosts(fake_nvml_folder: Path) -> Iterator[Hosts]:
    """Return two hosts with Slurm, and two GPUs on each."""
    hosts = Hosts()
    try:
        hosts.variables |= {
            "LD_LIBRARY_PATH": str(fake_nvml_folder),
            "FAKE_NVML_STATE": str(hosts.base / "tmp" / "nvml"),
            FOLDER: str(hosts.base / "tmp" / "leases"),
        }
        for number in hosts.numbers:
            tell(hosts, number)
        start_slurm(hosts)
        yield hosts
    finally:
        hosts.close()


@pytest.fixture(scope="module")
def server(hosts: Hosts) -> Iterator[HostServer]:
    """Return a server with nothing running."""
    server = HostServer(hosts, "salloc", "--nodes=2", "--quiet")
    try:
        yield server
    finally:
        server.close()
        wait_for(lambda: not hosts.folders(1) and not hosts.folders(2), "the end of the pools")


def samplers(hosts: Hosts) -> int:
    """Return how many processes on the second host read NVML."""
    commands = []
    for process in hosts.processes(2):
        with contextlib.suppress(psutil.NoSuchProcess):
            commands.append(" ".join(process.cmdline()))
    return sum("gpus.sampler.sampler_process" in command for command in commands)


@contextlib.contextmanager
def held(hosts: Hosts, number: int, uuid: str) -> Iterator[None]:
    """Have another program lock a GPU of a host."""
    lock = Path(hosts.variables[FOLDER]) / f"{uuid}.lease"
    with subprocess.Popen(
        hosts.command(number, "flock", str(lock), "sh", "-c", "echo locked && exec cat"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout and other.stdout.readline() == b"locked\n"
        yield
        assert other.stdin
        other.stdin.close()


def told(hosts: Hosts, number: int) -> dict[str, Any]:
    """Return what the one lease on a host tells all users."""
    found = hosts.run(number, "sh", "-c", f"cat {hosts.variables[FOLDER]}/*.holder")
    holder: dict[str, Any] = json.loads(found)
    return holder


def is_leased(hosts: Hosts, uuid: str) -> bool:
    """Tell whether a GPU of the second host is leased."""
    lock = Path(hosts.variables[FOLDER]) / f"{uuid}.lease"
    return subprocess.run(hosts.command(2, "flock", "-n", str(lock), "true")).returncode != 0


async def test_gpus_of_other_nodes_are_sampled_while_somebody_looks(
    server: HostServer, hosts: Hosts
) -> None:
    pool = server.start(nodes=2, num_ranks=4)
    assert samplers(hosts) == 0
    uuids = [rank["gpu"]["uuid"] for rank in pool["ranks"]]
    assert uuids == ["GPU-n1-0", "GPU-n1-1", "GPU-n2-0", "GPU-n2-1"]
    assert is_leased(hosts, "GPU-n2-0") and is_leased(hosts, "GPU-n2-1")
    tell(hosts, 2, "1.utilization=77\nmemory_used=268435456\n")
    async with server.look("gpus") as stream:
        frame = await read_until(stream, lambda f: f["type"] == "gpus" and f["nodes"])
        here = [gpu["uuid"] for gpu in frame["inventory"]["gpus"]]
        there = frame["nodes"]["n2"]["gpus"]
        assert here == ["GPU-n1-0", "GPU-n1-1"]
        assert [(gpu["uuid"], gpu["node"]) for gpu in there] == [
            ("GPU-n2-0", "n2"),
            ("GPU-n2-1", "n2"),
        ]
        await read_until(
            stream,
            lambda f: f["type"] == "sample" and f["values"].get("utilization", [])[3:] == [77],
        )

        # Ranks on the other node tell what they use themselves.
        def is_complete(frame: dict[str, Any]) -> bool:
            usages = frame["pools"].get(pool["id"], []) if frame["type"] == "usage" else []
            known = [one for one in usages if one and one["cpu"] is not None]
            return len(known) == pool["world_size"]

        usage = await read_until(stream, is_complete)
        assert all(one["memory"] > 1 << 20 for one in usage["pools"][pool["id"]])
        assert samplers(hosts) == 1
        gpus = server.api("GET", "gpus")
        assert gpus["samples"]["GPU-n2-1"]["utilization"] == 77
        assert gpus["leases"]["GPU-n2-0"]["pool"] == pool["id"]
    wait_for(lambda: samplers(hosts) == 0, "the end of the sampler")
    past = server.api("GET", "gpus/history?gpu=GPU-n2-1&metrics=utilization")
    assert 77 in past["gpus"]["GPU-n2-1"]["utilization"]
    server.api("DELETE", f"pools/{pool['id']}?wait=1")
    wait_for(lambda: not is_leased(hosts, "GPU-n2-1"), "the end of the lease")


def test_gpus_that_others_have_on_another_node_are_not_taken(
    server: HostServer, hosts: Hosts
) -> None:
    with held(hosts, 2, "GPU-n2-0"):
        pool = server.start(nodes=2, num_ranks=2)
        assert pool["ranks"][1]["gpu"]["uuid"] == "GPU-n2-1"
        server.api("DELETE", f"pools/{pool['id']}?wait=1")
        failed = server.settled(nodes=2, num_ranks=4)
        assert failed["state"] == "FAILED"
        assert failed["reason"]["code"] == "gpus_taken"
        assert failed["reason"]["message"].startswith("On node n2: ")
        assert "GPU 0" in failed["reason"]["message"]
    with held(hosts, 1, "GPU-n1-0"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            server.start(nodes=2, num_ranks=4, one_rank_per_gpu=True)
        said = json.loads(refused.value.read())
        assert said["message"].startswith("On node n1: ") and "GPU 0" in said["message"], said


def test_ranks_that_cannot_be_replaced_on_a_node_leave_the_others_alone(hosts: Hosts) -> None:
    """All ranks were ended, and their variables lost."""
    lab = Lab(hosts, "salloc", "--nodes=2", "--quiet")
    try:
        lab.ok("%load_ext jupyter_dist_server")
        lab.ok("%dist_init --nodes 2 -n 4")
        lab.ok("%%distributed\nkept = rank")
        (agent,) = hosts.processes(2, "dist-agent")
        agent.kill()
        wait_for(lambda: "dead" in lab.ok("%dist_status"), "the loss of the node")
        wait_for(lambda: not is_leased(hosts, "GPU-n2-0"), "the end of its lease")
        with held(hosts, 2, "GPU-n2-0"):
            error = lab.run("%dist_restart --ranks 2,3")["error"]
            assert "On node n2: " in error and "GPU 0" in error, error
            assert "kept 1" in lab.ok("%%rank [0,1]\nprint('kept', kept)")
        lab.ok("%dist_restart --ranks 2,3")
        assert "kept 1" in lab.ok("%%rank [0,1]\nprint('kept', kept)")
        assert "sum 4.0" in lab.ok(SUM)
        lab.ok("%dist_shutdown")
    finally:
        lab.close()


def test_leases_of_all_nodes_tell_when_the_pool_ends_and_what_it_is_called(
    server: HostServer, hosts: Hosts
) -> None:
    pool = server.start(nodes=2, num_ranks=4, time_limit=3600, name="first.ipynb")
    server.api("POST", f"pools/{pool['id']}/extend", {"time": 7200})
    begun = pool["ends_by"]
    (hosts.base / "first.ipynb").write_text(json.dumps(EMPTY))
    server.rename("first.ipynb", "second.ipynb")

    def is_told(number: int) -> bool:
        with contextlib.suppress(KeyError, ValueError):  # it is just being written
            said = told(hosts, number)
            return said["notebook"] == "second.ipynb" and abs(said["ends_by"] - begun - 7200) < 60
        return False

    wait_for(lambda: all(map(is_told, hosts.numbers)), "the news in the leases")
    server.api("DELETE", f"pools/{pool['id']}?wait=1")


def test_the_status_has_the_gpus_of_all_nodes(hosts: Hosts) -> None:
    lab = Lab(hosts, "salloc", "--nodes=2", "--quiet")
    try:
        lab.ok("%load_ext jupyter_dist_server")
        said = lab.ok("%dist_init --nodes 2 -n 4")
        assert "4 ranks ready on n1: GPUs 0, 1; n2: GPUs 0, 1 (" in said, said
        tell(hosts, 2, "0.utilization=31\n1.utilization=77\n")

        def table() -> list[str] | None:  # a busy node may not report in time
            said = lab.ok("%dist_status")
            return None if "did not report" in said else said.split("\n\n")[1].splitlines()

        gpus = wait_for(table, "what both nodes report")
        assert gpus[0].split() == ["node", "GPU", "name", "busy", "memory", *gpus[0].split()[5:]]
        rows = [(row.split()[0], row.split()[1], row.split()[-1]) for row in gpus[1:]]
        assert rows == [("n1", "0", "0"), ("n1", "1", "1"), ("n2", "0", "2"), ("n2", "1", "3")]
        assert "77 %" in gpus[4] and "this pool, rank 3" in gpus[4], gpus
        answer = lab.run("%%rank [3]\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
        assert "GPU 1 NVIDIA H100 80GB HBM3 of node n2" in answer["error"], answer
        hosts.cut(2)
        try:

            def is_said() -> bool:
                return "Node n2 has been unreachable since " in lab.ok("%dist_status")

            wait_for(is_said, "the loss of the node")
            assert is_said()  # also to who asks later, when nobody has watched its GPUs meanwhile
        finally:
            hosts.mend(2)
        lab.ok("%dist_shutdown")
        wait_for(lambda: samplers(hosts) == 0, "the end of the sampler")
    finally:
        lab.close()


def test_the_page_names_the_nodes_of_gpus(server: HostServer, hosts: Hosts) -> None:
    """The last test: the page keeps GPUs being sampled."""
    tell(hosts, 2, "0.utilization=31\n1.utilization=77\n")
    pool = server.start(nodes=2, num_ranks=4)
    assert "n1: GPUs 0, 1; n2: GPUs 0, 1" in server.page()
    wait_for(lambda: '77" aria-label="n2: GPU 1: utilization"' in server.page(), "its utilization")
    server.api("DELETE", f"pools/{pool['id']}?wait=1")
