"""Whether variables are the same on all ranks is told without a collective."""

from __future__ import annotations

import pytest

from ..notebook_driver import Notebook
from .places import stop_at

PLAIN_ONLY = True
"""The server has no part in it."""

MODEL = """%%distributed
model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
for value in model.state_dict().values():
    value.fill_(1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
model(torch.ones(4, 2)).sum().backward()
optimizer.step()
"""


@pytest.fixture
def three(notebook: Notebook) -> Notebook:
    """Return the notebook with three ranks that have a model."""
    if notebook.run("%dist_status").text.count(" idle for ") != 3:
        notebook.ok("%dist_init -n 3")
    notebook.ok(MODEL)
    return notebook


def check(notebook: Notebook, line: str = "") -> list[str]:
    return notebook.ok(f"%dist_check {line}").lines


def test_model_and_optimizer(three: Notebook) -> None:
    equal = "tensors and values are equal on ranks 0-2."
    assert check(three)[0].startswith("All ") and equal in check(three)[0]
    assert check(three)[1] == "RNG states differ, as they should."
    cell = three.next_number()
    three.ok("%%distributed\nif rank == 2:\n    model[1].running_mean += 0.5")
    expected = f"`model.1.running_mean` differs on rank 2 since In[{cell}] (max difference 0.5)."
    assert check(three, "model optimizer")[0] == expected
    three.ok("%%distributed\npass")
    assert check(three)[0] == expected, "it is remembered since when"
    cell = three.next_number()
    three.ok("%%distributed\nif rank == 1:\n    optimizer.param_groups[0]['lr'] = 0.5")
    assert check(three, "optimizer")[0] == (
        f"`optimizer.param_groups[0]['lr']` is 0.1 on ranks 0,2 and 0.5 on rank 1 since In[{cell}]."
    )
    assert "equal on ranks 0-1." in check(three, "model --ranks 0,1")[0]


def test_after_each_cell(three: Notebook) -> None:
    """Only what has begun to differ is told, once, below the cell that did it."""
    assert "compared" in three.ok("%dist_check --each-cell on").text
    assert three.ok("%%distributed\npass").text == ""
    cell = three.next_number()
    differs = f"`model.1.running_mean` differs on rank 2 since In[{cell}]."
    assert three.ok("%%distributed\nif rank == 2:\n    model[1].running_mean += 1").lines == [
        differs
    ]
    assert three.ok("%%distributed\npass").text == ""
    assert three.ok("print(2)").lines == ["2"]
    three.ok("%%distributed\nmodel[1].running_mean.fill_(1)")
    cell = three.next_number()
    both = "with torch.no_grad():\n    model[0].weight += rank\n    model[0].bias += rank"
    assert three.ok(f"%%distributed\n{both}").lines == [
        f"`model.0.weight` has 3 different contents on ranks 0-2 since In[{cell}]. "
        "1 more began to differ."
    ]
    three.ok("%dist_check --each-cell off")
    assert three.ok(f"%%distributed\n{both}\nmodel[1].running_mean += rank").text == ""
    assert three.refused("%dist_check --each-cell maybe") == "bad_option"


def test_values_of_any_kind(three: Notebook) -> None:
    three.ok(
        "%%distributed\nimport numpy as np\n"
        "values = {'half': torch.ones(3, dtype=torch.bfloat16), 'none': torch.ones(0),\n"
        "  'bits': torch.tensor(True), 'sparse': torch.eye(2).to_sparse(), 'text': 'a' * 99,\n"
        "  'complex': torch.ones(2, dtype=torch.complex64), 'numbers': [1, 2],\n"
        "  'array': np.ones(2),\n"
        "  'strided': torch.arange(6).reshape(2, 3).T, 'nan': torch.tensor(float('nan'))}\n"
        "order = torch.tensor([1.0, 2.0]) if rank else torch.tensor([2.0, 1.0])\n"
        "own, code = object(), print\n"
        "odd = [np.empty((0, 3)), np.array(['2026-01-01'], dtype='datetime64[D]')]\n"
        "lazy = torch.nn.LazyLinear(3)\n"
        "jagged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)\n"
        "from torch.distributed.optim import ZeroRedundancyOptimizer\n"
        "zero = ZeroRedundancyOptimizer(\n"
        "    torch.nn.Linear(2, 2).parameters(), torch.optim.Adam, lr=0.1)"
    )
    assert check(three, "values")[0] == "All 10 tensors and values are equal on ranks 0-2."
    assert check(three, "order")[0] == "`order` differs on rank 0 (max difference 1)."
    assert check(three, "odd")[0] == "All 2 tensors and values are equal on ranks 0-2."
    for name in ("lazy", "jagged", "zero"):
        said = "".join(check(three, name))
        assert "annot be compared" in said or "qual on ranks 0-2" in said
    assert "All " in check(three)[0] or "Cannot be compared" in check(three)[0]
    assert "jagged" in three.ok("%dist_vars").text
    three.ok("%%distributed\ndel odd, lazy, jagged, zero")
    assert check(three, "own")[0] == "Cannot be compared: `own` (object)."
    assert check(three, "values['half'].sum()")[0] == "Equal on ranks 0-2."
    assert check(three, "values['strided'][0, 1]")[0] == "Equal on ranks 0-2."
    said = check(three, "order[[0, 1]] values['numbers'] max(1, 2)")[1]
    assert said == "2 others are equal.", said
    assert "SyntaxError" in three.fails("%dist_check order values[0")


