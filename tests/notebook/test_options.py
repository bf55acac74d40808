"""How a distributed cell can be shown, kept, limited; and outputs that are large or late."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..notebook_driver import Notebook
from ..waiting import PATIENCE

SERVED_ONLY = True
"""The server has no part in it, but has imported torch for an earlier notebook."""


def test_per_rank_shows_one_rank_after_the_other(ranks: Notebook) -> None:
    code = "%%distributed --per-rank\nprint('same')\nprint('mine', rank)\nrank * 2"
    lines = ["Rank 0", "same", "mine 0", "0", "Rank 1", "same", "mine 1", "2"]
    assert ranks.ok(code).lines == lines
    error = ranks.fails("%%distributed --per-rank\nif rank: raise ValueError('no')")
    assert "Rank 1 failed with ValueError: no. Rank 0 finished" in error


def test_per_rank_puts_a_result_below_a_line_without_end(ranks: Notebook) -> None:
    code = "%%distributed --per-rank\nprint('no end', end='')\nrank"
    assert ranks.ok(code).lines == ["Rank 0", "no end", "0", "Rank 1", "no end", "1"]


@pytest.mark.parametrize("option", ["", "--per-rank", "--quiet"])
def test_text_that_is_a_list_of_lines_is_shown(ranks: Notebook, option: str) -> None:
    code = f"%%distributed {option}\ndisplay({{'text/plain': ['a\\n', 'b']}}, raw=True)"
    shown = [text for text in ranks.ok(code).mime("text/plain") if isinstance(text, list)]
    times = {"": 1, "--per-rank": 2, "--quiet": 0}
    assert shown == [["a\n", "b"]] * times[option]


def test_per_rank_streams_the_first_rank_while_it_runs(ranks: Notebook, tmp_path: Path) -> None:
    wait = f"while not os.path.exists({str(tmp_path / 'seen')!r}): time.sleep(0.01)"
    code = f"%%distributed --per-rank\nimport os, time\nprint('early')\n{wait}\nprint('late')"
    seen = ranks.ok(code, until=lambda r: "early" in r.text, act=(tmp_path / "seen").touch)
    assert seen.lines == ["Rank 0", "early", "late", "Rank 1", "early", "late"]


def test_quiet_shows_errors_alone(ranks: Notebook) -> None:
    assert ranks.ok("%%distributed --quiet\nprint('x')\nrank").outputs == []
    assert "ZeroDivisionError" in ranks.fails("%%distributed -q\nprint('x')\n1 / 0")


def test_results_are_kept_in_a_variable(ranks: Notebook) -> None:
    code = """%%distributed -q -o res
