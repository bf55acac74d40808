"""The debugger in ranks: it stops, shows and ends, and costs nothing while it is off."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from jupyter_dist_server.client.pool_client import PoolClient
from jupyter_dist_server.client.ranks.debug_connection import DebugConnection
from jupyter_dist_server.common.protocol.jupyter_messages import Content
from jupyter_dist_server.notebook.cells.cell_wait import evidence_on
from jupyter_dist_server.verdicts.explain_hang import explain_hang

from ..pool_driver import client_of, request, running, text_of
from ..waiting import PATIENCE

PATH = "/tmp/ipykernel_4711/1234.py"
"""What the editor calls the cell; there is no such file."""


class Session:
    """One client of the ranks' debuggers."""

    def __init__(self, client: PoolClient) -> None:
        self.events: asyncio.Queue[tuple[int, Content]] = asyncio.Queue()
        self.client = client
        self.connection = DebugConnection(
            client.folder, lambda rank, event: self.events.put_nowait((rank, event))
        )
        self.connection.open()
        self._numbers = itertools.count(1)
        self.cell: asyncio.Task[Any] | None = None
        self.shown: list[str] = []

    async def attach(self, *ranks: int) -> None:
        assert await self.connection.attach(ranks, PATIENCE) == {}

    async def ask(self, rank: int, command: str, **arguments: Any) -> Content:
        message = {
            "type": "request",
            "seq": next(self._numbers),
            "command": command,
            "arguments": arguments,
        }
        answers = await self.connection.debug(message, [rank], PATIENCE)
        said = answers[rank]
        assert said["success"], said
        body: Content = said.get("body") or {}
        return body

    async def until(self, kind: str) -> tuple[int, Content]:
        while True:
            rank, event = await asyncio.wait_for(self.events.get(), PATIENCE)
            if event["event"] == kind:
                return rank, event.get("body") or {}

    def run(self, code: str, source: str | None = PATH, ranks: tuple[int, ...] = (0,)) -> None:
        def on_output(_: int, kind: str, content: Content) -> None:
            if kind == "stream":
                self.shown.append(content["text"])

        work = self.client.execute(code, ranks, on_output, execution_count=7, source=source)
        self.cell = asyncio.ensure_future(work)

    async def ended(self) -> list[str]:
        assert self.cell
        replies = await asyncio.wait_for(self.cell, PATIENCE)
        return [reply.status for reply in replies.values()]

    async def break_at(self, *lines: int, rank: int = 0, path: str = PATH, **more: Any) -> None:
        points = [{"line": line} | more for line in lines]
        await self.ask(rank, "setBreakpoints", source={"path": path}, breakpoints=points)

    async def top(self, rank: int = 0) -> tuple[int, list[Content]]:
        """Return the stopped thread, and its frames."""
        thread = (await self.until("stopped"))[1]["threadId"]
        frames = (await self.ask(rank, "stackTrace", threadId=thread))["stackFrames"]
        return thread, frames

    async def variables(self, frame: int, rank: int = 0) -> dict[str, str]:
        scopes = (await self.ask(rank, "scopes", frameId=frame))["scopes"]
        reference = scopes[0]["variablesReference"]
        found = (await self.ask(rank, "variables", variablesReference=reference))["variables"]
        return {one["name"]: one["value"] for one in found}


@contextlib.asynccontextmanager
async def session(tmp_path: Path, ranks: int = 1) -> AsyncIterator[Session]:
    async with running(request(tmp_path, num_ranks=ranks)) as pool, client_of(pool) as client:
        one = Session(client)
        await one.attach(*range(ranks))
        yield one
        await one.connection.close()


CELL = """
def f(x):
    y = x + 1
    return y

for i in range(3):
    t = torch.ones(2, 3) * f(i)
print('end', t.sum().item())
"""


