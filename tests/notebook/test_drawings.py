"""Several lines that are drawn again and again, as by rich's progress bars."""

from __future__ import annotations

import pytest

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
    assert screen(f"a\nb\nc{ERASE}{UP}{UP}z") == ("z", True)


def test_what_is_printed_above_a_drawing_does_not_wait_for_its_end() -> None:
    text, lines = f"{BEGIN}a\nb", []
    for step in range(1000):
        *ended, text = split_lines(f"{text}{ERASE}{UP}step {step}\na\nb")
        lines += ended
    assert text.count("\n") < 400 and len(lines) > 500
    *ended, rest = split_lines(f"{text}\n{END}")
    assert lines + ended == [*(f"step {step}" for step in range(1000)), "a", "b"] and not rest


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
