"""One rank: an IPython kernel process with torchrun's environment and a process group.

The agent forks into `run`; spawned ranks enter through `main`.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import faulthandler
import gc
import importlib
import logging
import os
import random
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn, TextIO

import msgspec

from ..common.errors import DistError
from ..common.pool_folder import memory_file, rank_connection, read_config, write_private
from ..common.protocol.agents.rank_start import Failed, RankOrders, Ready
from ..common.protocol.failure_reason import Reason
from ..common.protocol.pool_file import PoolFile
from . import clock
from .group.process_group import ProcessGroup
from .kernel.curve_gate import RemotePlace
from .rank_report import Reporter
from .variables.memory import MemoryHistory
from .waits import flight_recorder

_KEPT: list[object] = []
_PRELOADED = (
    "torch",
    "torch.distributed",
    "ipykernel.kernelapp",
    f"{__package__}.kernel.kernel_app",
    f"{__package__}.group.pool_store",
)
"""What a rank imports before its first cell, so that it is imported once for all of them."""
_PRELOADED_IF_THERE = (
    "ipykernel.debugger",  # and with it debugpy: half of the time that a rank would take to start
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.logger",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "traitlets.config.argcomplete_config",  # which it imports where argcomplete is installed
)
"""The same, if this release of ipykernel or IPython has it."""


def preload() -> None:
    """Import what every rank needs; starts no thread and does not open CUDA."""
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # or debugpy warns on stderr, at its import
    gc.disable()  # collecting garbage takes a tenth of the time of the imports
    try:
        for name in _PRELOADED:
            importlib.import_module(name)
        for name in _PRELOADED_IF_THERE:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        if "numpy" in sys.modules:
            importlib.import_module("numpy.random")
        importlib.import_module(f"{__package__}.cells.tracebacks").warm_up()
    finally:
        gc.enable()


def no_cuda() -> str | None:
    """Say why torch, which is imported, cannot use GPUs; opens no CUDA."""
    import torch

    if torch.version.hip:
        return None
    which = f"torch {torch.__version__} of {sys.executable}"
    if not torch.version.cuda:
        return f"{which} was built without CUDA"
    try:  # as torch does at its first use of CUDA; a container may have NVML without this library
        ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return f"{which} cannot load the CUDA driver ({error})"
    return None


def losses() -> list[str]:
    """Say what ranks cannot do with this release of ipykernel or IPython."""
    from . import ipykernel_internals

    return ipykernel_internals.losses()


def import_failure(error: Exception) -> Reason:
    """Say which module is missing, or broken, in which interpreter."""
    missing = isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0]
    if missing == "torch":
        return Reason(
            "torch_missing",
            f"torch is not installed in the kernel's environment ({sys.executable}).",
            f'Install it there: "{sys.executable}" -m pip install torch',
        )
    return Reason(
        "import_failed",
        f"The ranks' modules cannot be imported in {sys.executable}: {error!r}.",
        "Start that Python and run “import torch, ipykernel” to see the error.",
        stderr=traceback.format_exc().splitlines()[-12:],
    )


def run(orders: RankOrders, keep_alive: object = None) -> NoReturn:
    """Be the rank until the agent ends it; in a forked child, keep the agent's objects alive."""
    _KEPT.append(keep_alive)
    report = socket.socket(fileno=orders.report)
    try:
        log = _detach(orders)
        app = _start(orders)
        for handler in app.log.handlers:
            if isinstance(handler, logging.StreamHandler):
                handler.setStream(log)  # errors of the kernel itself are no output of a cell
        stderr: Any = sys.stderr
        descriptors = [stderr.captured.content, stderr.cell_start]
        socket.send_fds(report, [msgspec.json.encode(Ready())], descriptors)
    except BaseException as error:
        with contextlib.suppress(OSError):  # the log may be on the full disk that is the reason
            traceback.print_exc()  # before the report, at which the agent reads the log
        lines = "".join(traceback.format_exception_only(error)).strip().splitlines()
        failure = Failed(lines[0 if "CUDA error" in lines[0] else -1])  # advice follows CUDA's
        if isinstance(error, DistError):
            failure = Failed(error.message, error.code, error.hint)
        report.sendall(msgspec.json.encode(failure))
        os._exit(1)
    report.close()
    app.start()
    _leave()


