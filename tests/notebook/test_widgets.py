"""Widgets of ranks, as a front end sees and uses them; with a server and without."""

from __future__ import annotations

import json
import os
import queue
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ipywidgets import __version__ as widgets_version

from ..notebook_driver import Notebook
from ..result import Result
from ..waiting import PATIENCE, wait_for

SERVED_ONLY = True
"""The server has no part in it, but has imported torch for an earlier notebook."""

VIEW = "application/vnd.jupyter.widget-view+json"
ECHOES = ["echo_update"] if not widgets_version.startswith("7.") else []
"""How ipywidgets answers; before its release 8, only where a variable tells it to."""
Message = dict[str, Any]


def messages(result: Result, kind: str) -> list[Message]:
    """Return a cell's messages of one kind."""
    return [message for message in result.messages if message["msg_type"] == kind]


def models(result: Result) -> list[str]:
    """Return the ids of the widgets that a cell displays, in order."""
    return [view["model_id"] for view in result.mime(VIEW)]


def listed(notebook: Notebook) -> dict[str, Any]:
    """Return the comms that the notebook's kernel knows."""
    asked = notebook.client.comm_info()
    while True:
        reply = notebook.client.get_shell_msg(timeout=PATIENCE)
        if reply["parent_header"].get("msg_id") == asked:
            comms: dict[str, Any] = reply["content"]["comms"]
            return comms


def say(notebook: Notebook, comm: str, data: Message, buffers: tuple[bytes, ...] = ()) -> str:
    """Send a message to a comm, as a widget's view does."""
    session, channel = notebook.client.session, notebook.client.shell_channel
    message: Message = session.msg("comm_msg", {"comm_id": comm, "data": data})
    session.send(channel.socket, message, buffers=list(buffers))
    return str(message["msg_id"])


def printed(said: list[Message]) -> str:
    """Return what was printed: a line and its end may come in two messages."""
    return "".join(m["content"]["text"] for m in said if m["msg_type"] == "stream")


def heard(notebook: Notebook, parent: str) -> list[Message]:
    """Return what comes of a message to a comm, until the kernel is done with it."""
    found: list[Message] = []
    while True:
        message = notebook.client.get_iopub_msg(timeout=PATIENCE)
        if message["parent_header"].get("msg_id") == parent:
            found.append(message)
            if message["content"].get("execution_state") == "idle":
                return found


def move(notebook: Notebook, slider: str, value: int) -> list[Message]:
    """Move a slider, and return what comes of it."""
    data = {"method": "update", "state": {"value": value}, "buffer_paths": []}
    return heard(notebook, say(notebook, slider, data))


def next_of(notebook: Notebook, kind: str, holds: Callable[[Message], bool]) -> Message:
    """Return the next message of a kind for which something holds."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            message: Message = notebook.client.get_iopub_msg(timeout=1)
        except queue.Empty:
            continue
        if message["msg_type"] == kind and holds(message):
            return message
    raise AssertionError(f"no such {kind} came")


@pytest.fixture(scope="module")
def sliders(ranks: Notebook) -> list[str]:
    """Return the ids of two sliders, one of each rank."""
    code = "%%distributed\nimport ipywidgets, os\nslider = ipywidgets.IntSlider(rank)\nslider"
    result = ranks.ok(code)
    opened = {m["content"]["comm_id"]: m["content"] for m in messages(result, "comm_open")}
    return sorted(models(result), key=lambda model: opened[model]["data"]["state"]["value"])


def test_each_rank_shows_its_widget_and_comes_with_its_model(ranks: Notebook) -> None:
    result = ranks.ok("%%distributed\nimport ipywidgets\ndisplay(ipywidgets.IntText(rank + 5))")
    opened = {m["content"]["comm_id"]: m["content"] for m in messages(result, "comm_open")}
    shown = models(result)
    assert {opened[model]["data"]["state"]["value"] for model in shown} == {5, 6}
    contents = [message["content"] for message in result.messages]
    for model in shown:
        opens = [n for n, content in enumerate(contents) if content.get("comm_id") == model]
        views = [n for n, content in enumerate(contents) if model in str(content.get("data"))]
        assert min(opens) < min(n for n in views if n not in opens), "a view needs its model"
    known = listed(ranks)
    assert {known[model]["target_name"] for model in shown} == {"jupyter.widget"}


def test_an_interaction_reaches_its_rank_and_no_other(ranks: Notebook, sliders: list[str]) -> None:
    said = move(ranks, sliders[1], 42)
    echoes = [m["content"]["data"]["method"] for m in said if m["msg_type"] == "comm_msg"]
    assert echoes == ECHOES, "named as the answer to what the front end said"
    assert ranks.ok("%%distributed\nslider.value").lines == ["[0]   0", "[1]   42"]


def test_a_cell_changes_its_widget(ranks: Notebook, sliders: list[str]) -> None:
    result = ranks.ok("%%rank 0\nslider.value = 7")
    (update,) = messages(result, "comm_msg")
    assert update["content"]["comm_id"] == sliders[0]
    assert update["content"]["data"]["state"] == {"value": 7}


def test_what_a_callback_prints_and_changes_belongs_to_the_interaction(
    ranks: Notebook, sliders: list[str]
) -> None:
    ranks.ok("""%%rank 0
def on_value(change):
    print("now", change.new)
    slider.description = "changed"
