"""Several lines that are drawn again and again, as by rich's progress bars."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any

import pytest
from tqdm import tqdm

from jupyter_dist_server.notebook.output.merged.unfinished_lines import (
    BEGIN,
    END,
    screen,
    split_lines,
)

from ..notebook_driver import Notebook
from ..result import ANSI
from .test_merge import Screen, merger, say

SERVED_ONLY = True
"""The server has no part in it, but has imported torch for an earlier notebook."""

ERASE, UP = "\r\x1b[2K", "\x1b[1A\x1b[2K"


def test_lines_that_are_drawn_again_are_shown_once() -> None:
    m, shown, now = merger(), Screen(), 0.0
    for rank in (0, 1):
        say(m, rank, f"before {rank}\n{BEGIN}{ERASE}train 0%", now)
    before = ["[0]   before 0", "[1]   before 1"]
    for step in range(1, 5):
        now += 1
        for rank in (0, 1):
            frame = f"{ERASE}{UP if step > 1 else ''}train {step}%\nval {step}%"
            for part in (frame[:7], frame[7:]):  # as messages happen to be cut
                say(m, rank, part, now)
        shown.show(m.take(now + 0.5))
        assert shown.lines == [*before, f"[0-1] train {step}%", f"[0-1] val {step}%"]
    for rank in (0, 1):
        say(m, rank, f"{ERASE}{UP}log {rank}\ntrain 5%\nval 5%\n{END}after\n", now + 1)
    shown.show(m.take(now + 1, last=True))
    ends = ["[0-1] train 5%", "[0-1] val 5%", "[0-1] after"]
    assert shown.lines == [*before, "[0]   log 0", "[1]   log 1", *ends]


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_drawing_that_its_program_does_not_end_is_kept(end: str) -> None:
    m, shown = merger(1), Screen()
    say(m, 0, f"{BEGIN}a 1\nb 1", 0.0)
    say(m, 0, f"{ERASE}{UP}a 2\nb 2{end}", 0.1)
    shown.show(m.take(1.0, last=True))
    assert shown.lines == ["[0] a 2", "[0] b 2"]


def test_a_drawing_at_once_is_lines() -> None:
    assert split_lines(f"x\n{BEGIN}a 1\nb 1{ERASE}{UP}a 2\nb 2\n{END}y") == ["x", "a 2", "b 2", "y"]
    assert screen(f"a\nb\nc{ERASE}{UP}{UP}z") == (["z"], 0)


def test_what_is_printed_above_a_drawing_does_not_wait_for_its_end() -> None:
    text, lines = f"{BEGIN}a\nb", []
    for step in range(1000):
        *ended, text = split_lines(f"{text}{ERASE}{UP}step {step}\na\nb")
        lines += ended
    assert text.count("\n") < 400 and len(lines) > 500
    *ended, rest = split_lines(f"{text}\n{END}")
    assert lines + ended == [*(f"step {step}" for step in range(1000)), "a", "b"] and not rest


class Stream:
    """What a program writes, piece by piece."""

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def write(self, text: str) -> None:
        self.pieces.append(text)

    def flush(self) -> None: ...


def nested_bars(leave: bool, log: bool) -> list[str]:
    stream: Any = Stream()
    options: dict[str, Any] = {"file": stream, "mininterval": 0, "ncols": 60}
    for epoch in tqdm(range(3), "epoch", **options):
        for _ in tqdm(range(4), "step", position=1, leave=leave, **options):
            pass
        if log:
            tqdm.write(f"epoch {epoch} done", file=stream)
    stream.write("after\n")
    return stream.pieces


@pytest.mark.parametrize("leave", [False, True])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("size", [3, 8, 1000])
def test_nested_bars_of_tqdm_stand_still(leave: bool, log: bool, size: int) -> None:
    m, shown, pieces = merger(1), Screen(), nested_bars(leave, log)
    for now in range(0, len(pieces), size):
        say(m, 0, "".join(pieces[now : now + size]), now, "stderr")
        shown.show(m.take(now + 0.9))
        unfinished = [line for line in shown.lines if "step" in line and "100%" not in line]
        assert len(unfinished) <= 1, shown.lines
    shown.show(m.take(len(pieces), last=True))
    words = [re.sub(r"\|.*", "", line).removeprefix("[0] ") for line in shown.lines]
    steps = ["step: 100%"] if leave else []
    epochs = [[*steps, f"epoch {epoch} done"] if log else steps for epoch in range(3)]
    assert words == [*chain.from_iterable(epochs), "epoch: 100%", "after"]


def test_a_bar_after_the_other_is_below_it() -> None:
    m, shown, now = merger(1), Screen(), 0.0
    for epoch in range(3):
        for step in (0, 50, 100):
            now += 1
            say(m, 0, f"\repoch {epoch}: {step}%", now)
            shown.show(m.take(now + 0.9))
        say(m, 0, "\n", now)
    say(m, 0, "done\n", now)
    shown.show(m.take(now + 1, last=True))
    assert shown.lines == [*(f"[0] epoch {epoch}: 100%" for epoch in range(3)), "[0] done"]


def test_nested_bars_of_tqdm_on_ranks(ranks: Notebook) -> None:
    code = """%%distributed
import time
from tqdm import trange
for epoch in trange(3, desc="epoch"):
    for step in trange(4, desc="step", position=1, leave=False):
        time.sleep(0.05)
print("after")
"""
    lines = ANSI.sub("", ranks.ok(code).shown).splitlines()
    bars = [line for line in lines if "epoch" in line]
    assert 1 <= len(bars) <= 2 and all("100%" in bar for bar in bars), lines
    assert not [line for line in lines if "step" in line] and "[0-1] after" in lines


def test_progress_of_rich_on_ranks(ranks: Notebook) -> None:
    code = """%%distributed
import time
from rich.progress import Progress
print("before")
with Progress() as progress:
    tasks = [progress.add_task(name, total=5) for name in ("train", "val")]
    for _ in range(5):
        time.sleep(0.1)
        for task in tasks:
            progress.advance(task)
print("after")
"""
    lines = ANSI.sub("", ranks.ok(code).shown).splitlines()
    for name in ("train", "val"):
        bars = [line for line in lines if name in line]
        assert 1 <= len(bars) <= 2 and all("100%" in bar for bar in bars), lines
    assert "[0-1] before" in lines and "[0-1] after" in lines
