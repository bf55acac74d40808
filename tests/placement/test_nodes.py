"""Which ranks each node gets, as `scontrol` lists nodes, and why a request is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.protocol.node_messages import RayNode, RayNodes
from jupyter_dist_server.common.protocol.pool_record import PoolRecord, PoolState
from jupyter_dist_server.gpus.inventory import NO_GPU, Gpu, Inventory
from jupyter_dist_server.notebook.magics.option_parser import read_node_map
from jupyter_dist_server.notebook.reuse_pool import can_reuse
from jupyter_dist_server.placement.new_pool_record import Allocation, new_record
from jupyter_dist_server.placement.ranks_to_gpus import place_ranks
from jupyter_dist_server.placement.ranks_to_nodes import Spread, spread
from jupyter_dist_server.placement.requests.request import PoolRequest

CPU = Inventory(reason=NO_GPU)
GPUS = Inventory(tuple(Gpu(index, f"GPU-{index}", "H100", 80 << 30, "", "9.0") for index in (0, 1)))


class Cluster:
    """An allocation of three nodes; we are on ``n2``."""

    def __init__(self, folder: Path) -> None:
        self.scontrol = scontrol = folder / "scontrol"
        lines = [
            f"NodeName=n{n} NodeAddr=10.0.0.{n} Gres={gres} NodeHostName=n{n}"
            for n, gres in ((1, "(null)"), (2, "(null)"), (3, "gpu:h100:4(S:0-1),shard:16"))
        ]
        scontrol.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
        scontrol.chmod(0o755)
        self.environment = {
            "PATH": str(folder),
            "SLURM_JOB_ID": "1",
            "SLURM_JOB_NODELIST": "n[1-3]",
            "SLURMD_NODENAME": "n2",
        }

    def place(
        self, inventory: Inventory = CPU, setting: str = "", **fields: Any
    ) -> dict[str, list[int]]:
        """Return the ranks of each node, and remember the record's fields."""
        request = self.request(**fields)
        self.here, nodes = spread(request, setting)
        first = Allocation(place_ranks(self.here, inventory)).fields
        if nodes is None:
            return {"": [rank.rank for rank in first["ranks"]]}
        self.fields = nodes.fields(first)
        placed = nodes.pool_nodes(len(first["ranks"]))
        self.masks = {rank: nodes.mask(node, rank) for node in placed[1:] for rank in node.ranks}
        return {node.name: node.ranks for node in placed}

    def request(self, **fields: Any) -> PoolRequest:
        """Return a request from this node."""
        return PoolRequest.from_json({**fields, "base_env": self.environment})

    def refusal(self, **fields: Any) -> DistError:
        """Return why a request is refused."""
        with pytest.raises(DistError) as refused:
            self.place(**fields)
        return refused.value


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


@pytest.mark.parametrize(
    ("fields", "placed"),
    [
        ({}, {"": [0, 1]}),
        ({"nodes": 1, "engine": "slurm"}, {"": [0, 1]}),
        ({"engine": "local"}, {"": [0, 1]}),
        ({"nodes": 2}, {"n2": [0, 1], "n1": [2, 3]}),
        ({"nodes": 2, "num_ranks": 3}, {"n2": [0, 1], "n1": [2]}),
        ({"engine": "slurm"}, {"n2": [0, 1], "n1": [2, 3], "n3": [4, 5]}),
        ({"engine": "slurm", "num_ranks": 2}, {"n2": [0], "n1": [1]}),
        ({"ranks_per_node": 1}, {"n2": [0], "n1": [1], "n3": [2]}),
        ({"ranks_per_node": 3, "num_ranks": 4}, {"n2": [0, 1, 2], "n1": [3]}),
        ({"ranks_per_node": 3, "num_ranks": 3}, {"": [0, 1, 2]}),
        ({"ranks_per_node": 2, "nodes": 2}, {"n2": [0, 1], "n1": [2, 3]}),
    ],
    ids=str,
)
def test_ranks_are_placed_in_blocks(
    cluster: Cluster, fields: dict[str, Any], placed: dict[str, list[int]]
) -> None:
    assert cluster.place(**fields) == placed


def test_a_map_places_ranks_and_their_gpus(cluster: Cluster) -> None:
    mapped = read_node_map("n2:1,n3:4,n3:0,n2:0,n3:4")
    assert cluster.place(GPUS, node_map=mapped) == {"n2": [0, 3], "n3": [1, 2, 4]}
    assert cluster.here.map == {0: 1, 1: 0}
    ranks = cluster.fields["ranks"]
    assert [rank.rank for rank in ranks] == list(range(5))
    assert [rank.local_rank for rank in ranks] == [0, 0, 1, 1, 2]
    assert [rank.device for rank in ranks] == ["cuda:0", "cuda:0", "cuda:1", "cuda:1", "cuda:0"]
    assert cluster.masks == {1: "4,0", 2: "4,0", 4: "4,0"}
    assert cluster.place(node_map=read_node_map("n2,n1,n1")) == {"n2": [0], "n1": [1, 2]}
    assert cluster.place(node_map=read_node_map("n2,n2")) == {"": [0, 1]}
    assert read_node_map("0:1,1:0") is None


