"""JupyterLab's debugger on ranks: a real kernel with real ranks, and JupyterLab's requests."""

from __future__ import annotations

import itertools
import json
import queue
import time
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.common.protocol.jupyter_messages import Content

from ..notebook_driver import Notebook
from ..waiting import PATIENCE, wait_for

SERVED_ONLY = True
"""The server has no part in it, but has imported torch for an earlier notebook."""

CELL = """%%distributed
def f(x):
    y = torch.ones(2) * x
    return y

for i in range(2):
    f(rank + 10 * i)
print('end', rank)"""


class FrontEnd:
    """What JupyterLab or VS Code sends, and what it hears."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook = notebook
        self.events: list[Content] = []
        self.outputs: list[str] = []
        self.ended: set[str] = set()
        self._numbers = itertools.count(1)

    def ask(self, command: str, **arguments: Any) -> Content:
        """Send a request; return the body of its response."""
        reply = self.ask_for_reply(command, **arguments)
        assert reply["success"], reply
        body: Content = reply.get("body") or {}
        return body

    def ask_for_reply(self, command: str, **arguments: Any) -> Content:
        client, number = self.notebook.client, next(self._numbers)
        content = {"type": "request", "seq": number, "command": command, "arguments": arguments}
        message = client.session.msg("debug_request", content)
        client.control_channel.send(message)
        while True:
            reply = client.get_control_msg(timeout=PATIENCE)
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                said: Content = reply["content"]
                assert said["request_seq"] == number or command == "richInspectVariables", said
                return said

    def start(self, client: str = "jupyterlab") -> None:
        """Press the bug button."""
        self.info = self.ask("debugInfo")
        self.ask("initialize", clientID=client, adapterID="python3", pathFormat="path")
        self.ask("attach")
        self.ask("configurationDone")

    def set_breakpoints(self, cell: str, *lines: int, **more: Any) -> str:
        """Click into the gutter; return the path of the cell."""
        path: str = self.ask("dumpCell", code=cell)["sourcePath"]
        points = [{"line": line} | more for line in lines]
        self.ask("setBreakpoints", breakpoints=points, source={"path": path}, sourceModified=False)
        return path

    def hear(self, seconds: float = 0.05) -> None:
        try:
            message = self.notebook.client.get_iopub_msg(timeout=seconds)
        except queue.Empty:
            return
        kind, content = message["msg_type"], message["content"]
        if kind == "debug_event":
            self.events.append(content)
        elif kind == "status" and content["execution_state"] == "idle":
            self.ended.add(message["parent_header"]["msg_id"])
        elif kind in ("stream", "display_data", "update_display_data", "error"):
            text = content.get("text") or content.get("data") or content.get("evalue")
            self.outputs.append(json.dumps(text, ensure_ascii=False))

    def until(self, kind: str) -> Content:
        """Return the body of the next event of a kind."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            while self.events:
                event = self.events.pop(0)
                if event["event"] == kind:
                    body: Content = event["body"]
                    return body
            self.hear()
        raise AssertionError(f"no event “{kind}”; outputs: {self.outputs}")

    def until_all_stopped(self, count: int) -> None:
        wait_for(
            lambda: len(self.ask("debugInfo")["stoppedThreads"]) == count, f"{count} stopped ranks"
        )

    def finish(self, cell: str) -> None:
        """Wait for the end of a cell."""
        deadline = time.monotonic() + PATIENCE
        while cell not in self.ended:
            assert time.monotonic() < deadline, self.outputs
            self.hear()

    def names(self) -> dict[int, str]:
        return {one["id"]: one["name"] for one in self.ask("threads")["threads"]}

    def frames(self, thread: int) -> list[Content]:
        frames: list[Content] = self.ask("stackTrace", threadId=thread)["stackFrames"]
        return frames

    def variables(self, frame: int) -> dict[str, Content]:
        scopes = self.ask("scopes", frameId=frame)["scopes"]
        reference = scopes[0]["variablesReference"]
        return {
            one["name"]: one
            for one in self.ask("variables", variablesReference=reference)["variables"]
        }

    def stop(self) -> None:
        self.ask("disconnect", restart=False, terminateDebuggee=False)