def test_tensors_with_which_torch_can_do_little(three: Notebook) -> None:
    """That they differ is told, and by how much where that can be computed."""
    quiet = "import warnings\nwarnings.simplefilter('ignore')"
    three.ok(quiet)
    three.ok(
        f"%%distributed\n{quiet}\n"
        "one = torch.full((4,), 2.0 ** rank)\n"
        "rows = torch.diag(one).to_sparse_csr()\n"
        "eighths = one.to(torch.float8_e4m3fn)\n"
        "packed = torch.full((4,), rank, dtype=torch.uint8).view(torch.uint4)\n"
        "scaled = torch.quantize_per_tensor(one, 0.5 * 2 ** rank, 0, torch.quint8)\n"
    )
    largest = {"rows": " (max difference 3)", "eighths": " (max difference 3)", "packed": ""}
    for name, size in (largest | {"scaled": " (max difference 3)"}).items():
        expected = f"`{name}` has 3 different contents on ranks 0-2{size}."
        assert check(three, name)[0] == expected


def test_shards(three: Notebook) -> None:
    three.ok(
        "%%distributed\n"
        "from torch.distributed.tensor import distribute_tensor, init_device_mesh, Shard\n"
        "whole = torch.arange(6.0).reshape(6, 1)\n"
        "parts = distribute_tensor(whole, init_device_mesh('cpu', (3,)), [Shard(0)])"
    )
    assert check(three, "parts")[0] == (
        "`parts` (6, 1) is sharded: rank 0 [0:2, 0:1], rank 1 [2:4, 0:1], rank 2 [4:6, 0:1]."
    )
    assert "sharded" in three.ok("%dist_vars parts").text


def test_mistakes(three: Notebook) -> None:
    three.ok("%%rank 1\nonly_here = 1")
    assert "Ranks 0,2 have no `only_here`." in three.fails("%dist_check only_here")
    assert three.error_code() == "value_missing"
    assert "failed" not in three.ok("%dist_vars only_here --ranks 1").text
    assert "ZeroDivisionError" in three.fails("%dist_check 1/0")
    assert three.refused("%dist_check --nonsense") == "bad_option"
    three.ok(
        "%%distributed\nfor name in ('model', 'optimizer', 'parts', 'values'):\n"
        "    globals().pop(name, None)"
    )
    assert three.refused("%dist_check") == "nothing_to_compare"


def test_while_a_cell_runs(three: Notebook) -> None:
    """It is another client's cell, as ours would keep the notebook busy."""
    three.ok("pool = __import__('jupyter_dist_server').current_pool()")
    three.ok("import time\ncall = pool.run(time.sleep, 600, ranks=1)")
    error = three.fails("while pool.status().get(1, {}).get('state') != 'busy': pass\n%dist_check")
    assert "Rank 1 runs a cell; variables are compared between cells." in error
    assert three.error_code() == "rank_busy"
    three.ok("%dist_interrupt")


def test_a_table_of_variables(three: Notebook) -> None:
    three.ok("%%distributed\nmine = torch.ones(rank + 1)\nloss = rank * 0.5\n_hidden = 1")
    lines = three.ok("%dist_vars").lines
    rows = [" ".join(line.split()) for line in lines]
    assert rows[0] == "name ranks type shape dtype device size content"
    assert "mine 0 Tensor (1) float32 cpu 4 B differs" in rows
    assert "mine 2 Tensor (3) float32 cpu 12 B differs" in rows
    assert any(row.startswith("loss 0-2 float - - -") and row.endswith("differs") for row in rows)
    assert any(row.startswith("model 0-2 Sequential 7 items") for row in rows)
    assert "_hidden" not in "".join(lines) and "world_size" not in "".join(lines)
    assert not any(row.startswith("torch ") for row in rows)


def test_it_cannot_hang(three: Notebook) -> None:
    """After a hang on which Stop was pressed, with a group that is not whole."""
    stop_at(three, "%%distributed\nprint('in')\nif rank:\n    dist.barrier()", {1: "barrier"})
    assert "equal on ranks 0-2" in "".join(check(three))
