"""IPython's own syntax in cells: magics, ``!commands`` and ``object?``."""

from __future__ import annotations

import re

from IPython.core.inputtransformer2 import TransformerManager

_MAY_BE_IPYTHONS = re.compile(r"[%?]|!(?!=)|^\s*[,;/]", re.MULTILINE)
"""The signs without which IPython's own transformers of tokens leave a cell as it is."""


class CellSyntax(TransformerManager):
    """Turns cells into Python, without reading those token by token that are Python already.

    That takes a rank 4 ms for 100 lines, and all ranks of a pool do it at the same moment.
    """

    def __init__(self) -> None:
        super().__init__()
        self._own = list(self.token_transformers)

    def do_token_transforms(self, lines: list[str]) -> list[str]:
        """Transform lines; users may have added transformers of theirs."""
        if self.token_transformers == self._own and not _MAY_BE_IPYTHONS.search("".join(lines)):
            return lines
        transformed: list[str] = super().do_token_transforms(lines)
        return transformed