@pytest.fixture
def front(ranks: Notebook) -> Any:
    front = FrontEnd(ranks)
    front.start()
    yield front
    front.stop()


def test_it_is_switched_on_while_a_cell_hangs(ranks: Notebook) -> None:
    # The first test of this file: the kernel starts its own debugger only between cells.
    front = FrontEnd(ranks)
    waits = (
        "%%distributed\nstop = []\nif rank == 1:\n    print('waits')\n    while not stop:\n"
        "        n = 1\ndist.barrier()\nprint('free')"
    )
    cell = ranks.send(waits)
    while "waits" not in "".join(front.outputs):
        front.hear()
    front.start()
    front.ask("pause", threadId=1)
    stopped = front.until("stopped")
    assert front.names()[stopped["threadId"]] == "rank 1"
    frames = front.frames(stopped["threadId"])
    assert frames[0]["line"] in (5, 6)
    front.ask("evaluate", expression="stop.append(1)", frameId=frames[0]["id"], context="repl")
    front.ask("continue", threadId=1)
    front.finish(cell)
    assert "free" in "".join(front.outputs)
    front.stop()


def test_a_breakpoint_in_a_cell_on_ranks(front: FrontEnd) -> None:
    path = front.set_breakpoints(CELL, 4)
    cell = front.notebook.send(CELL)
    stopped = front.until("stopped")
    name = front.names()[stopped["threadId"]]
    assert name in ("rank 0", "rank 1")
    rank = int(name[-1])
    front.until_all_stopped(2)
    frames = front.frames(stopped["threadId"])
    assert [one["line"] for one in frames] == [4, 7] and frames[0]["name"] == "f"
    assert {one["source"]["path"] for one in frames} == {path}
    shown = front.variables(frames[0]["id"])
    assert shown["x"]["value"] == str(rank)
    assert shown["y"]["value"] == f"Tensor 2 float32 on cpu [{rank}, {rank}]"
    rich = front.ask("richInspectVariables", variableName="y", frameId=frames[0]["id"])
    assert "tensor(" in rich["data"]["text/plain"]
    told = front.ask("evaluate", expression="x + 5", frameId=frames[0]["id"], context="repl")
    assert told["result"] == str(rank + 5)
    front.ask("continue", threadId=1)  # as JupyterLab, which has deleted its stopped thread
    front.until("continued")
    stopped = front.until("stopped")
    rank = int(front.names()[stopped["threadId"]][-1])
    front.until_all_stopped(2)
    assert [front.ask("debugInfo")["stoppedThreads"][0]] == [stopped["threadId"]]
    other = front.ask("jdistShowRank", rank=1 - rank)
    assert other == {}
    shown_other = front.until("stopped")["threadId"]
    assert front.names()[shown_other] == f"rank {1 - rank}"
    assert front.variables(front.frames(shown_other)[0]["id"])["x"]["value"] == str(11 - rank)
    front.ask("jdistStepOnlyShownRank", on=True)
    front.ask("next", threadId=1)
    assert front.until("stopped")["threadId"] == shown_other
    lines = [front.frames(one)[0]["line"] for one in (shown_other, stopped["threadId"])]
    assert lines == [6, 4], "the other rank stays where it is"
    front.ask("jdistStepOnlyShownRank", on=False)
    front.ask("continue", threadId=1)
    front.finish(cell)
    assert "end 0" in "".join(front.outputs) and "end 1" in "".join(front.outputs)


