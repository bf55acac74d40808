"""Tools for the machine, its pools of ranks, and cells on them."""

from __future__ import annotations

import asyncio
import itertools
from functools import partial
from typing import Any

from ..base_handlers import DistHandler
from .own_routes import RouteFailed, call_route
from .tool import VERSION, Arguments, Tool, check_version
from .tool_texts import RESULT, compact, outputs_text, rank_text

_MOST_TIME = 600.0
_START = 60.0
"""Seconds that `start_pool` waits until the pool runs."""
_RUNS = 16
"""Runs whose whole outputs are kept for `cell_output`."""
_RUN_CHARACTERS = 4 << 20
_STARTING = ("PENDING", "CONFIGURING")
_POOL = {"type": "string", "description": "The pool's id, such as p-3f2a19c0; see `pools`."}
_RANKS = {"type": "array", "items": {"type": "integer"}, "description": "By default all."}


async def _machine(handler: DistHandler, _: Arguments) -> str:
    gpus = await call_route(handler, "GET", "gpus")
    rows = [
        {
            "gpu": gpu["label"] if "label" in gpu else gpu["index"],
            "name": gpu["name"],
            "memory_total": gpu["memory_total"],
            "samples": gpus["samples"].get(gpu["uuid"]),
            "leased_by": gpus["leases"].get(gpu["uuid"]),
            "in_use": gpus["in_use"].get(gpu["uuid"], {}).get("words"),
            "closed": gpus["closed"].get(gpu["uuid"], {}).get("words"),
        }
        for gpu in gpus["gpus"]
    ]
    queue = await call_route(handler, "GET", "queue", start=1)
    told = {"gpus": rows, "no_gpu": gpus["reason"], "queue": queue["rows"][:50]}
    return compact(told)


def _short(pool: Arguments) -> Arguments:
    names = ("id", "version", "name", "state", "world_size", "backend", "reason", "notices")
    ranks = [
        {name: rank.get(name) for name in ("rank", "state", "cell", "gpu", "exit", "node")}
        for rank in pool["ranks"]
    ]
    told = {name: pool[name] for name in names}
    if pool["state"] in _STARTING:
        told["progress"] = pool["progress"]
    return told | {"version": str(pool["version"]), "ranks": ranks}


async def _pools(handler: DistHandler, _: Arguments) -> str:
    found = await call_route(handler, "GET", "pools")
    return compact({"pools": [_short(pool) for pool in found["pools"]]})


async def _pool(handler: DistHandler, given: Arguments) -> str:
    pool = await call_route(handler, "GET", f"pools/{given['pool']}")
    return compact(_short(pool) | {"ranks": pool["ranks"], "idle_since": pool["idle_since"]})


async def _start_pool(handler: DistHandler, given: Arguments) -> str:
    pool = await call_route(handler, "POST", "pools", given)
    until = asyncio.get_running_loop().time() + _START
    while pool["state"] in _STARTING:
        left = until - asyncio.get_running_loop().time()
        if left <= 0:
            break
        query = {"after": pool["version"], "wait": f"{left:.0f}"}
        pool = await call_route(handler, "GET", f"pools/{pool['id']}", **query)
    return compact(_short(pool))


async def _change_pool(
    handler: DistHandler, given: Arguments, *, method: str, action: str, **query: Any
) -> str:
    path = f"pools/{given['pool']}"
    if "version" in given:
        pool = await call_route(handler, "GET", path)
        check_version(given, str(pool["version"]))
    body = {"ranks": given["ranks"]} if given.get("ranks") is not None else {}
    sent = None if method == "DELETE" else body
    pool = await call_route(handler, method, f"{path}{action}", sent, **query)
    return compact(_short(pool))


