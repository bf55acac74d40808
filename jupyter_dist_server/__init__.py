"""Interactive multi-GPU PyTorch in JupyterLab: a notebook cell runs on every rank.

Importing this package costs next to nothing: it brings in neither torch nor Jupyter Server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from .notebook.custom_placement import Place
    from .notebook.python_api import NotebookPool

    __version__: str
else:  # type checkers would take every name for one of ours

    def __getattr__(name: str) -> str:
        if name == "__version__":
            from .common.package_version import version

            return version()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "jupyter-dist-server"}]


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    from .server.extension import JupyterDistApp

    return [{"module": "jupyter_dist_server", "app": JupyterDistApp}]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics; called by ``%load_ext jupyter_dist_server``."""
    from .notebook.register import load

    load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove what `load_ipython_extension` added; a running pool is left alone."""
    from .notebook.register import unload

    unload(shell)


def current_pool() -> NotebookPool:
    """Return the notebook's running pool, to push, pull and run functions with.

    Raises
    ------
    DistError
        If none is running.
    """
    from .notebook.register import current_pool

    return current_pool()


def start_pool(
    num_ranks: int | None = None, *, place: Place | None = None, **options: Any
) -> NotebookPool:
    """Start a pool for this notebook, as ``%dist_init`` does, and return it.

    Parameters
    ----------
    num_ranks : int or None
        By default one for each free GPU, or 2 on a machine without.
    place : callable or None
        ``place(rank, gpus) -> gpu`` decides on the GPU of each rank. It is given the free GPUs,
        with `index`, `uuid`, `name`, `memory_total`, `memory_free`, `utilization` and more, and
        returns one of them, its index or its UUID.
    **options
        The other options of ``%dist_init``, as Python values: ``gpu_ids=[0, 3]``,
        ``placement="free-memory"``, ``min_free_memory=20 * 2**30`` (bytes),
        ``performance={0: 100, 3: 110}``, ``map={0: 3, 1: 0}``, ``one_rank_per_gpu=True``,
        ``oversubscribe=True``, ``force=True``, ``wait=60`` (or ``True``, without end),
        ``backend="gloo"``, ``check=True``, ``env={"K": "V"}``, ``timeout=60``,
        ``start_method="spawn"``.

    Raises
    ------
    DistError
        If it cannot be started; the message says why, and what to do.
    """
    from .notebook import register

    return register.start_pool(place, num_ranks=num_ranks, **options)