def test_steps_conditions_and_the_plain_cells_of_the_kernel(front: FrontEnd) -> None:
    front.set_breakpoints(CELL, 4, condition="x == 11")
    cell = front.notebook.send(CELL)
    stopped = front.until("stopped")
    assert front.names()[stopped["threadId"]] == "rank 1"
    front.ask("stepOut", threadId=stopped["threadId"])
    stopped = front.until("stopped")
    assert [one["line"] for one in front.frames(stopped["threadId"])] == [7]
    front.ask("continue", threadId=1)
    front.finish(cell)
    plain = "a = 1\nb = a + 1\nprint('plain', b)"
    front.set_breakpoints(plain, 2)
    cell = front.notebook.send(plain)
    stopped = front.until("stopped")
    (name,) = [name for number, name in front.names().items() if number == 1]
    assert name == "MainThread"
    frames = front.frames(1)
    assert frames[0]["line"] == 2 and front.variables(frames[0]["id"])["a"]["value"] == "1"
    front.ask("continue", threadId=1)
    front.finish(cell)


def test_breakpoint_in_a_module_and_exceptions(front: FrontEnd, tmp_path: Path) -> None:
    module = tmp_path / "of_a_user.py"
    module.write_text("def g(x):\n    breakpoint()\n    return 1 / x\n")
    imports = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import of_a_user"
    cell = front.notebook.send(f"%%rank 1\n{imports}\nof_a_user.g(0)")
    stopped = front.until("stopped")
    frames = front.frames(stopped["threadId"])
    assert frames[0]["name"] == "g" and frames[0]["source"]["path"] == str(module)
    front.ask("setExceptionBreakpoints", filters=["raised"])
    front.ask("continue", threadId=1)
    stopped = front.until("stopped")
    told = front.ask("exceptionInfo", threadId=stopped["threadId"])
    assert told["exceptionId"] == "ZeroDivisionError"
    front.ask("setExceptionBreakpoints", filters=[])
    front.ask("continue", threadId=1)
    front.finish(cell)
    assert "ZeroDivisionError" in "".join(front.outputs)


def test_stop_works_at_a_breakpoint(front: FrontEnd) -> None:
    front.set_breakpoints(CELL, 4)
    for _ in range(2):
        cell = front.notebook.send(CELL)
        front.until("stopped")
        front.until_all_stopped(2)
        front.notebook.interrupt()
        front.until("continued")
        front.finish(cell)
        front.until_all_stopped(0)


def test_time_limits_do_not_count_while_a_rank_is_stopped(front: FrontEnd) -> None:
    cell = CELL.replace("%%distributed", "%%distributed --timeout 3")
    front.set_breakpoints(cell, 7)
    begun = time.monotonic()
    sent = front.notebook.send(cell)
    front.until("stopped")
    front.until_all_stopped(2)
    while time.monotonic() < begun + 5:
        front.hear()
    front.set_breakpoints(cell)
    front.ask("continue", threadId=1)
    front.finish(sent)
    assert "end 0" in "".join(front.outputs), front.outputs


def test_new_ranks_have_the_breakpoints_of_the_session(front: FrontEnd) -> None:
    front.set_breakpoints(CELL, 4)
    front.notebook.ok("%dist_restart --ranks 1")
    cell = front.notebook.send(CELL)
    front.until("stopped")
    front.until_all_stopped(2)
    front.ask("disconnect", restart=False, terminateDebuggee=False)  # all go on
    front.finish(cell)
    front.start()


def test_all_cells_on_ranks_and_cells_within_a_cell(front: FrontEnd) -> None:
    front.notebook.ok("%dist_mode -e")
    cell = "\n%%capture\n\nt = torch.ones(3)\nu = t.sum()"
    front.set_breakpoints(cell, 5)
    sent = front.notebook.send(cell)
    stopped = front.until("stopped")
    frames = front.frames(stopped["threadId"])
    assert frames[0]["line"] == 5
    assert "t" in front.variables(frames[0]["id"])
    front.until_all_stopped(2)
    front.ask("continue", threadId=1)
    front.finish(sent)
    front.notebook.ok("%dist_mode -d")