class Runs:
    """The whole outputs of the last runs, for what was cut."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._kept: dict[str, dict[int, str]] = {}

    def keep(self, texts: dict[int, str]) -> str:
        """Keep the texts of ranks; return the name of the run."""
        name = f"run-{next(self._numbers)}"
        each = _RUN_CHARACTERS // max(1, len(texts))
        self._kept[name] = {rank: text[-each:] for rank, text in texts.items()}
        for old in [*self._kept][:-_RUNS]:
            del self._kept[old]
        return name

    def text(self, run: str, rank: int) -> str:
        """Return what a rank printed in a run."""
        try:
            return self._kept[run][rank]
        except KeyError:
            raise RouteFailed(f"The output of rank {rank} in {run} is not kept.") from None


async def _run_on_ranks(handler: DistHandler, given: Arguments) -> str:
    body: Arguments = {name: given[name] for name in ("code", "ranks") if name in given}
    body["timeout"] = min(float(given.get("timeout", 60.0)), _MOST_TIME)
    answer = await call_route(handler, "POST", f"pools/{given['pool']}/execute", body)
    return await asyncio.to_thread(_outputs, handler.settings["jupyter_dist_mcp_runs"], answer)


def _outputs(runs: Runs, answer: Arguments) -> str:
    ranks = {int(rank): said for rank, said in answer["ranks"].items()}
    texts = {rank: rank_text(said["outputs"]) for rank, said in ranks.items()}
    return outputs_text(
        runs.keep(texts), {rank: said["status"] for rank, said in ranks.items()}, texts
    )


async def _cell_output(handler: DistHandler, given: Arguments) -> str:
    runs: Runs = handler.settings["jupyter_dist_mcp_runs"]
    text = runs.text(given["run"], given["rank"])
    begin = max(0, int(given.get("offset", 0)))
    piece = text[begin : begin + RESULT]
    more = begin + len(piece) < len(text)
    return piece + (f"\n… go on with offset {begin + len(piece)} …" if more else "")


async def _why_stuck(handler: DistHandler, given: Arguments) -> str:
    path = f"pools/{given['pool']}"
    verdict = (await call_route(handler, "GET", f"{path}/verdict"))["verdict"]
    pool = await call_route(handler, "GET", path)
    stacks: dict[str, list[int]] = {}
    for rank in [rank["rank"] for rank in pool["ranks"] if rank["state"] == "busy"][:16]:
        try:
            text = (await call_route(handler, "GET", f"{path}/ranks/{rank}/stack"))["text"]
        except RouteFailed as failed:
            text = str(failed)
        stacks.setdefault(text, []).append(rank)
    told = [{"ranks": ranks, "stack": text} for text, ranks in stacks.items()]
    return compact({"verdict": verdict or "No rank waits for another one.", "stacks": told})


async def _variables(handler: DistHandler, given: Arguments) -> str:
    return compact(await call_route(handler, "GET", f"pools/{given['pool']}/variables"))


async def _check(handler: DistHandler, given: Arguments) -> str:
    body = {name: given[name] for name in ("names", "ranks") if name in given}
    return compact(await call_route(handler, "POST", f"pools/{given['pool']}/check", body))


_pool_field = {"pool": _POOL}
_changing = {"pool": _POOL, "ranks": _RANKS, "version": VERSION}
_start_fields = {
    "num_ranks": {"type": "integer", "description": "By default one per free GPU."},
    "gpu_ids": {"type": "array", "items": {"type": ["integer", "string"]}},
    "backend": {"type": "string", "enum": ["nccl", "gloo", "none"]},
    "time_limit": {"type": "number", "description": "Seconds."},
    "idle_limit": {"type": "number", "description": "Seconds."},
    "wait": {"type": "boolean", "description": "Wait in line if GPUs are taken."},
    "name": {"type": "string"},
}

POOL_TOOLS = (
    Tool("machine", "GPUs, who has them, and the queue of all users.", _machine, {}),
    Tool("pools", "The pools of ranks of this server.", _pools, {}),
    Tool("pool", "All about one pool and its ranks.", _pool, _pool_field, ("pool",)),
    Tool(
        "start_pool",
        "Start ranks (PyTorch processes). Answers when they run, or after 60 s. If GPUs are "
        "taken, the answer says by whom, and what can be had instead.",
        _start_pool,
        _start_fields,
        executes=True,
    ),
    Tool(
        "run_on_ranks",
        "Run Python on ranks, in the variables that their notebook uses. Equal outputs come "
        "once. For work of more than 10 minutes use submit_job.",
        _run_on_ranks,
        {
            "pool": _POOL,
            "code": {"type": "string"},
            "ranks": _RANKS,
            "timeout": {"type": "number", "description": "Seconds, at most 600; default: 60."},
        },
        ("pool", "code"),
        executes=True,
        destroys=True,
    ),
    Tool(
        "cell_output",
        "The whole output of a rank in one of the last 16 runs, from a character on.",
        _cell_output,
        {
            "run": {"type": "string"},
            "rank": {"type": "integer"},
            "offset": {"type": "integer"},
        },
        ("run", "rank"),
    ),
    Tool(
        "why_stuck",
        "Why ranks wait for each other, and the Python stacks of busy ranks.",
        _why_stuck,
        _pool_field,
        ("pool",),
    ),
    Tool(
        "variables",
        "Types, shapes, devices and sizes of variables, and which differ between ranks.",
        _variables,
        _pool_field,
        ("pool",),
    ),
    Tool(
        "check",
        "Compare variables of any size on all ranks; names may be expressions.",
        _check,
        {
            "pool": _POOL,
            "names": {"type": "array", "items": {"type": "string"}},
            "ranks": _RANKS,
        },
        ("pool",),
        executes=True,
    ),
    Tool(
        "interrupt",
        "Stop the cells of ranks, as Stop does; variables are kept.",
        partial(_change_pool, method="POST", action="/interrupt"),
        {"pool": _POOL, "ranks": _RANKS},
        ("pool",),
        executes=True,
    ),
    Tool(
        "restart_ranks",
        "Replace ranks by new processes; their variables are lost.",
        partial(_change_pool, method="POST", action="/restart"),
        _changing,
        ("pool", "version"),
        executes=True,
        destroys=True,
    ),
    Tool(
        "kill_ranks",
        "Kill ranks with SIGKILL; their variables are lost.",
        partial(_change_pool, method="POST", action="/kill"),
        _changing,
        ("pool", "ranks", "version"),
        executes=True,
        destroys=True,
    ),
    Tool(
        "stop_pool",
        "Stop a pool: all variables of its ranks are lost.",
        partial(_change_pool, method="DELETE", action="", wait=60),
        {"pool": _POOL, "version": VERSION},
        ("pool", "version"),
        executes=True,
        destroys=True,
    ),
)
