"""Values that no field of a request for a pool may have."""

from __future__ import annotations

from typing import Any

BAD_FIELDS: dict[str, list[Any]] = {
    "min_ranks": [0, -1, 1.5, "2", True],
    "cpu_ranks": [0, -1, 1.5, "2", True],
    "num_ranks": [0, -1, 1025, 1.5, "2", True, 10**400],
    "nodes": [0, 1.5, "2", True],
    "engine": ["mpi", 1, []],
    "ranks_per_node": [0, 1.5, "2", True],
    "node_map": [{}, [], ["n1"], [["n1"]], [["", 0]], [["n1", 0], ["n2", None]], [["n1", True]]],
    "node_python": [5],
    "gpu_ids": [[], "0,1", [1.5], [True], [None], {}],
    "placement": ["best", 1, []],
    "min_free_memory": [0, -1, 1.5, "20GB", True, 2**63],
    "performance": [{}, [100], {"0": "fast"}, {"0": True}, {"0": 10**400}],
    "map": [{}, [0], {"a": 0}, {"1": 0}, {"0": 1.5}],
    "one_rank_per_gpu": [1, "yes"],
    "oversubscribe": [1, "yes"],
    "force": [1, "yes"],
    "wait": [0, -1, "5", [], float("inf"), 10**400],
    "kernel_pid": [0, "1", True, 2**31],
    "check": [1, "yes"],
    "backend": ["mpi", 1, []],
    "start_method": ["thread", 1],
    "env": [[], {"A": 1}, {"": "x"}, {"A=B": "x"}, {"A": "x\0y"}],
    "timeout": [0, -1, "5", True, [], float("inf"), 10**400],
    "time_limit": [0, -1, "2:00:00", True, [], float("inf")],
    "idle_limit": [0, "30m", False],
    "park_after": [0, "30m", False],
    "kernel_id": [5],
    "name": [5],
    "python": [["python"]],
    "cwd": [5],
    "sys_path": ["/tmp", [1]],
    "base_env": [[], {"A": None}],
    "number_of_ranks": [2],
    "": [2],
}