async def test_a_breakpoint_stops_and_shows_the_variables(tmp_path: Path) -> None:
    async with session(tmp_path) as one:
        await one.break_at(4)
        one.run(CELL)
        thread, frames = await one.top()
        assert [frame["line"] for frame in frames] == [4, 7] and frames[0]["name"] == "f"
        assert {frame["source"]["path"] for frame in frames} == {PATH}
        assert (await one.variables(frames[0]["id"]))["y"] == "1"
        await one.ask(0, "setExpression", expression="y", value="10", frameId=frames[0]["id"])
        await one.ask(0, "stepOut", threadId=thread)
        _, frames = await one.top()
        assert [frame["line"] for frame in frames] == [7]
        await one.ask(0, "next", threadId=thread)
        assert (await one.top())[1][0]["line"] == 6
        await one.ask(0, "continue", threadId=thread)
        _, frames = await one.top()
        shown = await one.variables(frames[1]["id"])
        assert shown["t"] == "Tensor 2 × 3 float32 on cpu [10, 10, 10, 10, 10, 10]"
        assert "_i" not in shown and "In" not in shown
        told = await one.ask(0, "richInspectVariables", variableName="t", frameId=frames[1]["id"])
        assert told["data"]["text/plain"].startswith("tensor([[10.")
        await one.ask(
            0,
            "copyToGlobals",
            srcVariableName="x",
            dstVariableName="copied",
            srcFrameId=frames[0]["id"],
        )
        await one.break_at()
        await one.ask(0, "continue", threadId=thread)
        assert await one.ended() == ["ok"]
        assert "".join(one.shown) == "end 18.0\n"
        assert await text_of(one.client, "print(copied)") == "1\n"


async def test_conditions_exceptions_and_breakpoint_stop(tmp_path: Path) -> None:
    async with session(tmp_path) as one:
        await one.break_at(4, condition="x == 2")
        one.run(CELL)
        thread, frames = await one.top()
        assert (await one.variables(frames[0]["id"]))["x"] == "2"
        await one.ask(0, "continue", threadId=thread)
        assert await one.ended() == ["ok"]
        one.run("def g():\n    z = 5\n    breakpoint()\n    return z\ng()")
        thread, frames = await one.top()
        assert frames[0]["name"] == "g" and (await one.variables(frames[0]["id"]))["z"] == "5"
        await one.ask(0, "continue", threadId=thread)
        assert await one.ended() == ["ok"]
        await one.ask(0, "setExceptionBreakpoints", filters=["raised"])
        one.run("def h(a):\n    return 1 / a\ntry:\n    h(0)\nexcept ZeroDivisionError: pass")
        thread, frames = await one.top()
        assert frames[0]["name"] == "h" and frames[0]["line"] == 2
        told = await one.ask(0, "exceptionInfo", threadId=thread)
        assert told["exceptionId"] == "ZeroDivisionError"
        await one.ask(0, "setExceptionBreakpoints", filters=[])
        await one.ask(0, "continue", threadId=thread)
        assert await one.ended() == ["ok"]


async def test_a_cell_that_hangs_is_paused_and_changed(tmp_path: Path) -> None:
    async with running(request(tmp_path, num_ranks=1)) as pool, client_of(pool) as client:
        one = Session(client)
        one.run("stop = []\nwhile not stop:\n    n = 1\nprint('left')", source=None)
        await asyncio.wait_for(_until_busy(client), PATIENCE)
        await one.attach(0)  # from the control channel, while the cell runs
        (main,) = (await one.ask(0, "threads"))["threads"]
        await one.ask(0, "pause", threadId=main["id"])
        thread, frames = await one.top()
        assert frames[0]["line"] in (2, 3)
        done = {"expression": "stop.append(1)", "context": "repl"}
        await one.ask(0, "evaluate", frameId=frames[0]["id"], **done)
        await one.ask(0, "continue", threadId=thread)
        assert await one.ended() == ["ok"]
        assert "".join(one.shown) == "left\n"
        await one.connection.close()


async def test_stop_works_at_a_breakpoint_and_the_next_cell_stops_again(tmp_path: Path) -> None:
    async with session(tmp_path) as one:
        await one.break_at(4)
        for _ in range(2):
            one.run(CELL)
            await one.top()
            said = (await one.client.status(PATIENCE))[0].whereabouts
            assert said.debugged and said.line == 4
            await one.client.stop_all()
            assert await one.ended() == ["error"]
            await one.until("continued")
        assert not (await one.client.status(PATIENCE))[0].whereabouts.debugged


async def test_the_verdict_names_the_line_where_a_rank_is_stopped(tmp_path: Path) -> None:
    async with session(tmp_path, 2) as one:
        code = "if rank == 1:\n    breakpoint()\n    x = 1\ndist.all_reduce(torch.ones(2))"
        one.run(code, ranks=(0, 1))
        rank, stopped = await one.until("stopped")
        assert rank == 1

        async def waits() -> None:
            while "all_reduce" not in str((await one.client.status(PATIENCE))[0].whereabouts):
                await asyncio.sleep(0.01)

        await asyncio.wait_for(waits(), PATIENCE)
        verdict = explain_hang(await evidence_on(one.client))
        assert verdict
        assert verdict.sentence.startswith("Rank 0 waits in all_reduce #")
        assert verdict.sentence.endswith(" Rank 1 is stopped at a breakpoint, In[7] line 3.")
        assert verdict.hint == "Continue in the debugger." and verdict.stuck
        await one.ask(1, "continue", threadId=stopped["threadId"])
        assert await one.ended() == ["ok", "ok"]


