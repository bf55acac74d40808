"""The private names of ipykernel, IPython and torch that ranks use are there, as they are used.

When a new version changes one, this test fails with a sentence on what would break. Ranks can do
without each name of ipykernel and IPython: see `test_other_releases.py`.
"""

from __future__ import annotations

import importlib.util
import inspect
import pkgutil
import re
from typing import Any

import pytest
from ipykernel import version_info
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQInteractiveShell
from pygments.lexer import RegexLexerMeta

from jupyter_dist_server.common.protocol.ranks.collectives import WAITING_MODULES
from jupyter_dist_server.rank.torch_internals import DDP_INNER_MODULES

RPC = "a rank that waits in torch.distributed.rpc cannot be stopped"
COUNT = "a group in which ranks are at different collectives is not re-created after a stop"
DESTROY = "a script that calls destroy_process_group cannot run twice"
ESTIMATE = "%dist_memory --estimate fails"
HISTORY = "nobody learns which lines filled the memory of a GPU"
LOOPS = "a script that calls asyncio.run cannot run"
CHILD = "a worker that a rank forks cannot have a process group of its own"

C10D = "torch.distributed.distributed_c10d"
WORLD = f"{C10D}:_world"
TRACKER = "torch.distributed._tools.mem_tracker"
RPC_API = "torch.distributed.rpc.api"
SHARDS = "torch.distributed.tensor._utils"
MEMORY = "torch.cuda.memory"

FUNCTIONS: list[tuple[Any, str, list[str], str]] = [
    (IPythonKernel, "_publish_status", ["status", "channel", "parent"], "cells become slower"),
    (IPKernelApp, "_bind_socket", ["s", "port"], "ranks on other nodes do not start"),
    (
        ZMQInteractiveShell,
        "_showtraceback",
        ["etype", "evalue", "stb"],
        "an error is not known to end its cell",
    ),
    (ZMQInteractiveShell, "_get_exc_info", ["exc_tuple"], "interrupts show frames of ours"),
    (C10D, "_update_default_pg", ["pg"], DESTROY),
    (C10D, "_set_pg_timeout", ["timeout", "group"], "init_process_group ignores its time limit"),
]
"""Owner, name, parameters, and what breaks without.

What torch owns is named, as each worker of pytest collects this file, and one runs it.
"""

ATTRIBUTES: list[tuple[Any, str, str]] = [
    (ZMQInteractiveShell, "_last_traceback", "a failed cell of another client has no traceback"),
]
"""Owner, attribute of its objects, and what breaks without."""

NAMES: list[tuple[Any, str, str]] = [
    *[("asyncio.tasks", f"_{does}_task", LOOPS) for does in ("leave", "enter")],
    ("asyncio", "_set_running_loop", LOOPS),
    *[(WORLD, f"pg_{name}", CHILD) for name in ("map", "names", "group_ranks", "to_tag")],
    *[(WORLD, name, CHILD) for name in ("pg_backend_config", "tags_to_pg")],
    (C10D, "_unregister_all_process_groups", CHILD),
    (WORLD, "group_count", "DTensor does not find its groups after a destroy"),
    (f"{C10D}:GroupMember", "WORLD", DESTROY),
    (f"{C10D}:ProcessGroup", "_get_backend", COUNT),
    (f"{C10D}:ProcessGroup", "_device_types", COUNT),
    (f"{C10D}:ProcessGroupGloo", "_get_sequence_number_for_group", COUNT),
    (f"{C10D}:ProcessGroupGloo", "_set_default_timeout", "a script's time limit stays after it"),
    (f"{C10D}:ProcessGroupGloo", "options", "a script's time limit stays after it"),
    (f"{C10D}:ProcessGroupGloo._Options", "_timeout", "a script's time limit stays after it"),
    ("torch.autograd", "_profiler_enabled", "a cell that profiles itself ends its rank"),
    ("torch.autograd.graph", "_engine_run_backward", "a stop does not know ranks in backward()"),
    *[(RPC_API, f"_{name}_current_rpc_agent", RPC) for name in ("get", "reset")],
    (RPC_API, "_is_current_rpc_agent_set", RPC),
    (RPC_API, "_destroy_rref_context", RPC),
    (RPC_API, "_cleanup_python_rpc_handler", RPC),
    (
        SHARDS,
        "compute_local_shape_and_global_offset",
        "nobody knows who holds which shard",
    ),
    *[(f"{TRACKER}:MemTracker", n, ESTIMATE) for n in ("track_external", "get_tracker_snapshot")],
    *[(f"{TRACKER}:_MemRefType", name, ESTIMATE) for name in ("PARAM", "GRAD", "OPT", "ACT")],
    *[("torch.utils._pytree", name, ESTIMATE) for name in ("tree_map_only", "tree_leaves")],
    ("torch._subclasses.fake_tensor:FakeTensorMode", "from_tensor", ESTIMATE),
    ("torch.cuda", "_lazy_call", HISTORY),
    *[(MEMORY, name, HISTORY) for name in ("_record_memory_history", "_snapshot")],
    (RegexLexerMeta, "process_tokendef", "each frame of a traceback takes 10 ms more"),
]
"""Owner, name, and what breaks without."""


