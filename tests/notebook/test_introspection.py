"""Tab and Shift-Tab in cells that run on ranks, in a kernel with a server and without."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..notebook_driver import Notebook
from ..releases import needs_subshells
from ..result import ANSI
from ..server_driver import Server
from ..waiting import PATIENCE, wait_for

SERVED_ONLY = True
"""The server has no part in it, but has imported torch for an earlier notebook."""


def ask(notebook: Notebook, kind: str, content: dict[str, Any], subshell: str = "") -> Any:
    """Send a request to the notebook's kernel and return the reply's content."""
    client = notebook.client
    message = client.session.msg(kind, content)
    if subshell:
        message["header"]["subshell_id"] = subshell
    client.shell_channel.send(message)
    while True:
        reply = client.get_shell_msg(timeout=PATIENCE)
        if reply["parent_header"].get("msg_id") == message["msg_id"]:
            return reply["content"]


def complete(notebook: Notebook, code: str, subshell: str = "") -> list[str]:
    """Complete where code has a ``|``; return what the cell would read, one for each match."""
    position = code.index("|")
    code = code.replace("|", "")
    content = {"code": code, "cursor_pos": position}
    reply = ask(notebook, "complete_request", content, subshell)
    begin, end = reply["cursor_start"], reply["cursor_end"]
    for match in reply["metadata"].get("_jupyter_types_experimental", ()):
        assert (match["start"], match["end"]) == (begin, end)
    return [code[:begin] + match + code[end:] for match in reply["matches"]]


def describe(notebook: Notebook, code: str, subshell: str = "") -> str:
    """Return what Shift-Tab shows where code has a ``|``."""
    content = {"code": code.replace("|", ""), "cursor_pos": code.index("|"), "detail_level": 0}
    reply = ask(notebook, "inspect_request", content, subshell)
    assert reply["found"] == bool(reply["data"])
    return ANSI.sub("", reply["data"].get("text/plain", ""))


def subshell_of(notebook: Notebook) -> str:
    """Make a subshell of the notebook's kernel, as JupyterLab does."""
    message = notebook.client.session.msg("create_subshell_request", {})
    notebook.client.control_channel.send(message)
    reply = notebook.client.get_control_msg(timeout=PATIENCE)
    return str(reply["content"]["subshell_id"])


@pytest.fixture(scope="module")
def values(ranks: Notebook) -> Notebook:
    """Return a notebook whose ranks have variables that it has not."""
    ranks.ok("%%distributed\nwheels_of_rank = [rank]\ndef turn_round(angle):\n    'Turn it.'")
    ranks.ok("%%rank 1\nonly_on_one = 1.5")
    ranks.ok("wheels_of_notebook = 1")
    ranks.ok("from jupyter_dist_server.common.patience import patience\npatience.factor = 10")
    # The first answer imports Jedi, which takes its time on a busy machine.
    wait_for(lambda: complete(ranks, "%%distributed\nwheels_of_r|"), "a first answer")
    return ranks


@pytest.fixture
def all_cells(values: Notebook) -> Iterator[Notebook]:
    """Send all cells to the ranks meanwhile."""
    values.ok("%dist_mode -e")
    yield values
    values.ok("%dist_mode -d")


@pytest.mark.parametrize(
    "magic", ["%%distributed", "%%rank 0", "%%rank[0,1]", "\n  \n%%distributed"]
)
def test_a_rank_completes(values: Notebook, magic: str) -> None:
    code = f"{magic}\nx = 1\nwheels|\ny = 2"
    assert complete(values, code) == [f"{magic}\nx = 1\nwheels_of_rank\ny = 2"]
    assert f"{magic}\nwheels_of_rank.append" in complete(values, f"{magic}\nwheels_of_rank.ap|")


def test_the_first_chosen_rank_completes(values: Notebook) -> None:
    whole = ["%%rank 1\nonly_on_one"]
    # A rank on a busy machine may answer too late the first time.
    wait_for(lambda: complete(values, "%%rank 1\nonly_on|") == whole, "the rank's completion")
    assert complete(values, "%%rank 0\nonly_on|") == []
    assert complete(values, "%%distributed --ranks 1\nonly_on|")
    assert complete(values, "%%rank 7\nwheels|") == ["%%rank 7\nwheels_of_rank"]


def test_positions_count_characters(values: Notebook) -> None:
    for text in ("é", "𝒳𝒴", "🎉🎉🎉"):
        code = f"%%distributed\n'{text}'; wheels|; '{text}'"
        assert complete(values, code) == [code.replace("|", "_of_rank")]


def test_a_rank_describes(values: Notebook) -> None:
    assert "Turn it." in describe(values, "%%distributed\nturn_ro|und(90)")
    assert "1.5" in describe(values, "%%rank 1\nonly_on|_one")
    assert describe(values, "%%distributed\nwheels_of_note|book") == ""


