"""What ``%load_ext`` registers in a shell: the magics, and hooks in its kernel."""

from __future__ import annotations

from functools import partial
from typing import Any

import zmq
from IPython import get_ipython
from IPython.core.interactiveshell import InteractiveShell

from ..common.errors import DistError
from ..common.processes.program_path import let_programs_find_jdist
from ..common.units import count_ranks
from ..placement.requests.request import PoolRequest
from .custom_placement import Place
from .debugging.front import DebuggerFront
from .hooks.completion import Introspection
from .hooks.end_warning import EndWarning
from .hooks.widgets import Comms
from .magics.base import DistMagics
from .magics.cell_magics import CellMagics
from .magics.check_magics import CheckMagics
from .magics.compatibility import CompatibilityMagics
from .magics.export_magics import ExportMagics
from .magics.pool_magics import PoolMagics
from .magics.reports.pool_status import with_progress
from .magics.running_pool_magics import RunningPoolMagics
from .magics.scale_magics import ScaleMagics
from .magics.state_magics import StateMagics
from .magics.value_magics import ValueMagics
from .output.replay import Replay
from .output.stop_result import show_stop_details
from .python_api import NotebookPool
from .session.current_pool import CurrentPool

MAGICS: tuple[type[DistMagics], ...] = (
    PoolMagics,
    CellMagics,
    ValueMagics,
    CheckMagics,
    RunningPoolMagics,
    ScaleMagics,
    ExportMagics,
    CompatibilityMagics,
    StateMagics,
)

_loaded: dict[type[DistMagics], Any] = {}
"""An instance of each class."""
_hooks: list[Introspection | Comms | Replay | EndWarning | DebuggerFront] = []
"""Those installed in the notebook's kernel; a terminal has none."""


def current_pool() -> NotebookPool:
    """Return the notebook's running pool, see `jupyter_dist_server.current_pool`."""
    if not _loaded:
        raise DistError(
            "no_pool",
            "No pool is running.",
            "Start one with %load_ext jupyter_dist_server and %dist_init.",
        )
    current: CurrentPool = _loaded[CellMagics].pool
    current.require()
    return NotebookPool(current)


def start_pool(place: Place | None, **asked: Any) -> NotebookPool:
    """Start a pool, see `jupyter_dist_server.start_pool`."""
    if not _loaded:
        shell = get_ipython()
        if shell is None:
            raise DistError("no_notebook", "This is neither a notebook nor IPython.")
        load(shell)
    _loaded[PoolMagics].start(PoolRequest.from_json(asked), place)
    return current_pool()


def load(shell: InteractiveShell) -> None:
    """Register the magics in a shell, and attach to the notebook's pool if one is running."""
    let_programs_find_jdist()
    if not _loaded:
        pool = CurrentPool()
        pool.show_progress = partial(with_progress, shell)
        _loaded.update({kind: kind(shell, pool) for kind in MAGICS})
    shell.register_magics(*_loaded.values())
    _load_again_quietly(shell)
    cells: CellMagics = _loaded[CellMagics]
    transforms = shell.input_transformers_cleanup
    for transform in (cells.send_all, cells.find_magic):
        if transform not in transforms:
            transforms.insert(0, transform)
    kernel = getattr(shell, "kernel", None)
    if kernel is not None and not _hooks:
        _queue_all_outputs(kernel)
        _hooks.extend([Introspection(kernel, cells), Comms(shell, kernel)])
        _hooks.extend([Replay(shell, kernel), EndWarning(shell)])
        _hooks.append(DebuggerFront(kernel, cells.pool))
        for hook in _hooks:
            hook.install()
    shell.events.register("post_run_cell", show_stop_details)  # after Replay, which takes the error
    if record := cells.pool.attach():
        print(f"Attached to this notebook's pool of {count_ranks(record.world_size)}.")


def _load_again_quietly(shell: InteractiveShell) -> None:
    """Have ``%load_ext`` print nothing if the panel has loaded us before."""
    manager: Any = shell.extension_manager
    load_extension = type(manager).load_extension

    def load_ours_once(name: str) -> Any:
        is_there = name == "jupyter_dist_server" and name in manager.loaded
        return None if is_there else load_extension(manager, name)

    manager.load_extension = load_ours_once


def _queue_all_outputs(kernel: Any) -> None:
    """Have the kernel drop no output that waits to be sent; cells' output limits bound it.

    By default, ZeroMQ drops what is published while 1,000 messages wait for a slow client.
    """
    thread = kernel.iopub_thread
    if isinstance(thread.socket, zmq.Socket):  # an in-process kernel has none
        thread.schedule(lambda: thread.socket.set(zmq.SNDHWM, 0))


def unload(shell: InteractiveShell) -> None:
    """Remove the input transformers and magics."""
    if not _loaded:
        return
    while _hooks:
        _hooks.pop().remove()
    if show_stop_details in shell.events.callbacks["post_run_cell"]:
        shell.events.unregister("post_run_cell", show_stop_details)
    cells = _loaded[CellMagics]
    for transform in (cells.send_all, cells.find_magic):
        if transform in shell.input_transformers_cleanup:
            shell.input_transformers_cleanup.remove(transform)
    for ours in _loaded.values():
        for kind, magics in ours.magics.items():
            for name in magics:
                shell.magics_manager.magics[kind].pop(name, None)