import sys
print('out', rank)
print('err', rank, file=sys.stderr)
torch.ones(2) * rank
"""
    ranks.ok(code)
    assert ranks.ok("[r.stdout + r.stderr for r in res.values()]").mime("text/plain") == [
        "['out 0\\nerr 0\\n', 'out 1\\nerr 1\\n']"
    ]
    values = ranks.ok("[r.value.tolist() for r in res.values()]").mime("text/plain")
    assert values == ["[[0.0, 0.0], [1.0, 1.0]]"]
    ranks.fails("%%distributed -o res\nif rank: 1 / 0")
    assert ranks.ok("[(r.status, r.error, r.value) for r in res.values()]").mime("text/plain") == [
        "[('ok', '', None), ('error', 'ZeroDivisionError: division by zero', None)]"
    ]
    kept = ranks.ok("%%distributed -o res\nimport threading\nthreading.Lock()")
    assert "The value of rank 0 could not be copied" in kept.stream("stderr")


def test_results_are_the_cells_though_underscore_is_a_variable(ranks: Notebook) -> None:
    ranks.ok("%%distributed -o res\nfor _ in range(3): pass\nrank * 100")
    assert ranks.ok("[r.value for r in res.values()]").mime("text/plain") == ["[0, 100]"]
    ranks.ok("%%distributed -o res\nrank * 10")
    assert ranks.ok("[r.value for r in res.values()]").mime("text/plain") == ["[0, 10]"]
    kept = ranks.ok("%%distributed -o res\nimport threading\nthreading.Lock()")
    assert "could not be copied: `_` of rank 0 cannot be sent" in kept.stream("stderr")
    ranks.ok("%%distributed\ndel _")


def test_of_a_cell_that_shows_nothing_each_rank_is_ok(ranks: Notebook) -> None:
    ranks.ok("%%distributed -o res\nx = 1")
    assert ranks.ok("[r.status for r in res.values()]").mime("text/plain") == ["['ok', 'ok']"]


def test_ranks_can_be_chosen_by_an_option(ranks: Notebook) -> None:
    assert ranks.ok("%%distributed --ranks 1\nprint('r', rank)").lines == ["[1]   r 1"]
    assert ranks.refused("%%distributed --ranks 5\n1") == "unknown_rank"
    error = ranks.fails("%%rank [0,1] -o v\n1")
    assert error.startswith("%%rank has no option “-o v”; use %%distributed --ranks.")
    assert "“[0,1] x” is not a valid choice of ranks." in ranks.fails("%%rank [0,1] x\n1")


def test_a_cell_is_stopped_at_its_time_limit(ranks: Notebook) -> None:
    ranks.ok("%%distributed\nkept = 7")
    result = ranks.run("%%distributed --timeout 10\nimport time\nif rank: time.sleep(600)")
    assert "Timed out after 10 s: rank 1 was in Python code" in result.error
    assert "KeyboardInterrupt" not in result.error.splitlines()[-1]
    assert ranks.ok("%%distributed --timeout 60\nkept").lines == ["[0-1] 7"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--timeout 0", "--timeout must be a positive number of seconds, not “0”."),
        ("-o 1x", "-o must be a variable name, not “1x”."),
        ("--nonsense", "%%distributed has no option “--nonsense”.\nSee %%distributed?"),
        ("--gpus 2", "%%distributed has no option “--gpus 2”.\nSee %%distributed?"),
        ("--timout 2", "“--timout 2”.\nDid you mean --timeout? See %%distributed?"),
    ],
)
def test_bad_options_are_said(ranks: Notebook, options: str, message: str) -> None:
    error = ranks.fails(f"%%distributed {options}\n1")
    assert message in error and len(error.splitlines()) <= 2


def test_text_of_ranks_that_are_late_joins_its_twin(ranks: Notebook, tmp_path: Path) -> None:
    code = f"""%%distributed
import os, time
while rank and not os.path.exists({str(tmp_path / "seen")!r}):
    time.sleep(0.01)
print('loaded')
print('mine', rank)
"""
    alone = "[0]   loaded\n[0]   mine 0\n"
    result = ranks.ok(code, until=lambda r: alone in r.text, act=(tmp_path / "seen").touch)
    assert result.lines == ["[0-1] loaded", "[0]   mine 0", "[1]   mine 1"]


def test_warnings_of_ranks_that_are_late_join_on_stderr(ranks: Notebook) -> None:
    code = "%%distributed\nimport sys, time\ntime.sleep(rank * 0.3)\nprint('w', file=sys.stderr)"
    result = ranks.ok(code)
    assert result.stream("stderr") == "[0-1] w\n" and result.text == ""


def test_stdout_and_stderr_keep_their_order(ranks: Notebook) -> None:
    code = """%%rank 0
import os, sys
for i in range(3):
    print('out', i)
    print('err', i, file=sys.stderr)
    os.write(1, b'c\\n')
"""
    assert re.findall(r"(out|err|c)(?: \d)?\n", ranks.ok(code).shown) == ["out", "err", "c"] * 3


def test_what_a_thread_prints_later_belongs_to_the_cell_that_started_it(ranks: Notebook) -> None:
    code = """%%distributed
import threading
go, gone = threading.Event(), threading.Event()
def late():
    go.wait()
    print('late', rank)
    gone.set()
