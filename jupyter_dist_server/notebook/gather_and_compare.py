"""Comparing the variables of the notebook's ranks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ..client.values.ask_variables import variables_of
from ..common.errors import DistError
from ..common.protocol.ranks.variable_messages import VariablesReply
from ..verdicts.compare_variables import Compared, History, compare, how_it_differs, sentences
from .python_api import NotebookPool
from .session.current_pool import CurrentPool

_LOG = logging.getLogger(__name__)

_MEASURED = 8
"""Differences of which the largest between two elements is computed."""
_LARGEST_MEASURED = 64 << 20
"""Bytes of a tensor that is fetched for that from each group of ranks."""


class Comparison:
    """Compares variables, and remembers when they were equal.

    Parameters
    ----------
    pool : CurrentPool
        The notebook's.
    """

    def __init__(self, pool: CurrentPool) -> None:
        self._pool = pool
        self._history = History()
        self._of: tuple[str, int] | None = None

    def ask(
        self, names: Sequence[str], ranks: Sequence[int], *, only_trained: bool = False
    ) -> dict[int, VariablesReply]:
        """Ask ranks what variables hold; see `variables_of`."""
        _, client = self._pool.require()
        asking = variables_of(client, names, ranks, only_trained=only_trained)
        return self._pool.loop.run(asking)

    def check(self, names: Sequence[str], ranks: Sequence[int]) -> list[str]:
        """Compare variables between ranks; return what is to be said, line by line.

        Parameters
        ----------
        names : sequence of str
            Names or expressions; if there are none, all modules and optimizers.
        ranks : sequence of int
            Where.

        Raises
        ------
        DistError
            See `variables_of`; also if there is nothing to compare.
        """
        said, found, since = self._compare(names, ranks)
        if not found:
            raise DistError(
                "nothing_to_compare",
                "There is nothing to compare: the ranks have no module and no optimizer."
                if not names
                else "There is nothing to compare: these variables hold no tensor and no value.",
                "Name variables: %dist_check NAME …",
            )
        return sentences(found, said, since, self._largest(found))

    def differing(self, ranks: Sequence[int]) -> dict[str, str]:
        """Return sentences on what differs in modules and optimizers, by path; see `check`."""
        _, found, since = self._compare((), ranks)
        return {one.path: how_it_differs(one, since) for one in found if one.finding == "differs"}

    def _compare(
        self, names: Sequence[str], ranks: Sequence[int]
    ) -> tuple[dict[int, VariablesReply], list[Compared], dict[str, str]]:
        """Return what was said, what was found, and since when what differs does so."""
        record, _ = self._pool.require()
        if self._of != (of := (record.id, record.generation)):
            self._of, self._history = of, History()
        said = self.ask(names, ranks, only_trained=not names)
        found = compare(said)
        return said, found, self._history.note(found, said)

    def _largest(self, found: Sequence[Compared]) -> dict[str, float]:
        """Return the largest difference between elements, by path, where there is one."""
        largest: dict[str, float] = {}
        for compared in [c for c in found if c.finding == "differs"][:_MEASURED]:
            leaves = [leaf for _, leaf in compared.groups]
            forms = {(leaf.dtype, leaf.shape, leaf.shard) for leaf in leaves}
            is_tensor = all(leaf.device and leaf.nbytes <= _LARGEST_MEASURED for leaf in leaves)
            if len(forms) == 1 < len(leaves) and is_tensor and not leaves[0].shard:
                ranks = [who[0] for who, _ in compared.groups]
                mover = NotebookPool(self._pool).mover()
                try:
                    values, _ = mover.pull(leaves[0].expression, sorted(ranks))
                    first, *others = (_as_numbers(values[rank]) for rank in ranks)
                    largest[compared.path] = max(
                        float((other - first).abs().max()) for other in others
                    )
                except Exception:  # of a kind that cannot be sent, or of which torch has no numbers
                    _LOG.info("`%s` cannot be measured.", compared.path, exc_info=True)
        return largest


def _as_numbers(tensor: Any) -> Any:
    """Return a tensor in which differences are not rounded, nor wrapped."""
    plain = tensor.detach().dequantize() if tensor.is_quantized else tensor.detach()
    dense = plain.to_dense()
    return dense if dense.is_complex() else dense.double()
