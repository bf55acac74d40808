"""What tells JupyterLab that a cell ran on several ranks; others don't get it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jupyter_dist_server.notebook.output.merged.shown_pieces import KIND, Labels
from jupyter_dist_server.notebook.output.publish import Clear, Display, Text
from jupyter_dist_server.notebook.output.rank_tabs import MIME, RankTabs

from ..notebook_driver import Notebook
from ..result import Result
from ..server_driver import Server
from ..waiting import wait_for

SERVED_ONLY = True
"""The server has no part in it, but has imported torch for an earlier notebook."""


def run_in_lab(
    notebook: Notebook, code: str, cell_id: str | None = "b8a1-0", **follow: Any
) -> Result:
    """Run a cell as JupyterLab does, which names it."""
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
    request = notebook.client.session.msg("execute_request", content, metadata={"cellId": cell_id})
    notebook.client.shell_channel.send(request)
    return notebook.follow(request["header"]["msg_id"], **follow)


def marks(result: Result) -> list[dict[str, Any]]:
    return [output["data"][MIME] for output in result.outputs if MIME in output.get("data", {})]


def test_the_server_knows_in_which_cell_a_rank_died_at_once(
    server: Server, new_notebook: Notebook
) -> None:
    def dead_in() -> str | None:
        (rank,) = (pool["ranks"][1] for pool in server.pools())
        return str(rank["cell_id"]) if rank["state"] == "dead" else None

    new_notebook.ok("%load_ext jupyter_dist_server\n%dist_init -n 2")
    for number in range(8):  # whether the rank itself could still say so is a matter of luck
        run_in_lab(new_notebook, "%%rank [1]\nimport os\nos._exit(3)", f"cell-{number}")
        wait_for(lambda cell=f"cell-{number}": dead_in() == cell, "the cell in which it died")
        new_notebook.ok("%dist_restart --ranks 1")


def test_the_mark_comes_first_and_tells_who_failed(ranks: Notebook) -> None:
    fine = run_in_lab(ranks, "%%distributed\nprint('all')\nprint('mine', rank)")
    assert marks(fine) == [{"ranks": "0-1", "world_size": 2}]
    assert MIME in fine.outputs[0]["data"] and fine.outputs[0]["data"]["text/html"] == ""
    assert fine.lines == ["[0-1] all", "[0]   mine 0", "[1]   mine 1"], "the rest is the same"
    failed = run_in_lab(ranks, "%%distributed\nprint('all')\nif rank == 1:\n    1 / 0")
    told = {"ranks": "0-1", "world_size": 2, "failed": {"1": "ZeroDivisionError: division by zero"}}
    assert marks(failed) == [told]


def test_a_failure_is_marked_while_others_still_run(ranks: Notebook, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    wait = f"""import os, time
begun = time.monotonic()
print(1)
1 / rank
while not os.path.exists({str(seen)!r}) and time.monotonic() < begun + 600:
    time.sleep(0.02)
"""

    def is_marked(result: Result) -> bool:
        return any("failed" in mark for mark in marks(result))

    result = run_in_lab(ranks, f"%%distributed\n{wait}", until=is_marked, act=seen.touch)
    assert marks(result)[0]["failed"] == {"0": "ZeroDivisionError: division by zero"}


def test_some_cells_and_front_ends_get_no_mark(ranks: Notebook) -> None:
    assert marks(ranks.ok("%%distributed\nprint(1)")) == [], "no name: not JupyterLab"
    uri = "vscode-notebook-cell:/home/me/train.ipynb#W0"
    for name in (uri, None):
        assert marks(run_in_lab(ranks, "%%distributed\nprint(1)", name)) == []
    assert run_in_lab(ranks, "%%distributed\nx = 1").outputs == [], "nothing is shown"
    assert marks(run_in_lab(ranks, "%%rank 1\nprint(1)")) == [], "there is one rank"
    assert marks(run_in_lab(ranks, "%%distributed --per-rank\nprint(1)")) == []


def test_the_mark_comes_again_after_a_clear(ranks: Notebook) -> None:
    code = "%%distributed\nfrom IPython.display import clear_output\nprint(1)\nclear_output()\n"
    result = run_in_lab(ranks, code + "print(2)")
    assert marks(result) == [{"ranks": "0-1", "world_size": 2}]
    assert MIME in result.outputs[0]["data"]
    assert {line[-1] for line in result.lines} == {"2"}


def test_labels_of_displays_and_bars_are_told_from_text(ranks: Notebook) -> None:
    code = "%%distributed\nfrom IPython.display import HTML, display\ndisplay(HTML('<b>1</b>'))"
    kinds = [
        message["content"]["metadata"].get(KIND)
        for message in ranks.ok(code).messages
        if message["msg_type"] == "display_data"
    ]
    assert kinds == ["label", None]


def test_a_long_stream_is_broken_by_a_display() -> None:
    tabs = RankTabs([0, 1], 2, "name")
    published = tabs.mark(Text("stdout", "[0] " + "x" * 90_000 + "\n") for _ in range(5))
    kinds = ["text" if isinstance(piece, Text) else "display" for piece in published]
    assert kinds == ["display", "text", "text", "display", "text", "text"]
    assert tabs.fail({1: "y" * 999}) != [] and tabs.fail({1: "y" * 999}) == [], "only what is new"
    (clear,) = tabs.mark([Clear()])
    assert isinstance(clear, Clear) and tabs.fail({0: "z"}) == [], "there is no mark to draw again"
    mark, _ = tabs.mark([Text("stdout", "again\n")])
    assert isinstance(mark, Display) and not mark.update
    assert set(mark.data[MIME]["failed"]) == {"0", "1"}


def test_no_line_of_a_long_run_looks_like_a_label() -> None:
    lines = [f"line {i}" for i in range(20)]
    assert Labels(2).write([(1, lines)]).splitlines() == ["[0]", *lines]
    odd = [*lines, "[1] is not rank 1"]
    assert Labels(2).write([(1, odd)]).splitlines() == [f"[0]   {line}" for line in odd]
