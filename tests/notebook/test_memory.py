"""Who uses which memory, and what a training step would take."""

from __future__ import annotations

import re

import pytest

from ..notebook_driver import Notebook

PLAIN_ONLY = True
"""The server has no part in it."""

MODEL = """%%distributed
layers = torch.nn.Linear(1000, 2000), torch.nn.ReLU(), torch.nn.Linear(2000, 1000)
model = torch.nn.Sequential(*layers)
del layers
optimizer = torch.optim.AdamW(model.parameters())
batch = torch.ones(64, 1000)
"""


@pytest.fixture
def two(notebook: Notebook) -> Notebook:
    """Return the notebook with two ranks that have a model."""
    if notebook.run("%dist_status").text.count(" idle for ") != 2:
        notebook.run("%dist_shutdown")
        notebook.ok("%dist_init -n 2")
    notebook.ok(MODEL)
    return notebook


def rows(notebook: Notebook, line: str = "") -> list[list[str]]:
    return [line.split() for line in notebook.ok(f"%dist_memory {line}").lines]


def test_what_variables_hold(two: Notebook) -> None:
    head, first, second = rows(two)
    assert head == ["rank", "RSS", "PSS", "in", "variables", "largest"]
    assert [first[0], second[0]] == ["0", "1"]
    assert " ".join(first[5:]) == "15.5 MiB model 15.3 MiB, batch 250 KiB"
    two.ok(
        "%%rank 1\nmodel(batch).sum().backward()\noptimizer.step()\n"
        "view = batch[:3]\nimport numpy as np\nbig = np.ones(2**24)[:5]"
    )
    lines = two.ok("%dist_memory").lines
    more = "173.8 MiB more than those of the other ranks, most of it in `big`."
    assert f"The variables of rank 1 hold {more}" in lines
    assert "big 128 MiB, optimizer 30.5 MiB, model 30.5 MiB (15.3 MiB gradients)" in lines[-1]
    two.ok("%%rank 1\ndel big, view")


def test_what_results_and_hidden_variables_hold(two: Notebook) -> None:
    """IPython keeps the last value of each cell, also if no variable has it any more."""
    cell = two.next_number()
    two.ok("%%rank 1\nshown = torch.ones(2**22)\nshown")
    assert "shown 16 MiB, model 15.3 MiB, batch 250 KiB" in two.ok("%dist_memory").lines[-1]
    two.ok("%%rank 1\nkept = shown\ndel shown\nkept")
    assert "kept 16 MiB, model 15.3 MiB, batch 250 KiB" in two.ok("%dist_memory").lines[-1]
    two.ok("%%rank 1\ndel kept\n_hidden = torch.ones(2**23)")
    lines = two.ok("%dist_memory").lines
    assert f"_hidden 32 MiB, Out[{cell}] 16 MiB, model 15.3 MiB" in lines[-1], lines
    error = two.fails("%%rank 1\nmore = torch.empty(2**40, 2**10)")
    assert f"`_hidden` 32 MiB made in In[{cell + 4}], `Out[{cell}]` 16 MiB, `model`" in error
    two.ok("%%rank 1\n%reset -f out\ndel _hidden")
    assert "Out[" not in two.ok("%dist_memory").text


def test_an_estimate_changes_nothing(two: Notebook) -> None:
    two.ok("%%distributed\nbefore = model[0].weight.clone()")
    said = two.ok("%dist_memory --estimate model optimizer batch").text
    assert "A step of `model` takes about 7" in said
    assert "parameters 15.3 MiB, gradients 15.3 MiB, optimizer " in said
    same = "print(torch.equal(before, model[0].weight), model[0].weight.grad, len(optimizer.state))"
    assert two.ok(f"%%distributed\n{same}").lines == ["[0-1] True None 0"]
    two.ok("%%distributed\nbatch = {'input': batch}")
    assert "A step of" in two.ok("%dist_memory --estimate model optimizer batch").text