VS_CODE: dict[str, Content] = {
    "initialize": {
        "clientID": "vscode",
        "clientName": "Visual Studio Code",
        "adapterID": "Python Kernel Debug Adapter",
        "pathFormat": "path",
        "linesStartAt1": True,
        "columnsStartAt1": True,
        "supportsVariableType": True,
        "supportsVariablePaging": True,
        "supportsRunInTerminalRequest": True,
        "supportsProgressReporting": True,
        "supportsInvalidatedEvent": True,
        "supportsMemoryReferences": True,
        "locale": "en",
    },
    "attach": {
        "type": "Python Kernel Debug Adapter",
        "request": "attach",
        "name": "train.ipynb",
        "justMyCode": True,
        "__notebookUri": "file:///home/me/train.ipynb",
    },
}
"""Arguments that VS Code's Jupyter extension sends."""


@pytest.fixture
def vs_code(ranks: Notebook) -> Any:
    front = FrontEnd(ranks)
    yield front
    front.stop()


def test_a_conversation_with_vs_code(vs_code: FrontEnd) -> None:
    front, ranks = vs_code, vs_code.notebook
    front.ask("initialize", **VS_CODE["initialize"])
    front.ask("attach", **VS_CODE["attach"])
    front.ask("debugInfo")
    path = front.ask("dumpCell", code=CELL)["sourcePath"]
    told = front.ask(
        "setBreakpoints",
        source={"name": "train.ipynb", "path": path},
        lines=[4],
        breakpoints=[{"line": 4}],
        sourceModified=False,
    )
    assert [one["line"] for one in told["breakpoints"]] == [4]
    front.ask("setFunctionBreakpoints", breakpoints=[])
    front.ask("setExceptionBreakpoints", filters=["uncaught"], filterOptions=[])
    front.ask("configurationDone")
    cell = ranks.send(CELL)
    stopped = front.until("stopped")
    front.until_all_stopped(2)
    other = front.until("stopped")  # it shows several stopped threads
    assert other["preserveFocusHint"]
    names = front.names()
    assert {names[one["threadId"]] for one in (stopped, other)} == {"rank 0", "rank 1"}
    for one in (stopped, other):
        thread = one["threadId"]
        told = front.ask("stackTrace", threadId=thread, startFrame=0, levels=1)
        frame = told["stackFrames"][0]
        assert (frame["line"], frame["source"]["path"]) == (4, path)
        (local, *_) = front.ask("scopes", frameId=frame["id"])["scopes"]
        reference = local["variablesReference"]
        found = front.ask("variables", variablesReference=reference)["variables"]
        assert next(v["value"] for v in found if v["name"] == "x") == names[thread][-1]
    front.ask("next", threadId=stopped["threadId"], singleThread=True, granularity="statement")
    again = front.until("stopped")
    assert again["threadId"] == stopped["threadId"]
    front.set_breakpoints(CELL)
    front.ask("continue", threadId=stopped["threadId"])
    front.finish(cell)


def test_off_it_costs_a_look_at_one_attribute(ranks: Notebook) -> None:
    look = (
        "import jupyter_dist_server.notebook.register as r\n"
        "front = next(h for h in r._hooks if type(h).__name__ == 'DebuggerFront')\n"
        "print(front._ranks, front._connection, front._pool.debugger)"
    )
    assert ranks.ok(look).lines == ["None None None"]
    asked = "import jupyter_dist_server.client.pool_client as c\nbefore = c.PoolClient.execute\n"
    asked += (
        "async def execute(*a, source=None, **k):\n    print('source', source)\n"
        "    return await before(*a, source=source, **k)\nc.PoolClient.execute = execute"
    )
    ranks.ok(asked)
    assert "source None" in ranks.ok("%%distributed\npass").text
    ranks.ok("c.PoolClient.execute = before")
