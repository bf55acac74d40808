"""A page that is loaded again while a cell runs gets what it missed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ipykernel.displayhook import ZMQShellDisplayHook
from ipykernel.iostream import OutStream
from jupyter_client import BlockingKernelClient

from ..notebook_driver import Notebook
from ..waiting import PATIENCE, wait_for

plain = pytest.mark.skipif(
    not hasattr(OutStream, "register_hook"), reason="this ipykernel does not say what it sends"
)

CELL = """%%distributed
from IPython.display import display
print("first")
handle = display(rank, display_id=True)
handle.update(rank + 10)
print("last")
if rank == 1:
    1 / 0
"""


def send(client: BlockingKernelClient, code: str, cell_id: str, *, asks: bool = False) -> str:
    """Run a cell as JupyterLab does, which names it."""
    content = {"code": code, "silent": False, "store_history": True, "allow_stdin": asks}
    request = client.session.msg("execute_request", content, metadata={"cellId": cell_id})
    client.shell_channel.send(request)
    return str(request["header"]["msg_id"])


def run_as_a_page(client: BlockingKernelClient, code: str, cell_id: str) -> str:
    """Run a cell, and wait for its end."""
    request = send(client, code, cell_id)
    wait_for_reply(client, request)
    return request


def wait_for_reply(client: BlockingKernelClient, request: str) -> None:
    wait_for(
        lambda: client.get_shell_msg(timeout=PATIENCE)["parent_header"]["msg_id"] == request,
        "the cell's end",
    )


def tell(client: BlockingKernelClient, **content: Any) -> str:
    message = client.session.msg("jupyter_dist_replay", content)
    client.control_channel.send(message)
    return str(message["header"]["msg_id"])


def missed(client: BlockingKernelClient, *known: str) -> list[dict[str, Any]]:
    """Ask as a page that was just loaded."""
    asked = tell(client, session=client.session.session, known=known)
    while True:
        message = client.get_iopub_msg(timeout=PATIENCE)
        if message["msg_type"] == "comm_msg" and message["parent_header"]["msg_id"] == asked:
            cells: list[dict[str, Any]] = message["content"]["data"]["cells"]
            return cells


@pytest.fixture
def page(ranks: Notebook) -> Iterator[BlockingKernelClient]:
    """Another page, when all that was shown before has been saved."""
    client = BlockingKernelClient()
    client.load_connection_info(ranks.client.get_connection_info())
    client.start_channels()
    client.wait_for_ready(timeout=PATIENCE)
    tell(client, saved=[cell["request"] for cell in missed(client)])
    yield client
    client.stop_channels()


def text_of(cell: dict[str, Any]) -> str:
    return "".join(
        "".join(o["text"]) if "text" in o else o.get("data", {}).get("text/plain", "")
        for o in cell["outputs"]
    )


def messages_of(page: BlockingKernelClient, request: str) -> list[dict[str, Any]]:
    """Return what comes until a cell has ended."""
    messages: list[dict[str, Any]] = []
    while True:
        message = page.get_iopub_msg(timeout=PATIENCE)
        if message["parent_header"].get("msg_id") == request:
            messages.append(message)
            if message["content"].get("execution_state") == "idle":
                return messages


def waiting(path: Path) -> str:
    return f"import os, time\nwhile not os.path.exists({str(path)!r}):\n    time.sleep(0.05)\n"


def test_what_a_cell_showed_is_kept_for_another_page(
    ranks: Notebook, page: BlockingKernelClient
) -> None:
    run_as_a_page(ranks.client, CELL, "cell-a")
    assert missed(ranks.client) == [], "the page that ran it has seen it"
    (cell,) = missed(page)
    assert cell["code"] == CELL
    assert cell["cell_id"] == "cell-a" and not cell["running"]
    assert isinstance(cell["execution_count"], int)
    *shown, error = cell["outputs"]
    assert error["output_type"] == "error" and "by zero" in "\n".join(error["traceback"])
    assert "Rank 1 failed with ZeroDivisionError" in error["evalue"]
    assert all(isinstance(o["text"], str) for o in shown if "text" in o), "not a list of lines"
    assert "[0-1] first" in text_of(cell) and "last" in text_of(cell)
    displays = {o["data"].get("text/plain") for o in shown if o["output_type"] == "display_data"}
    assert {"10", "11"} <= displays, "their last state"


def test_it_is_kept_until_a_page_has_saved_it(ranks: Notebook, page: BlockingKernelClient) -> None:
    request = run_as_a_page(ranks.client, "%%distributed\nprint(1)", "cell-a")
    assert [cell["request"] for cell in missed(page)] == [request]
    assert missed(page, request) == [], "this page has it"
    assert [cell["request"] for cell in missed(page)] == [request], "but may be closed"
    tell(page, saved=[request])
    assert missed(page) == []
    for _ in range(2):
        again = run_as_a_page(ranks.client, "%%distributed\nprint(2)", "cell-a")
    assert [cell["request"] for cell in missed(page)] == [again], "only its last run"


@plain
def test_what_is_dropped_is_told(ranks: Notebook, page: BlockingKernelClient) -> None:
    for number in range(34):
        run_as_a_page(ranks.client, f"print({number})", f"cell-{number}")
    cells = missed(page)
    assert [cell["dropped"] for cell in cells] == [True] * 2 + [False] * 32
    assert "was dropped" in text_of(cells[1])
    assert [text_of(cell) for cell in cells[2:]] == [f"{n}\n" for n in range(2, 34)]


@plain
def test_a_cell_without_an_end_of_output_takes_no_more_memory(
    ranks: Notebook, page: BlockingKernelClient
) -> None:
    code = "for _ in range(40):\n    print('x' * 999_999, flush=True)"
    run_as_a_page(ranks.client, code, "cell-a")
    (cell,) = missed(page)
    assert cell["cut"] and 16_000_000 < len(text_of(cell)) < 18_000_000
    assert "no more output of this cell is kept" in text_of(cell)[-100:]


PLAIN = """from IPython.display import clear_output, display
import sys
print("gone")
clear_output()
handle = display("one", display_id=True)
print("out")
print("err", file=sys.stderr)
handle.update("two")
7
"""


@plain
def test_a_plain_cell_is_kept_too(ranks: Notebook, page: BlockingKernelClient) -> None:
    request = run_as_a_page(ranks.client, PLAIN, "cell-a")
    run_as_a_page(ranks.client, "handle.update('three')", "cell-b")
    cell, _ = missed(page)
    assert cell["request"] == request
    kinds = ["display_data", "stream", "stream", "execute_result"]
    if not hasattr(ZMQShellDisplayHook, "register_hook"):
        kinds.pop()
    assert [output["output_type"] for output in cell["outputs"]] == kinds
    assert text_of(cell).startswith("'three'out\nerr\n")
    run_as_a_page(ranks.client, "print('so far')\n1/0", "cell-c")
    text, error = missed(page)[-1]["outputs"]
    assert text["text"] == "so far\n" and error["ename"] == "ZeroDivisionError"


@pytest.mark.parametrize("where", [pytest.param("", marks=plain), "%%distributed\n"])
def test_a_cell_that_has_shown_nothing_is_told_too(
    ranks: Notebook, page: BlockingKernelClient, tmp_path: Path, where: str
) -> None:
    """Or a page that was loaded again meanwhile would never show what comes."""
    go = tmp_path / "go"
    request = send(ranks.client, where + waiting(go), "cell-s")
    try:
        (told,) = wait_for(lambda: missed(page), "the beginning of the cell")
        assert told["running"] and told["outputs"] == []
    finally:
        go.touch()
    wait_for_reply(ranks.client, request)


LINES = """import time
for i in range(2000):
    print("line", i)
    if i % 100 == 0:
        display(f"shown {i}", metadata={})
        time.sleep(0.01)