def test_the_notebooks_own_cells_and_the_line_of_a_magic_are_ipythons(values: Notebook) -> None:
    assert complete(values, "wheels|") == ["wheels_of_notebook"]
    assert describe(values, "turn_ro|und") == ""
    assert complete(values, "%%distrib|\nwheels") == ["%%distributed\nwheels"]
    assert describe(values, "wheels_of_note|book").startswith("Type:")


def test_options_of_magics_are_completed(values: Notebook) -> None:
    assert complete(values, "%dist_init --gp|") == ["%dist_init --gpu-ids"]
    assert complete(values, "x = 1\n%dist_init -n 2 --o|\ny") == [
        f"x = 1\n%dist_init -n 2 --{o}\ny" for o in ("one-rank-per-gpu", "oversubscribe")
    ]
    assert complete(values, "%%distributed --pe|\nwheels") == ["%%distributed --per-rank\nwheels"]
    short = complete(values, "%dist_run -|")
    assert "%dist_run --ranks" in short and "%dist_run -i" in short
    assert complete(values, "%%distributed\nx = 1 --no|") == []
    assert complete(values, "%%distributed # --p|\n") == []


def test_all_cells_are_the_ranks_under_dist_mode(all_cells: Notebook) -> None:
    assert complete(all_cells, "'🎉'; wheels|") == ["'🎉'; wheels_of_rank"]
    assert "Turn it." in describe(all_cells, "turn_ro|und")
    assert "%dist_status" in complete(all_cells, "%dist_st|")
    assert complete(all_cells, "%%rank 1\nonly_on|") == ["%%rank 1\nonly_on_one"]


def test_a_line_of_code_is_complete_under_dist_mode(all_cells: Notebook) -> None:
    def is_complete(code: str) -> str:
        return str(ask(all_cells, "is_complete_request", {"code": code})["status"])

    assert is_complete("x = 1") == "complete"
    assert is_complete("for x in range(3):") == "incomplete"
    assert is_complete("%%distributed\nx = 1") == "incomplete"
    assert is_complete("%%distributed\nx = 1\n\n") == "complete"


@needs_subshells
def test_the_answer_comes_while_a_cell_runs(values: Notebook, tmp_path: Path) -> None:
    subshell = subshell_of(values)
    go = tmp_path / "go"
    code = f"%%distributed\nimport pathlib, time\nbefore_the_wait = 1\nprint('in')\n\
while not pathlib.Path('{go}').exists():\n    time.sleep(0.01)"

    def look() -> None:
        assert complete(values, "%%distributed\nbefore_the|", subshell) == [
            "%%distributed\nbefore_the_wait"
        ]
        assert "Turn it." in describe(values, "%%distributed\nturn_ro|und", subshell)
        go.touch()

    result = values.follow(values.send(code), until=lambda r: "in" in r.text, act=look)
    assert result.status == "ok"


def test_a_rank_that_cannot_answer_is_not_waited_for(values: Notebook) -> None:
    values.ok("patience.factor = 1")
    values.ok(
        "%%rank 0\nclass Slow:\n    def __dir__(self):\n        import time\n        \
time.sleep(4)\n        return ['ever']\nslow = Slow()"
    )
    assert complete(values, "%%distributed\nslow.|") == []
    whole = ["%%rank 1\nonly_on_one"]
    # A rank on a busy machine may answer too late the first time.
    wait_for(lambda: complete(values, "%%rank 1\nonly_on|") == whole, "the rank's completion")


def test_a_dead_rank_is_passed_over(values: Notebook) -> None:
    pid = int(values.ok("%%rank 0\nimport os\nos.getpid()").lines[0].split()[-1])
    os.kill(pid, signal.SIGKILL)

    def rank_one_answers() -> bool:
        return complete(values, "%%distributed\nonly_on|") == ["%%distributed\nonly_on_one"]

    wait_for(rank_one_answers, "rank 1's answer")


def test_without_a_pool_ipython_answers(values: Notebook) -> None:
    values.ok("%dist_shutdown")
    assert complete(values, "%%distributed\nwheels|") == ["%%distributed\nwheels_of_notebook"]


def test_a_rank_answers_before_the_first_cell(new_notebook: Notebook, server: Server) -> None:
    new_notebook.ok("%load_ext jupyter_dist_server\nworld_of_notebook = 1")
    started = {"num_ranks": 2, "kernel_id": new_notebook.kernel_id}
    pool = server.api("POST", "jupyter-dist/pools", started)["id"]
    running = (pool, "RUNNING")
    wait_for(lambda: running in [(p["id"], p["state"]) for p in server.pools()], "the pool")
    # A rank on a busy machine may answer too late the first time.
    whole = ["%%distributed\nworld_size"]
    wait_for(lambda: complete(new_notebook, "%%distributed\nworld_|") == whole, "a rank's answer")


def test_unloading_gives_completion_back_to_ipython(values: Notebook) -> None:
    values.ok("%unload_ext jupyter_dist_server")
    result = values.ok("'IPythonKernel' in repr(get_ipython().kernel.do_complete)")
    assert result.shown == "True\n"
    values.ok("%load_ext jupyter_dist_server")