threading.Thread(target=late).start()
"""
    started = ranks.send(code)
    ranks.follow(started)
    other = ranks.send("%%distributed\ngo.set()\ngone.wait()\nprint('other')")
    late = ""
    while late.count("\n") < 2:
        message = ranks.client.get_iopub_msg(timeout=PATIENCE)
        text = message["content"].get("text", "")
        if message["parent_header"]["msg_id"] == started:
            late += text
        else:
            assert "late" not in text and message["parent_header"]["msg_id"] == other
    assert sorted(late.splitlines()) == ["[0] late 0", "[1] late 1"]
    ranks.follow(other)


def test_help_of_an_object_on_the_ranks_is_shown(ranks: Notebook) -> None:
    shown = ranks.ok("%%distributed\ntorch.ones?").shown
    assert shown.startswith("[0-1]") and "Returns a tensor filled with the scalar value" in shown


@pytest.fixture
def cut_file() -> Iterator[list[Path]]:
    """Return a list for the files of cut outputs, which are removed after the test."""
    files: list[Path] = []
    yield files
    for file in files:
        file.unlink()


def test_an_output_without_end_is_cut_in_the_middle(ranks: Notebook, cut_file: list[Path]) -> None:
    ranks.ok("%config CellMagics.output_limit = 1_000_000")
    code = "%%rank 1\nline = 'x' * 99\nfor i in range(50_000):\n    print(i, line)"
    result = ranks.ok(code)
    ranks.ok("%config CellMagics.output_limit = 10_000_000")
    assert len(result.text) < 1_010_000
    begun, said = re.search(r"… the output is cut here and continues in (.+)", result.text), ""
    assert begun
    cut_file.append(Path(begun[1]))
    said = next(line for line in result.lines if "characters were cut" in line)
    assert str(cut_file[0]) in said
    assert result.lines[-1].endswith("49999 " + "x" * 99), "the end is shown"
    held = cut_file[0].read_text().splitlines()
    assert [int(line.split()[0]) for line in held] == list(range(50_000)), "the file holds it all"
    cut = int(re.search(r"… ([\d,]+) characters were cut", said)[1].replace(",", ""))  # type: ignore[index]
    whole = cut_file[0].stat().st_size
    assert whole - cut < 1_010_000


def test_a_large_result_is_cut_as_what_is_printed(ranks: Notebook, cut_file: list[Path]) -> None:
    code = "%%rank 1\nprint('y' * 4_000_000)\n'x' * 30_000_000"
    result = ranks.ok(code)
    begun = re.search(r"… the output is cut here and continues in (.+)", result.text)
    assert begun and len(result.text) < 10_010_000
    cut_file.append(Path(begun[1]))
    held = cut_file[0].read_text()
    assert [held.count(letter * 1_000_000) for letter in "yx"] == [4, 30]
    assert result.lines[-1].endswith("x'"), "the end is shown"


def test_a_line_of_a_megabyte_arrives_whole(ranks: Notebook) -> None:
    result = ranks.ok("%%distributed\nprint(str(rank) * 1_000_000)\nprint('done')")
    assert [line for line in result.lines if "done" in line] == ["[0-1] done"]
    assert [result.text.count(str(rank) * 1_000_000) for rank in (0, 1)] == [1, 1]


def test_a_hundred_megabytes_are_bounded_and_kept(ranks: Notebook, cut_file: list[Path]) -> None:
    """Two ranks print 50 MB each; the notebook gets its limit of each, two files hold the rest."""
    result = ranks.ok("%%distributed\nfor i in range(500):\n    print(i, str(rank) * 99_990)")
    cut_file += map(
        Path, re.findall(r"… the output is cut here and continues in (.+)", result.text)
    )
    assert len(cut_file) == 2
    assert len(result.text) < 2 * 10_010_000
    for path in cut_file:
        held = path.read_text().splitlines()
        assert [int(line.split()[0]) for line in held] == list(range(500))
        assert {len(line.split()[1]) for line in held} == {99_990}