"""


@pytest.mark.parametrize("where", [pytest.param("", marks=plain), "%%rank 0\n"])
def test_each_line_comes_once_and_in_order_whenever_a_page_asks(
    ranks: Notebook, page: BlockingKernelClient, where: str
) -> None:
    request = send(ranks.client, where + LINES, "cell-l")
    (before,) = wait_for(
        lambda: [cell for cell in missed(page) if "line" in text_of(cell)], "its first lines"
    )
    told = text_of(before)
    for message in messages_of(page, request):
        if message["header"]["msg_id"] in before["last"]:
            continue
        content = message["content"]
        if message["msg_type"] == "stream":
            told += content["text"]
        elif message["msg_type"] == "display_data":
            told += content["data"]["text/plain"]
    wait_for_reply(ranks.client, request)
    (after,) = missed(page)
    assert told == text_of(after)
    if not where:
        expected = [f"line {i}\n" + f"'shown {i}'" * (i % 100 == 0) for i in range(2000)]
        assert told == "".join(expected)


@pytest.mark.parametrize(
    ("code", "prompt", "shown"),
    [
        pytest.param(
            "print('got', input('name? '))", "name? ", "name?  Ada\ngot Ada\n", marks=plain
        ),
        pytest.param(
            "import getpass\nprint(len(getpass.getpass('key?')))",
            "key?",
            "key? ········\n3\n",
            marks=plain,
        ),
        ("%%rank 1\nprint('got', input('name?'))", "[1] name?", "[1] name? Ada\n[1]   got Ada\n"),
    ],
)
def test_another_page_may_answer_what_a_cell_asks(
    ranks: Notebook, page: BlockingKernelClient, code: str, prompt: str, shown: str
) -> None:
    request = send(ranks.client, code, "cell-i", asks=True)
    (cell,) = wait_for(lambda: [cell for cell in missed(page) if cell["question"]], "the question")
    assert cell["question"] == {"prompt": prompt, "password": "key" in prompt}
    ranks.client.get_stdin_msg(timeout=PATIENCE)
    page.input("Ada")  # what came before the question would be dropped
    told = [message["content"].get("data") for message in messages_of(page, request)]
    assert {"question": None} in told and {"answered": shown.splitlines(True)[0]} in told
    wait_for_reply(ranks.client, request)
    (cell,) = missed(page)
    assert text_of(cell).endswith(shown) and cell["question"] is None
