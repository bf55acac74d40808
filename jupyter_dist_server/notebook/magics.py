"""Registering the magics in a shell."""

from __future__ import annotations

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics

from .cell_magics import CellMagics
from .current import CurrentPool
from .pool_magics import PoolMagics

MAGICS: tuple[type[Magics], ...] = (PoolMagics, CellMagics)
"""All of ours; each takes the shell and the notebook's pool."""

_loaded: dict[type[Magics], Magics] = {}


def load(shell: InteractiveShell) -> None:
    """Register the magics in a shell, and attach to the notebook's pool if one is running."""
    if not _loaded:
        pool = CurrentPool()
        _loaded.update({kind: kind(shell, pool) for kind in MAGICS})
    shell.register_magics(*_loaded.values())
    cells = _loaded[CellMagics]
    transforms = shell.input_transformers_cleanup
    for transform in (cells.send_all, cells.separate_rank):
        if transform not in transforms:
            transforms.insert(0, transform)
    if record := cells.pool.attach():
        print(f"Attached to this notebook's pool of {record['world_size']} ranks.")


def unload(shell: InteractiveShell) -> None:
    """Remove the input transformers and magics."""
    if not _loaded:
        return
    cells = _loaded[CellMagics]
    for transform in (cells.send_all, cells.separate_rank):
        if transform in shell.input_transformers_cleanup:
            shell.input_transformers_cleanup.remove(transform)
    for ours in _loaded.values():
        for kind, magics in ours.magics.items():
            for name in magics:
                shell.magics_manager.magics[kind].pop(name, None)