def of_torch(owner: Any) -> Any:
    return pkgutil.resolve_name(owner) if isinstance(owner, str) else owner


def says(owner: Any, name: str, breaks: str) -> str:
    return f"{getattr(owner, '__name__', owner)}.{name} is not what it was: {breaks}."


@pytest.mark.parametrize(("owner", "name", "parameters", "breaks"), FUNCTIONS)
def test_functions(owner: Any, name: str, parameters: list[str], breaks: str) -> None:
    function = getattr(of_torch(owner), name, None)
    found = list(inspect.signature(function).parameters) if function else None
    assert found in (parameters, ["self", *parameters]), says(owner, name, breaks)


@pytest.mark.parametrize(("owner", "name", "breaks"), ATTRIBUTES)
def test_attributes_of_objects(owner: Any, name: str, breaks: str) -> None:
    packages = ("ipykernel", "IPython")
    bases = [base for base in owner.__mro__ if base.__module__.partition(".")[0] in packages]
    source = "".join(map(inspect.getsource, bases))
    assert re.search(rf"\b{name}\b( =|:|\(self\))", source), says(owner, name, breaks)


@pytest.mark.parametrize(("owner", "name", "breaks"), NAMES)
def test_names(owner: Any, name: str, breaks: str) -> None:
    assert hasattr(of_torch(owner), name), says(owner, name, breaks)


def test_a_rank_hears_of_the_socket_before_it_connects() -> None:
    breaks = "a rank on another node refuses its own control thread"
    assert IPKernelApp.class_traits().get("debug_shell_socket"), breaks
    source = inspect.getsource(IPKernelApp.init_control)
    made, connected = map(source.index, ("debug_shell_socket = ", "debug_shell_socket.connect("))
    assert made < connected, breaks


@pytest.mark.skipif(version_info < (7,), reason="older releases have no lock, so ranks have one")
def test_the_lock_of_cells_is_an_attribute() -> None:
    assert "self._main_asyncio_lock =" in inspect.getsource(IPythonKernel.__mro__[1]), says(
        IPythonKernel, "_main_asyncio_lock", "widgets wait for the end of a cell with an await"
    )


def test_groups_are_made_by_one_function() -> None:
    parameters = inspect.signature(of_torch(f"{C10D}:_new_process_group_helper")).parameters
    assert {"group_name", "store"} <= set(parameters), says(
        C10D, "_new_process_group_helper", "groups that hang cannot be broken"
    )


def test_the_short_sleep_of_a_cell_is_an_attribute() -> None:
    assert "self._execute_sleep" in inspect.getsource(IPythonKernel.__mro__[1]), says(
        IPythonKernel, "_execute_sleep", "each cell takes half a millisecond longer"
    )


def test_storages_are_made_without_a_warning() -> None:
    parameters = inspect.signature(of_torch("torch.storage:TypedStorage.__init__")).parameters
    assert "_internal" in parameters, says("torch.storage", "TypedStorage", "pulling tensors warns")


@pytest.mark.parametrize("module", [*WAITING_MODULES, *DDP_INNER_MODULES])
def test_modules_in_which_ranks_wait(module: str) -> None:
    there = importlib.util.find_spec(module)
    assert there, f"There is no {module}: it is not known in which collective a rank waits."