def test_the_same_map_again_is_the_running_pool(cluster: Cluster) -> None:
    mapped = read_node_map("n2:1,n3:3")
    cluster.place(GPUS, node_map=mapped)
    record = new_record(PoolRequest.from_json({"node_map": mapped}))
    record = msgspec.structs.replace(record, **cluster.fields, state=PoolState.RUNNING)
    record = msgspec.json.decode(msgspec.json.encode(record), type=PoolRecord)
    for text, same in (("n2:1,n3:3", True), ("n2:1,n3:2", False), ("n2,n3", False)):
        request = PoolRequest.from_json({"node_map": read_node_map(text)})
        assert can_reuse(request, record) is same, text
    assert can_reuse(PoolRequest(nodes=2), record)
    on_one_machine = PoolRequest.from_json({"map": {"0": 1, "1": 3}})
    assert not can_reuse(on_one_machine, record)


def test_gpus_that_only_other_nodes_have_are_named(cluster: Cluster) -> None:
    cluster.place(nodes=3)
    (notice,) = cluster.fields["notices"][1:]
    assert notice.startswith("All ranks run on the CPU, as the notebook's node n2 has no GPU that ")
    assert "There are GPUs on n3: to use them, start JupyterLab on a node with GPUs." in notice
    cluster.place(nodes=2)
    assert len(cluster.fields["notices"]) == 1, "n1 has none either"
    cluster.place(GPUS, nodes=3)
    assert "no GPU" not in str(cluster.fields["notices"])
    has_some = cluster.scontrol.read_text().replace("(null)", "gpu:h100:4")
    cluster.scontrol.write_text(has_some)
    cluster.place(nodes=3)
    (notice,) = cluster.fields["notices"][1:]
    assert "none of the GPUs of n2. Under Slurm, start JupyterLab by srun with --gpus" in notice


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({"nodes": 4}, "nodes", "4 nodes, but the allocation has 3: n1, n2, n3"),
        ({"num_ranks": 8, "ranks_per_node": 2}, "nodes", "4 nodes, but the allocation has 3"),
        ({"nodes": 2, "engine": "local"}, "engine", "only the node of the notebook"),
        ({"nodes": 3, "num_ranks": 4, "ranks_per_node": 2}, "ranks_per_node", "4 ranks are not 2"),
        ({"node_map": [["n1", None]]}, "node_map", "Rank 0 must be on the node of the notebook"),
        ({"node_map": [["n2", 0], ["n9", 0]]}, "node_map", "names node n9, which is not"),
        ({"node_map": [["n2", 0], ["n1", 0]], "nodes": 3}, "node_map", "has 2 nodes, but"),
        ({"node_map": [["n2", 0], ["n1", 0]], "num_ranks": 3}, "node_map", "has 2 ranks, but"),
        ({"node_map": [["n2", 0]], "placement": "cycle"}, "placement", "GPUs of one machine"),
        ({"nodes": 2, "gpu_ids": [0, 1]}, "gpu_ids", "GPUs of one machine, not of several nodes"),
        ({"engine": "slurm", "map": {"0": 1}}, "map", "GPUs of one machine, not of several nodes"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(
    cluster: Cluster, fields: dict[str, Any], field: str, said: str
) -> None:
    refused = cluster.refusal(**fields)
    assert refused.field == field
    assert said in refused.message
    assert refused.hint or field in ("engine", "nodes", "node_map", "ranks_per_node")


def test_the_setting_decides_where_a_request_does_not(cluster: Cluster) -> None:
    with pytest.raises(DistError, match="The engine local has only") as refused:
        cluster.place(nodes=2, setting="local")
    assert refused.value.hint == "Choose another one with --engine: slurm, ray."
    assert cluster.place(nodes=2, engine="slurm", setting="local")["n1"] == [2, 3]
    assert cluster.place(setting="slurm") == {"": [0, 1]}


def test_an_engine_without_its_cluster_is_refused() -> None:
    for fields in ({"nodes": 2}, {"engine": "slurm"}):
        with pytest.raises(DistError) as refused:
            spread(PoolRequest.from_json({**fields, "base_env": {}}))
        assert refused.value.code == "no_nodes"


def test_ray_gives_gpus_itself(tmp_path: Path) -> None:
    """A Python that answers as the child that asks Ray does, of two nodes."""
    nodes = [RayNode("n1", "a", "10.0.0.1", True, 1), RayNode("n2", "b", "10.0.0.2", False, 4)]
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho '{msgspec.json.encode(RayNodes(nodes)).decode()}'\n")
    python.chmod(0o755)

    def spread_by_ray(text: str) -> Spread | None:
        asked = {"engine": "ray", "node_map": read_node_map(text), "python": str(python)}
        return spread(PoolRequest.from_json({**asked, "base_env": {"PATH": os.defpath}}))[1]

    with pytest.raises(DistError, match="but Ray decides on those of other") as refused:
        spread_by_ray("n1:0,n2:3")
    assert (refused.value.field, refused.value.hint.count("n1,n2,n2")) == ("node_map", 1)
    assert spread_by_ray("n1:0,n1:1") is None, "these are leased on this machine"
    placed = spread_by_ray("n1,n2,n2")
    assert placed and [node.gpus for node in placed.nodes] == [1, 4]
