"""What is said of a rank, or of what it wrote, when something happens while it is asked."""

from __future__ import annotations

import gc
import os
import re
import socket
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from zmq.utils.garbage import GarbageCollector

from jupyter_dist_server.agent.ranks.rank_log import RankLogs
from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.patience import patience
from jupyter_dist_server.common.pool_folder import AGENT_SOCKET, create_folder, log_tail
from jupyter_dist_server.common.protocol.pool_record import PoolRecord, PoolState, RankRecord
from jupyter_dist_server.common.protocol.ranks.rank_messages import StackReply
from jupyter_dist_server.pools import stack_and_log
from jupyter_dist_server.rank.waits.stacks import stacks


@pytest.fixture
def record() -> Iterator[PoolRecord]:
    """Return a pool of one rank that runs."""
    folder = create_folder()
    rank = RankRecord(0, 0, "cpu", None, pid=os.getpid(), state="idle")
    given = {"kernel_id": None, "name": "", "backend": "gloo", "placement": "cycle"}
    rest = {"start_method": "fork", "python": "", "cwd": "", "state": PoolState.RUNNING}
    yield PoolRecord("p-1", world_size=1, folder=str(folder), ranks=[rank], **given, **rest)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def answers(monkeypatch: pytest.MonkeyPatch, *during: Any) -> None:
    """Let what happens while a rank is asked happen; what it returns is the rank's answer."""
    left = list(during)

    async def ask(*_: Any) -> Any:
        return left.pop(0)()

    monkeypatch.setattr(stack_and_log, "_ask_for_stack", ask)


async def test_a_rank_that_was_replaced_while_it_was_asked_is_asked_again(
    record: PoolRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace() -> None:
        record.ranks[0].pid = 1

    answers(monkeypatch, replace, lambda: StackReply("of the new one"))
    assert await stack_and_log.stack_of(record, 0) == "of the new one"


async def test_a_pool_that_ends_while_a_rank_is_asked_is_not_said_to_be_stuck(
    record: PoolRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end() -> None:
        record.state = PoolState.COMPLETED

    def lose_folder() -> None:
        raise FileNotFoundError

    for happens in (lose_folder, end):
        answers(monkeypatch, happens)
        with pytest.raises(DistError, match="The pool has ended") as caught:
            await stack_and_log.stack_of(record, 0)
        assert caught.value.code == "pool_not_running"


async def test_of_a_silent_rank_on_another_node_its_node_is_said(
    record: PoolRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    record.ranks[0].node = "n2"
    answers(monkeypatch, lambda: None)
    with pytest.raises(DistError) as caught:
        await stack_and_log.stack_of(record, 0)
    assert f"on node n2 (pid {os.getpid()} there) does not respond" in caught.value.message
    assert "on that node" in caught.value.hint


async def test_the_log_of_a_rank_whose_agent_still_imports_torch(
    record: PoolRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "factor", 0.01)
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(Path(record.folder, AGENT_SOCKET)))
        agent.listen()  # and never answers
        for state, code in (("starting", "pool_not_running"), ("idle", "agent_silent")):
            record.ranks[0].state = state
            with pytest.raises(DistError) as caught:
                await stack_and_log.log_of(record, 0)
            assert caught.value.code == code


def test_what_was_written_to_stderr_is_told_after_it_was_emptied(tmp_path: Path) -> None:
    path = tmp_path / "stderr"
    path.write_text("a warning of the start\n")
    logs = RankLogs(tmp_path)
    descriptors = [os.open(path, os.O_RDONLY), os.open(os.devnull, os.O_RDONLY)]
    logs.keep(0, descriptors)
    assert logs.lines(0) == []
    path.write_text("short\n")
    assert logs.lines(0) == ["short"]
    logs.keep(0, [])


def test_of_a_long_log_only_the_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rank-0.log"
    path.write_text("x" * 3_000_000 + "\nlast\n")
    first, last = log_tail(path)
    assert (len(first), last) == ((1 << 16) - 6, "last")
    assert log_tail(tmp_path / "none") == []


def test_stacks_in_cpp_do_not_hide_what_went_wrong(tmp_path: Path) -> None:
    path = tmp_path / "rank-0.log"
    frames = "".join(f"frame #{n}: <unknown function> + 0x163c447 (0x7)\n" for n in range(30))
    stack = f"Exception raised from throwTimeoutError at:1 (most recent call first):\n{frames}"
    path.write_text(f"The client socket failed\n{stack}<omitting python frames>\n{frames}\nlast")
    assert log_tail(path) == ["The client socket failed", "last"]


class Kept:
    """Something that a function has, a tensor for example."""


class Deep:
    """A thread that waits deep down in calls."""

    def __init__(self) -> None:
        self.reached, self.go = threading.Event(), threading.Event()
        self.kept: weakref.ref[Kept] | None = None
        self._thread = threading.Thread(target=self._even, args=[200])
        self._thread.start()
        self.reached.wait()

    def _even(self, depth: int) -> None:
        if depth:
            self._odd(depth - 1)
            return
        kept = Kept()
        self.kept = weakref.ref(kept)
        self.reached.set()
        self.go.wait()

    def _odd(self, depth: int) -> None:
        self._even(depth - 1)

    def end(self) -> None:
        """Let it return from all of them."""
        self.go.set()
        self._thread.join()


@pytest.fixture
def deep() -> Iterator[Deep]:
    """Return such a thread."""
    deep = Deep()
    yield deep
    deep.end()


def told_elsewhere() -> str:
    """Return the stacks as the control thread tells them."""
    with ThreadPoolExecutor(1) as control:
        return control.submit(stacks, busy=True).result()


def test_a_deep_stack_is_told_by_its_ends(deep: Deep) -> None:
    parts = told_elsewhere().split("\n\n")
    mine = next(part for part in parts if "in _even" in part).splitlines()
    (note,) = [place for place, line in enumerate(mine) if "omitted" in line]
    assert re.fullmatch("  … [0-9]{3} frames omitted …", mine[note])
    assert "in _even" in mine[1] and "in wait" in mine[-2]
    assert (note - 1, len(mine) - note - 1) == (2 * 20, 2 * 80)


def test_the_thread_that_frees_what_zmq_has_sent_is_the_ranks_own() -> None:
    garbage = GarbageCollector()
    garbage.start()
    assert garbage.thread
    name = garbage.thread.name
    try:
        told, _, left_out = told_elsewhere().partition("Omitted: ")
    finally:
        garbage.stop()
    assert "garbage" not in told
    assert name in left_out


def test_nothing_that_a_stack_has_seen_is_kept(deep: Deep) -> None:
    """A function's tensors are freed when it returns, though its frame was looked at."""
    gc.disable()
    try:
        assert "in _even" in told_elsewhere()
        deep.end()
        assert deep.kept and deep.kept() is None
    finally:
        gc.enable()
