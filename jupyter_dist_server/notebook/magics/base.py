"""The base of all classes of magics."""

from __future__ import annotations

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics

from ..session.current_pool import CurrentPool


class DistMagics(Magics):
    """Magics that use the notebook's pool."""

    shell: InteractiveShell

    def __init__(self, shell: InteractiveShell, pool: CurrentPool) -> None:
        super().__init__(shell)
        self.pool = pool