def _detach(orders: RankOrders) -> TextIO:
    """Become a session of our own that ends with the agent; write to our own log from here on."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, _leave)
    _let_workers_be_terminated()
    if sys.platform == "linux":
        PR_SET_PDEATHSIG = 1
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != orders.parent:
        os._exit(1)  # the agent died before the signal was requested
    if null := os.open(os.devnull, os.O_RDONLY):  # 0 where the agent has no standard input
        os.dup2(null, 0)
        os.close(null)
    fresh = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    log = os.open(Path(orders.folder, f"rank-{orders.rank}.log"), fresh)
    for target in (1, 2):
        os.dup2(log, target)
    own = os.fdopen(log, "w", buffering=1)
    faulthandler.enable(own, all_threads=False)  # not on the captured descriptor
    return own


def _leave(number: int = 0, _: object = None) -> NoReturn:
    """End at once, after the functions of `atexit`; a stuck process group is not waited for."""
    atexit._run_exitfuncs()
    if number:  # by the signal, which the agent reports
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
    os._exit(0)


def _let_workers_be_terminated() -> None:
    """Let SIGTERM end forked workers like any process, not like the rank.

    Python drops a signal between the fork and its first step in the child, if there is a handler;
    so the signal is blocked until there is none.
    """
    number = signal.SIGTERM

    def unblock() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])

    def become_worker() -> None:
        if signal.getsignal(number) is _leave:
            signal.signal(number, signal.SIG_DFL)
        unblock()

    os.register_at_fork(
        before=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [number]),
        after_in_parent=unblock,
        after_in_child=become_worker,
    )


def _start(orders: RankOrders) -> Any:
    config = read_config(Path(orders.folder))
    os.environ.update(orders.environment)
    os.environ.pop("PYTORCH_NVML_BASED_CUDA_CHECK", None)
    os.chdir(config.cwd)
    given = list(map(os.fsdecode, config.sys_path))
    sys.path[:] = [*given, *(path for path in sys.path if path not in given)]
    device = orders.device
    gpu = config.ranks[orders.rank].gpu

    import torch
    import torch.distributed as dist

    from .group.pool_store import StoreOfPool

    random.seed()  # or all forked ranks would draw the same numbers
    torch.default_generator.seed()  # the CPU's; torch.seed() would also seed those of GPUs
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if threads := config.thread_limits.get("OMP_NUM_THREADS"):
        torch.set_num_threads(int(threads))
    if device != "cpu":
        torch.cuda.set_device(device)
    flight_recorder.switch_on()
    flight_recorder.serve(Path(orders.folder), orders.rank)
    others = frozenset(
        node.address for place, node in enumerate(config.nodes) if place != config.node
    )
    store = StoreOfPool(Path(orders.folder), orders.tcp_store, orders.rank, config.world_size)
    group = ProcessGroup(orders.backend, orders.rank, config.world_size, store, device, others)
    if not orders.alone:
        if "nccl" in orders.backend:  # while no rank gives up because of another one's GPU
            torch.cuda.synchronize(device)
        group.join("first", 0, config.timeout)
    namespace = {
        "torch": torch,
        "dist": dist,
        "rank": orders.rank,
        "local_rank": int(os.environ["LOCAL_RANK"]),
        "world_size": config.world_size,
        "gpu_id": gpu and gpu.index,
        "device": torch.device(device),
    }
    return _start_kernel(orders, config, group, namespace)


def _start_kernel(
    orders: RankOrders, config: PoolFile, group: ProcessGroup, namespace: dict[str, Any]
) -> Any:
    from .kernel.kernel_app import RankApp

    folder = Path(orders.folder)
    if config.node:
        clock.follow(folder)
    connection = folder / f"rank-{orders.rank}.json"
    if not connection.exists():  # it does after a restart of the ranks
        about = rank_connection(folder, orders.rank, config.key, orders.address)
        write_private(connection, about)
    # Linux signals the agent's death; elsewhere ipykernel looks once a second.
    parent = 0 if sys.platform == "linux" else os.getppid()
    app = RankApp.instance(connection_file=str(connection), parent_handle=parent)
    if orders.address and config.keys:
        app.place = RemotePlace(orders.address, config.keys, str(folder / f"r{orders.rank}"))
    sys.argv = [""]  # as at Python's prompt; the agent's are not the user's
    app.initialize([])
    sys.breakpointhook = sys.__breakpointhook__  # debugpy's stops only where an IDE has connected
    app.kernel.group, app.kernel.report = group, Reporter(group.device)
    app.kernel.on_gpu = config.ranks[orders.rank].gpu is not None
    if group.device.startswith("cuda"):
        app.kernel.memory_history = MemoryHistory(memory_file(folder, orders.rank))
        app.kernel.memory_history.begin()
    app.kernel.shell.push(namespace, interactive=False)
    return app


def main() -> None:
    """Be a spawned rank, with the orders in the first argument."""
    preload()
    run(msgspec.json.decode(sys.argv[1], type=RankOrders))
