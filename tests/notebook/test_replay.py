"""A page that is loaded again while a cell runs gets what it missed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jupyter_client import BlockingKernelClient

from ..notebook_driver import Notebook
from ..waiting import PATIENCE, wait_for

CELL = """%%distributed
from IPython.display import display
print("first")
handle = display(rank, display_id=True)
handle.update(rank + 10)
print("last")
if rank == 1:
    1 / 0
"""


def run_as_a_page(client: BlockingKernelClient, code: str, cell_id: str) -> None:
    """Run a cell as JupyterLab does, which names it, and wait for its end."""
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
    request = client.session.msg("execute_request", content, metadata={"cellId": cell_id})
    client.shell_channel.send(request)
    wait_for_reply(client, request["header"]["msg_id"])


def wait_for_reply(client: BlockingKernelClient, request: str) -> None:
    wait_for(
        lambda: client.get_shell_msg(timeout=PATIENCE)["parent_header"]["msg_id"] == request,
        "the cell's end",
    )


def missed(client: BlockingKernelClient) -> list[dict[str, Any]]:
    """Ask as a page that was just loaded."""
    comm = {"comm_id": "c1", "target_name": "jupyter_dist.replay", "data": {}}
    client.control_channel.send(client.session.msg("comm_open", comm))
    while True:
        message = client.get_iopub_msg(timeout=PATIENCE)
        if message["msg_type"] == "comm_msg" and message["content"]["comm_id"] == "c1":
            cells: list[dict[str, Any]] = message["content"]["data"]["cells"]
            return cells


def another_page(notebook: Notebook) -> BlockingKernelClient:
    client = BlockingKernelClient()
    client.load_connection_info(notebook.client.get_connection_info())
    client.start_channels()
    client.wait_for_ready(timeout=PATIENCE)
    return client


def test_what_a_cell_showed_is_kept_for_another_page(ranks: Notebook) -> None:
    run_as_a_page(ranks.client, CELL, "cell-a")
    assert missed(ranks.client) == [], "the page that ran it has seen it"
    page = another_page(ranks)
    try:
        (cell,) = missed(page)
    finally:
        page.stop_channels()
    assert cell["code"] == CELL
    assert cell["cell_id"] == "cell-a" and 0 <= cell["age"] < 60
    assert isinstance(cell["execution_count"], int)
    *shown, error = cell["outputs"]
    assert error["output_type"] == "error" and "by zero" in "\n".join(error["traceback"])
    assert "Rank 1 failed with ZeroDivisionError" in error["evalue"]
    texts = "".join(
        "".join(o["text"]) if "text" in o else o["data"].get("text/plain", "") for o in shown
    )
    assert all(isinstance(o["text"], str) for o in shown if "text" in o), "not a list of lines"
    assert "[0-1] first" in texts and "last" in texts
    displays = {o["data"].get("text/plain") for o in shown if o["output_type"] == "display_data"}
    assert {"10", "11"} <= displays, "their last state"


def test_only_the_last_cells_are_kept(ranks: Notebook) -> None:
    for number in range(10):
        run_as_a_page(ranks.client, f"%%distributed\nprint({number})", f"cell-{number}")
    page = another_page(ranks)
    try:
        assert [cell["cell_id"] for cell in missed(page)] == [f"cell-{n}" for n in range(2, 10)]
    finally:
        page.stop_channels()


def test_a_cell_that_has_shown_nothing_is_told_too(ranks: Notebook, tmp_path: Path) -> None:
    """Or a page that was loaded again meanwhile would never show what comes."""
    go = tmp_path / "go"
    silent = f"import os, time\nwhile not os.path.exists({str(go)!r}):\n    time.sleep(0.05)"
    code = f"%%distributed\n{silent}"
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
    request = ranks.client.session.msg("execute_request", content, metadata={"cellId": "cell-s"})
    page = another_page(ranks)
    try:
        ranks.client.shell_channel.send(request)
        number = request["header"]["msg_id"]
        told = wait_for(
            lambda: [cell for cell in missed(page) if cell["request"] == number],
            "the beginning of the cell",
        )
        assert told[-1]["age"] is None and told[-1]["outputs"] == []
    finally:
        go.touch()
        page.stop_channels()
    wait_for_reply(ranks.client, number)


WAITS = """%%distributed
import os, time
from IPython.display import display
print("first")
handle = display("shown", display_id=True)
while not os.path.exists(GO):
    time.sleep(0.05)
print("last")
"""


def test_a_cell_that_runs_is_told_at_once_and_what_it_shows_then_comes_after(
    ranks: Notebook, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    code = WAITS.replace("GO", repr(str(go)))
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
    request = ranks.client.session.msg("execute_request", content, metadata={"cellId": "cell-r"})
    page = another_page(ranks)
    try:
        ranks.client.shell_channel.send(request)
        number = request["header"]["msg_id"]
        told = wait_for(
            lambda: [
                cell
                for cell in missed(page)
                if cell["request"] == number
                and all(word in str(cell["outputs"]) for word in ("first", "shown"))
            ],
            "its first outputs",
        )
        cell = told[-1]
        assert cell["age"] is None
        assert "last" not in str(cell["outputs"])
        places = [place for places in cell["displays"].values() for place in places]
        assert {cell["outputs"][place]["output_type"] for place in places} == {"display_data"}
        go.touch()
        after = []
        while {"execution_state": "idle"} not in after:
            message = page.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"]["msg_id"] == number:
                after.append(message["content"])
        assert "last" in str(after), "as text, or in a display that is drawn again"
    finally:
        page.stop_channels()
    wait_for_reply(ranks.client, request["header"]["msg_id"])