def test_an_estimate_of_a_wrapped_model_begins_no_collective(two: Notebook) -> None:
    two.ok(
        "%%distributed\nfrom torch.nn.parallel import DistributedDataParallel\n"
        "model = DistributedDataParallel(torch.nn.Sequential(model, torch.nn.BatchNorm1d(1000)))\n"
        "optimizer = torch.optim.AdamW(model.parameters())\n"
        "holder = torch.nn.Sequential(model)"
    )
    assert "A step of" in two.ok("%dist_memory --estimate model optimizer batch").text
    error = two.fails("%dist_memory --estimate holder optimizer batch")
    assert "a part of the model is wrapped in DistributedDataParallel." in error
    two.ok("%%distributed\nx = torch.ones(3)\ndist.all_reduce(x)\nassert x.sum() == 6")


def test_an_estimate_of_a_sharded_model_says_that_it_comes_too_late(two: Notebook) -> None:
    two.ok(
        "%%distributed\nfrom torch.distributed.fsdp import fully_shard\n"
        "sharded = fully_shard(torch.nn.Linear(4, 4))\n"
        "of_sharded = torch.optim.AdamW(sharded.parameters())"
    )
    error = two.fails("%dist_memory --estimate sharded of_sharded torch.ones(2,4)")
    assert "a step: ValueError: FSDP has sharded the model; estimate it before that.\n" in error


def test_an_estimate_with_the_optimizer_of_another_model(two: Notebook) -> None:
    two.ok("%%distributed\nother = torch.optim.AdamW(torch.nn.Linear(2, 2).parameters())")
    error = two.fails("%dist_memory --estimate model other batch")
    expected = "the optimizer has parameters that the model does not; make it anew for this model."
    assert f"a step: ValueError: {expected}\n" in error


def test_mistakes(two: Notebook) -> None:
    error = two.fails("%dist_memory --estimate model optimizer nothing")
    assert "Rank 0 cannot estimate the memory of a step: it has no `nothing`." in error
    assert "cannot estimate" in two.fails("%dist_memory --estimate model optimizer rank")
    assert two.error_code() == "no_estimate"
    assert two.refused("%dist_memory --estimate model") == "bad_option"


def test_a_variable_that_cannot_be_looked_at(two: Notebook) -> None:
    two.ok(
        "%%rank 1\nclass Odd(torch.Tensor):\n    @property\n    def grad(self):\n        1 / 0\n"
        "odd = torch.ones(1).as_subclass(Odd)"
    )
    assert [row[0] for row in rows(two) if row[0].isdigit()] == ["0", "1"]
    two.ok("%%rank 1\ndel odd")


def test_while_a_cell_runs(two: Notebook) -> None:
    two.ok("import time\npool = __import__('jupyter_dist_server').current_pool()")
    two.ok("call = pool.run(time.sleep, 600, ranks=1)")
    two.ok("while pool.status().get(1, {}).get('state') != 'busy': pass")
    assert rows(two)[2][-3:] == ["runs", "a", "cell"]
    two.ok("%dist_interrupt")


def test_a_cell_that_runs_out_of_memory_says_what_holds_it(two: Notebook) -> None:
    two.ok("%%rank 1\nbig = torch.ones(2**23)")
    two.ok("import torch\npushed = torch.ones(2**22)\n%dist_push pushed")
    result = two.run("%%distributed\nif rank == 1:\n    more = torch.empty(2**40, 2**10)")
    failed = re.search(r"Cell In\[(\d+)\]", result.error)
    assert failed
    held = (
        rf"`big` 32 MiB made in In\[{int(failed[1]) - 2}\], `pushed` 16 MiB, `\w+` 15\.3 MiB made"
    )
    said = rf"Rank 1 asked for 4096 TiB; its variables hold [\d.]+ MiB \({held} in In\[\d+\]\)"
    assert re.search(said, result.error), result.error
    two.ok("%%distributed\nif rank:\n    del big\ndel pushed")
