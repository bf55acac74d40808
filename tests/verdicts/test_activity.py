"""What a stack says of a rank."""

from __future__ import annotations

import pytest

from jupyter_dist_server.common.protocol.ranks.evidence import CodePlace, Frame, RankEvidence
from jupyter_dist_server.verdicts.what_ranks_do import innermost_line, waits_in


def stack(*calls: str) -> RankEvidence:
    """Return the evidence of a rank that is in the first of these, called by the next."""
    frames = [Frame(*call.split(":"), CodePlace("torch.py", 1)) for call in calls]
    return RankEvidence(stack=[*frames, Frame("__main__", "<module>", CodePlace("In[9]", 2))])


@pytest.mark.parametrize(
    "module",
    [
        "torch.distributed.distributed_c10d",
        "torch.nn.parallel.distributed",
        "torch.distributed.fsdp._fully_shard",
    ],
)
def test_a_module_that_is_imported_is_no_wait(module: str) -> None:
    """The first import takes seconds, on a busy machine more than the limit."""
    assert waits_in(stack("importlib._bootstrap:_load", f"{module}:<module>")) is None
    assert waits_in(stack(f"{module}:Options", f"{module}:<module>")) is None
    assert waits_in(stack(f"{module}:step"))


def test_lines_of_cells_come_before_those_of_the_users_modules() -> None:
    library = Frame("json", "loads", CodePlace("json.py", 3))
    module = Frame("train", "step", CodePlace("train.py", 7), own=True)
    cell = Frame("__main__", "<module>", CodePlace("In[9]", 2), own=True)
    assert innermost_line([library, module, cell]) == cell.place
    assert innermost_line([library, module]) == module.place
    assert innermost_line([library]) is None
