"""Interactive multi-GPU PyTorch in JupyterLab: a notebook cell runs on every rank.

Importing this package costs next to nothing: it brings in neither torch nor Jupyter Server.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from .notebook.api import Pool

try:
    __version__ = version("jupyter-dist-server")
except PackageNotFoundError:
    # Run from a source tree that was never installed.
    __version__ = "0+unknown"


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    return [{"src": "labextension", "dest": "jupyter-dist-server"}]


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    from .extension import JupyterDistApp

    return [{"module": "jupyter_dist_server", "app": JupyterDistApp}]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics; called by ``%load_ext jupyter_dist_server``."""
    from .notebook.magics import load

    load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove what `load_ipython_extension` added; a running pool is left alone."""
    from .notebook.magics import unload

    unload(shell)


def current_pool() -> Pool:
    """Return the notebook's running pool, to push, pull and run functions with.

    Raises
    ------
    DistError
        If none is running.
    """
    from .notebook import magics

    return magics.current_pool()
