"""A cell that hangs says why in its own output, and `%dist_why` says the same."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from jupyter_dist_server.client.scripts.torch_dumps import read_dumps
from jupyter_dist_server.common.protocol.ranks.evidence import Evidence
from jupyter_dist_server.verdicts.explain_hang import explain_hang

from ..notebook_driver import Notebook
from ..waiting import wait_for

PLAIN_ONLY = True
"""The server has no part in it."""


@pytest.fixture
def two(notebook: Notebook) -> Notebook:
    """Return a notebook with two ranks that need not wait for long until it is said why."""
    if notebook.run("%dist_status").text.count(" idle for ") != 2:
        notebook.run("%dist_shutdown")  # which keeps torch imported
        notebook.ok("%dist_init -n 2")
        notebook.ok("from jupyter_dist_server.notebook.cells import cell_wait\ncell_wait.LIMIT = 1")
    return notebook


def test_a_hang_is_explained_while_it_lasts(two: Notebook) -> None:
    result = two.run(
        "%%distributed\nif rank == 0:\n    dist.all_reduce(torch.ones(20))",
        until=lambda shown: "never began it: it has finished its cell" in shown.shown,
        act=two.interrupt,
    )
    assert result.status == "error"
    assert "Rank 0 waits in all_reduce #" in result.shown
    assert "begun by `dist.all_reduce(torch.ones(20))` at In[" in result.shown
    assert "Rank 1 never began it: it has finished its cell. Stop the cell" in result.shown
    assert two.ok("%%distributed\nprint('whole')").lines == ["[0-1] whole"]


def test_a_wait_that_ends_is_no_alarm_any_more(two: Notebook, tmp_path: object) -> None:
    cell = (
        "%%distributed\nimport os, pathlib, time\n"
        f"go = pathlib.Path('{tmp_path}') / 'go'\n"
        "while rank == 1 and not go.exists():\n    time.sleep(0.01)\n"
        "dist.barrier()\nprint('together')"
    )
    result = two.ok(
        cell,
        until=lambda shown: "Rank 1 has not begun it" in shown.shown,
        act=lambda: open(f"{tmp_path}/go", "w").close(),
    )
    assert "[0-1] together" in result.text
    assert "The ranks no longer wait. Before: Rank 0 waits in barrier #" in result.shown


def test_a_value_that_only_one_rank_computes(two: Notebook) -> None:
    two.ok(
        "%%distributed\ndef total():\n    t = torch.ones(1)\n    dist.all_reduce(t)\n"
        "    return t.item()"
    )
    result = two.run(
        "%dist_pull total() --as x",
        until=lambda shown: "Rank 0 has begun all_reduce #" in shown.shown,
        act=two.interrupt,
    )
    assert "Only the ranks that a value is fetched from evaluate its expression." in result.shown
    assert "Interrupted. Rank 0 has begun all_reduce #" in result.error
    assert "re-created" in result.error and "Traceback" not in result.error
    assert two.ok("%%distributed\ndist.barrier()\nprint('whole')").lines == ["[0-1] whole"]
    two.ok("%dist_pull total() --ranks all --as x\nassert x == [2.0, 2.0]")


def test_a_call_that_hangs(two: Notebook) -> None:
    two.ok("def reduce():\n    if rank == 0:\n        dist.all_reduce(torch.ones(20))")
    result = two.run(
        "import jupyter_dist_server\njupyter_dist_server.current_pool().run(reduce).result()",
        until=lambda shown: "never began it" in shown.shown,
        act=two.interrupt,
    )
    assert result.status == "error" and "Rank 0 waits in all_reduce #" in result.shown
    assert two.ok("%%distributed\nprint('whole')").lines == ["[0-1] whole"]


def test_a_cell_behind_one_that_does_not_stop(two: Notebook, tmp_path: Path) -> None:
    go = tmp_path / "go"
    stubborn = (
        f"%%distributed\nimport pathlib, time\ngo, said = pathlib.Path('{go}'), False\n"
        "while True:\n    try:\n        if not said:\n            said = not print('in')\n"
        "        if go.exists():\n            break\n        time.sleep(0.01)\n"
        "    except KeyboardInterrupt:\n        pass"
    )
    late = two.run(stubborn, until=lambda shown: shown.said_by("in") == {0, 1}, act=two.interrupt)
    assert "Ranks 0-1 did not stop" in late.error
    result = two.run(
        "%%distributed\nprint('next')",
        until=lambda shown: "Waiting to begin: ranks 0-1 still run In[" in shown.shown,
        act=two.interrupt,
    )
    assert "Ranks 0-1 had not begun. Ranks 0-1 still run In[" in result.error
    assert "could not be re-created" not in result.error
    result = two.ok(
        "%%distributed\ndist.barrier()\nprint('next')",
        until=lambda shown: "Waiting to begin" in shown.shown,
        act=go.touch,
    )
    assert "[0-1] next" in result.text


def test_a_rank_that_does_not_begin_the_cell(two: Notebook, tmp_path: Path) -> None:
    """Between cells, its main thread may be anywhere."""
    go, stuck = tmp_path / "go", tmp_path / "stuck"
    two.ok(
        "%%rank 0\nimport asyncio, pathlib, threading, time\n"
        "kernel, loop = get_ipython().kernel, asyncio.get_running_loop()\n"
        f"def block():\n    pathlib.Path('{stuck}').touch()\n"
        f"    while not pathlib.Path('{go}').exists():\n        time.sleep(0.01)\n"
        "def block_between_cells():\n    while kernel._state == 'busy':\n        time.sleep(0.01)\n"
        "    loop.call_soon_threadsafe(block)\n"
        "threading.Thread(target=block_between_cells).start()"
    )
    wait_for(stuck.exists, "what keeps the rank from its next cell")
    said = "Waiting to begin: rank 0 runs no other cell, but has not begun this one."
    result = two.ok(
        "%%distributed\nprint('next')", until=lambda shown: said in shown.shown, act=go.touch
    )
    assert f"The ranks no longer wait. Before: {said}" in result.shown


def test_a_hang_of_a_script_is_explained_by_its_own_lines(two: Notebook, tmp_path: Path) -> None:
    two.ok(f"%cd -q {tmp_path}")
    (tmp_path / "exchange.py").write_text(
        "import torch\nimport torch.distributed as dist\ndef exchange():\n"
        "    dist.all_reduce(torch.ones(4))\n"
    )
    (tmp_path / "late.py").write_text(
        "import time\nimport exchange\nimport torch.distributed as dist\ndef main():\n"
        "    dist.init_process_group('gloo')\n    if dist.get_rank() == 0:\n"
        "        exchange.exchange()\n    else:\n        time.sleep(600)\nmain()\n"
    )
    expected = (
        "(4 × float32), begun by `dist.all_reduce(torch.ones(4))` at exchange.py line 4. "
        "Rank 1 has not begun it: it is in `time.sleep`, late.py line 9."
    )

    def is_explained() -> bool:
        run = "%dist_run late.py"
        result = two.run(run, until=lambda shown: expected in shown.shown, act=two.interrupt)
        return result.status == "error" and expected in result.shown

    assert is_explained()
    # So far the lines are those of the stack; from now on, the recorder's.
    two.ok("%%rank 0\nwork = dist.all_reduce(torch.ones(7), async_op=True)")
    wait_for(lambda: "has begun all_reduce" in two.ok("%dist_why").text, "the recorder's lines")
    two.ok("%%rank 1\ndist.all_reduce(torch.ones(7))")
    assert is_explained()


def test_a_hang_of_a_function_is_explained_by_its_own_lines(two: Notebook) -> None:
    two.ok(
        "import time, jupyter_dist_server\ndef late():\n"
        "    time.sleep(600) if rank else dist.barrier()\n"
        "call = jupyter_dist_server.current_pool().run(late)"
    )
    lines = (
        r"begun by `time.sleep\(600\) if rank else dist.barrier\(\)` at (In\[\d+\]) line 3. "
        r"Rank 1 has not begun it: it is in `time.sleep`, \1 line 3."
    )
    wait_for(lambda: re.search(lines, two.ok("%dist_why").text), "the verdict")
    two.ok("call.cancel()")


def test_what_is_left_behind(two: Notebook, tmp_path: Path) -> None:
    nothing = "No rank waits for another.\n"
    wait_for(lambda: two.ok("%dist_why").text == nothing, "all ranks to answer")
    two.ok("%%rank 0\nwork = dist.all_reduce(torch.ones(7), async_op=True)")
    text = two.ok("%dist_why").text
    assert text.startswith("Rank 0 has begun all_reduce #") and "Rank 1 never began it" in text
    assert "Interrupt: %dist_interrupt" in text
    two.ok(f"%dist_why --save {tmp_path / 'why.json'}")
    saved = msgspec.json.decode((tmp_path / "why.json").read_bytes(), type=Evidence)
    verdict = explain_hang(saved)
    assert verdict and text.startswith(verdict.sentence)
    nowhere = two.run(f"%dist_why --save {tmp_path / 'none' / 'why.json'}")
    assert "why.json cannot be written: No such file or directory" in nowhere.error
    stacks = two.ok("%dist_why --native").text
    assert stacks.startswith(verdict.sentence) and re.search(r"\(pid \d+.*\n.*, in \w", stacks)
    dumps = tmp_path / "dumps"
    text = two.ok(f"%dist_why --save {dumps}").text
    assert f"torchfrtrace {dumps} --prefix rank_" in text
    command = [Path(sys.executable).parent / "torchfrtrace", dumps, "--prefix", "rank_"]
    read = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "all_reduce" in read.stdout + read.stderr
    verdict = explain_hang(read_dumps(dumps))
    seen = "Rank 1 has not begun it: what it does cannot be seen (the dump "
    assert verdict and seen in verdict.sentence
    two.ok("%dist_restart")


def test_evidence_that_contradicts_itself_makes_no_verdict(two: Notebook) -> None:
    two.ok(
        "%%distributed\nfor _ in range(3):\n    dist.all_reduce(torch.ones(20))\nif rank == 1:\n"
        "    from jupyter_dist_server.rank.waits import own_evidence as evidence\n"
        "    kept = evidence.collectives_of\n"
        "    evidence.collectives_of = lambda *all: kept(*all)[::-1]"
    )
    try:
        result = two.run(
            "%%distributed\nif rank == 0:\n    dist.all_reduce(torch.ones(20))",
            until=lambda shown: "No verdict" in shown.shown,
            act=two.interrupt,
        )
        assert "of the same group. " in result.shown and "%dist_why --save" in result.shown
    finally:
        two.ok("%dist_restart")
