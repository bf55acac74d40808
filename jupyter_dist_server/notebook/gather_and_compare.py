"""Compares the variables of the notebook's ranks: on request, or after each cell."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from ..client.values.ask_variables import variables_of
from ..common.errors import DistError
from ..common.protocol.ranks.variable_messages import VariablesReply
from ..verdicts.compare_variables import Compared, History, compare, how_it_differs, sentences
from .python_api import NotebookPool
from .scripts.ran_cells import RanCell
from .session.current_pool import CurrentPool

_LOG = logging.getLogger(__name__)

_MEASURED = 8
"""Differing variables for which the largest difference between elements is computed."""
_LARGEST_MEASURED = 64 << 20
"""Bytes of a tensor that is fetched for that from each group of ranks."""


class Comparison:
    """Compares variables, and remembers when they were equal."""

    def __init__(self, pool: CurrentPool) -> None:
        self._pool = pool
        self._history = History()
        self._of: tuple[str, int] | None = None

    def ask(
        self, names: Sequence[str], ranks: Sequence[int], *, only_trained: bool = False
    ) -> dict[int, VariablesReply]:
        """Ask ranks what variables hold; see `variables_of`."""
        _, client = self._pool.ready()
        asking = variables_of(client, names, ranks, only_trained=only_trained)
        return self._pool.loop.run(asking)

    def check(self, names: Sequence[str], ranks: Sequence[int]) -> list[str]:
        """Compare variables between ranks, or all modules and optimizers; return lines to print."""
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
        """Return what ranks said, what was found, and since when what differs does."""
        record, _ = self._pool.ready()
        if self._of != (of := (record.id, record.generation)):
            self._of, self._history = of, History()
        said = self.ask(names, ranks, only_trained=not names)
        found = compare(said)
        return said, found, self._history.note(found, said)

    def _largest(self, found: Sequence[Compared]) -> dict[str, float]:
        """Return the largest difference between elements, by path."""
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
                except Exception:  # it cannot be sent, or converted to numbers
                    _LOG.info("`%s` cannot be measured.", compared.path, exc_info=True)
        return largest


def _as_numbers(tensor: Any) -> Any:
    """Return a tensor whose differences are neither rounded nor wrapped."""
    plain = tensor.detach().dequantize() if tensor.is_quantized else tensor.detach()
    dense = plain.to_dense()
    return dense if dense.is_complex() else dense.double()


class EachCell:
    """Compares models and optimizers after each cell on ranks: ``%dist_check --each-cell``."""

    def __init__(self, shell: InteractiveShell, pool: CurrentPool, comparison: Comparison) -> None:
        self._shell, self._pool, self._comparison = shell, pool, comparison
        self._is_on = False
        self._last: RanCell | None = None
        self._told: set[str] = set()
        """What differed after the last cell."""

    def switch(self, *, on: bool) -> None:
        """Begin or end to compare."""
        if on != self._is_on:
            events = self._shell.events
            (events.register if on else events.unregister)("post_run_cell", self._look)
        self._is_on = on
        self._last, self._told = self._pool.ran.last, set()

    def _look(self, *_: object) -> None:
        last = self._pool.ran.last
        if last is None or last is self._last:
            return
        self._last = last
        try:
            differing = self._comparison.differing(self._pool.choose(""))
        except DistError:  # there is nothing to compare, a rank died, or another cell runs
            return
        new = [sentence for path, sentence in differing.items() if path not in self._told]
        self._told = set(differing)
        if new:
            print(new[0] if len(new) == 1 else f"{new[0]} {len(new) - 1} more began to differ.")