TRACED = """
import sys, threading
monitoring = getattr(sys, 'monitoring', None)
print(sys.gettrace(), monitoring and monitoring.get_tool(monitoring.DEBUGGER_ID), end=' ')
print([t.name for t in threading.enumerate() if 'pydevd' in t.name.lower()], end=' ')
print(sys.breakpointhook is sys.__breakpointhook__)
"""
UNTRACED = "None None [] True\n"


async def test_detaching_ends_tracing_also_of_a_cell_that_is_stopped(tmp_path: Path) -> None:
    async with session(tmp_path) as one:
        for _ in range(2):  # it can be switched on again
            await one.break_at(4)
            one.run(CELL)
            await one.top()
            await one.connection.detach([0], PATIENCE)
            assert await one.ended() == ["ok"]
            assert await text_of(one.client, TRACED) == UNTRACED
            await one.attach(0)
        assert await text_of(one.client, TRACED) != UNTRACED


async def test_forked_workers_do_not_wait_for_a_debugger(tmp_path: Path) -> None:
    loader = """
import os, torch
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, place):
        here = os.getpid()
        return place
loader = torch.utils.data.DataLoader(Data(), num_workers=2, multiprocessing_context='fork')
print([int(item) for item in loader])
"""
    async with session(tmp_path) as one:
        await one.break_at(7)
        one.run(loader)
        assert await one.ended() == ["ok"]
        assert "".join(one.shown) == "[0, 1, 2, 3]\n"


async def test_the_output_of_a_stopped_rank_and_its_threads_go_on(tmp_path: Path) -> None:
    async with session(tmp_path) as one:
        await one.break_at(2)
        one.run("print('before')\nx = 1")
        thread, _ = await one.top()
        await asyncio.wait_for(_until(lambda: "before" in "".join(one.shown)), PATIENCE)
        assert (await one.client.status(PATIENCE))[0].state == "busy"
        await one.ask(0, "continue", threadId=thread)
        assert await one.ended() == ["ok"]


async def test_a_second_client_takes_over(tmp_path: Path) -> None:
    async with session(tmp_path) as one, client_of_same(one) as other:
        await one.break_at(4)
        one.run(CELL)
        await one.top()
        await other.attach(0)
        await one.until("terminated")
        assert await one.ended() == ["ok"], "the breakpoints of the first one are gone"


async def test_off_it_imports_nothing_and_traces_nothing(tmp_path: Path) -> None:
    look = "import sys\nprint([m for m in sys.modules if 'rank.debugging.pydevd' in m])"
    async with running(request(tmp_path, num_ranks=1)) as pool, client_of(pool) as client:
        assert await text_of(client, look) == "[]\n"
        assert await text_of(client, TRACED) == UNTRACED


async def test_on_it_has_no_port_and_no_process_of_its_own(tmp_path: Path) -> None:
    look = """
import psutil
this = psutil.Process()
connections = getattr(this, "net_connections", None) or this.connections
print([one for one in connections(kind="tcp") if one.status == "LISTEN"], this.children())
"""
    async with running(request(tmp_path, num_ranks=1)) as pool, client_of(pool) as client:
        before = await text_of(client, look)
        one = Session(client)
        await one.attach(0)
        assert await text_of(client, TRACED) != UNTRACED
        assert await text_of(client, look) == before
        await one.connection.close()


def test_pydevd_has_the_names_that_are_used() -> None:
    look = """
import os
os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
import debugpy.server.api, pydevd
pydevd.start_client, pydevd.settrace, pydevd.stoptrace, pydevd.get_global_debugger
pydevd.PyDB.enable_tracing, pydevd.PyDB.do_wait_suspend
from _pydevd_bundle.pydevd_constants import GlobalDebuggerHolder
from _pydevd_bundle.pydevd_extension_api import StrPresentationProvider
from _pydevd_bundle.pydevd_extension_utils import extensions_of_type
from pydevd_tracing import restore_sys_set_trace_func
from _pydevd_sys_monitoring import pydevd_sys_monitoring
"""
    subprocess.run([sys.executable, "-c", look], check=True)


@contextlib.asynccontextmanager
async def client_of_same(one: Session) -> AsyncIterator[Session]:
    other = Session(one.client)
    yield other
    await other.connection.close()


async def _until_busy(client: PoolClient) -> None:
    while (await client.status(PATIENCE))[0].state != "busy":
        await asyncio.sleep(0.01)


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)