slider.observe(on_value, "value")
""")
    said = move(ranks, sliders[0], 9)
    assert printed(said) == "now 9\n"
    states = [m["content"]["data"]["state"] for m in said if m["msg_type"] == "comm_msg"]
    assert {"description": "changed"} in states


def test_interact_fills_its_own_output(ranks: Notebook) -> None:
    result = ranks.ok("""%%rank 1
import ipywidgets
def show(x):
    print(x)
ipywidgets.interactive(show, x=(0, 10))
""")
    slider = next(
        m["content"]["comm_id"]
        for m in messages(result, "comm_open")
        if m["content"]["data"]["state"].get("_model_name") == "IntSliderModel"
    )
    said = move(ranks, slider, 3)
    parent = said[0]["parent_header"]["msg_id"]
    captures = [
        m["content"]["data"]["state"]["msg_id"]
        for m in said
        if m["msg_type"] == "comm_msg" and "msg_id" in m["content"]["data"].get("state", {})
    ]
    assert captures == [parent, ""], "the Output widget takes what comes of this message"
    assert printed(said) == "3\n"


def test_binary_buffers_are_kept_both_ways(ranks: Notebook) -> None:
    result = ranks.ok("""%%rank 1
import ipywidgets
picture = ipywidgets.Image(value=bytes(range(256)) * 1000)
picture.on_msg(lambda _, content, buffers: print(content, [bytes(b) for b in buffers]))
picture
""")
    (opened,) = (m for m in messages(result, "comm_open") if m["buffers"])
    assert bytes(opened["buffers"][0]) == bytes(range(256)) * 1000
    data = {"method": "custom", "content": {"n": 1}}
    said = heard(ranks, say(ranks, models(result)[0], data, (b"\x00\xff", b"more")))
    assert printed(said) == "{'n': 1} [b'\\x00\\xff', b'more']\n"


def test_tqdm_notebook_has_a_bar_for_each_rank(ranks: Notebook) -> None:
    result = ranks.ok("""%%distributed
from tqdm.notebook import tqdm
for step in tqdm(range(50 + rank), desc=f"rank{rank}"):
    pass
""")
    state: dict[str, dict[str, Any]] = {}
    for message in result.messages:
        if message["msg_type"] in ("comm_open", "comm_msg"):
            content = message["content"]
            state.setdefault(content["comm_id"], {}).update(content["data"]["state"])
    bars = [s for s in state.values() if s.get("_model_name") == "FloatProgressModel"]
    assert sorted((bar["value"], bar["max"]) for bar in bars) == [(50, 50), (51, 51)]
    texts = json.dumps(list(state.values()))
    assert "rank0:" in texts and "rank1:" in texts
    assert len(models(result)) == 2


def test_a_thread_goes_on_after_its_cell(ranks: Notebook, tmp_path: Path) -> None:
    go = tmp_path / "go"
    cell = ranks.send(f"""%%rank 0
import ipywidgets, pathlib, threading, time
label = ipywidgets.Label("waiting")
def work():
    while not pathlib.Path({str(go)!r}).exists():
        time.sleep(0.01)
    label.value = "done"
threading.Thread(target=work).start()
label
""")
    assert ranks.follow(cell).status == "ok"
    go.touch()
    last = next_of(ranks, "comm_msg", lambda m: m["content"]["data"]["state"] == {"value": "done"})
    assert last["parent_header"]["msg_id"] == cell


def test_stop_ends_a_callback(ranks: Notebook, sliders: list[str]) -> None:
    ranks.ok("""%%rank 1
def wait(change):
    print("waiting", flush=True)
    import time
    while True:
        time.sleep(0.01)
slider.observe(wait, "value")
""")
    data = {"method": "update", "state": {"value": 90}, "buffer_paths": []}
    sent = say(ranks, sliders[1], data)
    next_of(ranks, "stream", lambda m: m["content"]["text"].startswith("waiting"))
    ranks.interrupt()
    heard(ranks, sent)
    ranks.ok("%%rank 1\nslider.unobserve_all()")


def test_closing_is_heard_on_both_sides(ranks: Notebook) -> None:
    code = "%%rank 1\nimport ipywidgets\nleft, right = ipywidgets.Text(), ipywidgets.Text()\n\
display(left, right)"
    left, right = models(ranks.ok(code))
    result = ranks.ok("%%rank 1\nleft.close()")
    assert left in [m["content"]["comm_id"] for m in messages(result, "comm_close")]
    message = ranks.client.session.msg("comm_close", {"comm_id": right, "data": {}})
    ranks.client.shell_channel.send(message)
    heard(ranks, message["msg_id"])
    assert not {left, right} & set(listed(ranks))
    known = "%%rank 1\nright.model_id in get_ipython().kernel.comm_manager.comms"
    assert ranks.ok(known).lines == ["[1]   False"]


def test_a_dead_rank_closes_its_widgets(ranks: Notebook, sliders: list[str]) -> None:
    pid = int(ranks.ok("%%rank 1\nos.getpid()").lines[0].split()[-1])
    os.kill(pid, signal.SIGKILL)
    next_of(ranks, "comm_close", lambda m: m["content"]["comm_id"] == sliders[1])
    assert sliders[1] not in listed(ranks)
    assert sliders[0] in listed(ranks)


def test_the_end_of_the_pool_closes_them_all(ranks: Notebook) -> None:
    known = set(listed(ranks))
    result = ranks.ok("%dist_shutdown")
    closed = {m["content"]["comm_id"] for m in messages(result, "comm_close")}
    assert closed == known
    wait_for(lambda: listed(ranks) == {}, "the end of all comms")
