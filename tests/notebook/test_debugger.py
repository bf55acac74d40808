"""Debugging on ranks: it stops, shows the source and asks, as in IPython."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..notebook_driver import Notebook

SERVED_ONLY = True
"""The server has no part in it, but has imported torch for an earlier notebook."""

PROGRAM = "def f(x):\n    y = x + 1\n    {stop}\n    return y\n\nprint('gives', f(rank))\n"


@pytest.mark.parametrize("stop", ["breakpoint()", "import pdb; pdb.set_trace()"])
def test_a_breakpoint_stops_one_rank_and_shows_the_line(ranks: Notebook, stop: str) -> None:
    source = "----> 5     return y"
    result = ranks.ok(
        "%%rank 1\n" + PROGRAM.format(stop=stop),
        answers=[(source, "p 'y is', y"), ("('y is', 2)", "y = 40"), "c"],
    )
    assert result.prompts == ["[1] ipdb> "] * 3
    assert f"    {stop}" in result.text
    assert result.lines[-1] == "[1]   gives 40"


def test_a_breakpoint_in_a_script_stops_every_rank(ranks: Notebook, tmp_path: Path) -> None:
    script = tmp_path / "stops.py"
    script.write_text(PROGRAM.format(stop="breakpoint()").replace("rank", "7"))
    source = f"> {script}(4)f()"  # of the rank that asks: the other one may not be there yet
    answers = [(source, "p y"), "p y", "c", "c"]  # whoever is late has only "c"
    result = ranks.ok(f"%%distributed\n%run {script}", answers=answers)
    assert len(result.prompts) == 4 and set(result.prompts) == {"[0] ipdb> ", "[1] ipdb> "}
    assert all(lines[-1] == "gives 8" for lines in result.lines_by_rank.values())
    assert "8" in result.lines_by_rank[int(result.prompts[0][1])]


def test_stop_at_the_prompt_ends_the_debugger_and_fails_the_cell(ranks: Notebook) -> None:
    result = ranks.run(
        "%%distributed\n" + PROGRAM.format(stop="breakpoint()"),
        until=lambda r: "return y" in r.text,
        act=ranks.interrupt,
    )
    assert result.status == "error"
    assert "Interrupted" in result.error
    assert ranks.ok("%%distributed\nrank").lines == ["[0]   0", "[1]   1"]


def test_debug_and_pdb_look_into_the_cell_that_failed(ranks: Notebook) -> None:
    ranks.fails("%%rank 0\ndef g(a):\n    return a / 0\n\ng(2)")
    source = "----> 3     return a / 0"
    result = ranks.ok("%%rank 0\n%debug", answers=[(source, "p a * 100"), ("200", "q")])
    assert result.prompts == ["[0] ipdb> "] * 2
    ranks.ok("%%rank 0\n%pdb on")
    answers = [("ZeroDivisionError: division by zero\n", "p a * 100"), ("300", "q")]
    result = ranks.run("%%rank 0\ng(3)", answers=answers)
    ranks.ok("%%rank 0\n%pdb off")
    assert result.status == "error"
    assert result.shown.count("Traceback (most recent call last)") == 1, "shown twice"
    assert "Rank 0 failed with ZeroDivisionError: division by zero." in result.error


def test_what_was_printed_is_visible_while_a_prompt_waits(ranks: Notebook) -> None:
    loop = "for i in range(5):\n    print('before', i)\n    input('next? ')"
    answers = [(f"before {i}", "") for i in range(5)]
    assert ranks.ok(f"%%rank 0\n{loop}", answers=answers).prompts == ["[0] next? "] * 5
    # On a busy machine, one rank may ask again before the other has printed.
    answers = [(f"before {i // 2}\n", "") for i in range(10)]
    result = ranks.ok(f"%%distributed\n{loop}", answers=answers)
    for i in range(5):
        alone = {f"[{rank}]   before {i}" for rank in (0, 1)}
        assert f"[0-1] before {i}" in result.lines or alone <= set(result.lines), result.lines


def test_an_unfinished_line_and_c_code_are_visible_too(ranks: Notebook) -> None:
    code = (
        "import ctypes\n_ = ctypes.CDLL(None).puts(b'from C')\nprint('unfinished', end='')\ninput()"
    )
    result = ranks.run(f"%%rank 0\n{code}", answers=[("unfinished", "")])
    assert "from C" in result.text


def test_rank_after_rank_shows_what_was_printed_before_a_prompt(ranks: Notebook) -> None:
    code = "%%distributed --per-rank\nprint('of', rank)\nprint(input())"
    result = ranks.ok(code, answers=[("of 0", "a"), ("of 1", "b")])
    for rank in (0, 1):  # either may ask first
        assert result.lines[result.lines.index(f"Rank {rank}") + 1] == f"of {rank}"
