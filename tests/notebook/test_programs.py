"""What a program does on ranks shows what it shows in IPython."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from ..notebook_driver import Notebook
from .places import stop_at

SERVED_ONLY = True
"""The server has no part in it, but has imported torch for an earlier notebook."""


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a script that fails."""
    script = tmp_path_factory.mktemp("scripts") / "failing.py"
    script.write_text("def f():\n    return 1 / 0\n\nprint('begins')\nf()\n")
    return script


def test_a_script_that_fails_is_shown_in_its_place_and_fails_the_cell(
    ranks: Notebook, failing: Path
) -> None:
    for options in (str(failing), f"-m {failing.stem}"):
        result = ranks.run(
            f"%%distributed\nimport sys; sys.path.append({str(failing.parent)!r})\n"
            f"%run {options}\nprint('goes on')"
        )
        assert result.status == "error", options
        shown = result.shown
        assert shown.index("begins") < shown.index("----> 2     return 1 / 0")
        assert shown.index("return 1 / 0") < shown.index("[0-1] goes on")
        assert shown.count("Traceback (most recent call last)") == 1, "shown twice"
        assert result.error == "Ranks 0-1 failed with ZeroDivisionError: division by zero."


def test_a_script_that_exits_with_a_status_fails_the_cell(ranks: Notebook, tmp_path: Path) -> None:
    script = tmp_path / "exits.py"
    script.write_text(
        "import sys\nif len(sys.argv) > 1:\n    sys.exit(3)\nexit()\nprint('not here')"
    )
    assert "not here" not in ranks.ok(f"%%distributed\n%run {script}").shown
    result = ranks.run(f"%%distributed\n%run {script} 3")
    assert result.status == "error"
    assert "use %tb to see the full traceback" in result.stream("stderr")
    assert "SystemExit: 3" in result.error


def test_errors_that_a_cell_only_shows_do_not_fail_it(ranks: Notebook) -> None:
    result = ranks.ok(
        "%%distributed\ntry:\n    [].pop()\nexcept IndexError:\n"
        "    get_ipython().showtraceback()\nprint('after')"
    )
    assert "IndexError: pop from empty list" in result.stream("stderr")
    assert result.lines == ["[0-1] after"]
    assert "IndexError: pop from empty list" in ranks.ok("%%distributed\n%tb").stream("stderr")
    display = "class A:\n    def __repr__(self):\n        raise OSError('no repr')\ndisplay(A())\n1"
    result = ranks.ok(f"%%distributed\n{display}")
    assert "OSError: no repr" in result.stream("stderr") and result.lines == ["[0-1] 1"]


def test_an_error_within_a_captured_cell_is_shown(ranks: Notebook) -> None:
    shown = ranks.run("%%distributed\n%%capture\nfail_here = 1 / 0").shown
    assert "----> 1 fail_here = 1 / 0" in shown
    assert shown.count("Traceback (most recent call last)") == 1


def test_one_rank_after_the_other_shows_such_errors_too(ranks: Notebook, failing: Path) -> None:
    result = ranks.run(f"%%distributed --per-rank\n%run {failing}")
    assert result.status == "error"
    assert result.stream("stderr").count("ZeroDivisionError: division by zero") == 2


def test_a_quiet_cell_shows_such_errors_at_its_end(ranks: Notebook, failing: Path) -> None:
    result = ranks.run(f"%%distributed --quiet\n%run {failing}\nprint('goes on')")
    assert "----> 2     return 1 / 0" in result.error and result.text == ""


def test_what_a_called_function_shows_is_shown(ranks: Notebook) -> None:
    result = ranks.ok(
        "def shows():\n    from IPython import get_ipython\n    try:\n        [].pop()\n"
        "    except IndexError:\n        get_ipython().showtraceback()\n    return 7\n"
        "from jupyter_dist_server import current_pool\n_ = current_pool().run(shows).result()"
    )
    assert "IndexError: pop from empty list" in result.stream("stderr")


def test_a_cell_whose_script_fails_stops_run_all_and_nbconvert(
    ranks: Notebook, failing: Path, tmp_path: Path
) -> None:
    assert ranks.stops_run_all(f"%run {failing}", tmp_path)


@pytest.mark.parametrize("code", ["exit()\nprint('not here')", "quit", "import sys; sys.exit()"])
def test_to_exit_ends_the_cell_and_not_the_rank(ranks: Notebook, code: str) -> None:
    ranks.ok("%%distributed\nimport os\npid = os.getpid()")
    shown = ranks.run(f"%%distributed\n{code}")
    assert shown.status == "error"
    assert "An exception has occurred, use %tb to see the full traceback." in shown.error
    assert "Ranks 0-1 failed with SystemExit." in shown.error
    assert "not here" not in shown.shown
    assert ranks.ok("%%distributed\npid == os.getpid()").lines == ["[0-1] True"]


def test_a_failing_repr_is_told_by_its_error(ranks: Notebook) -> None:
    code = "class A:\n    def __repr__(self):\n        raise ValueError('no repr')\nA()"
    error = ranks.fails(f"%%distributed\n{code}")
    assert "Ranks 0-1 failed with ValueError: no repr." in error


def test_programs_see_neither_our_arguments_nor_a_prompt(ranks: Notebook) -> None:
    code = "import sys\nprint(sys.argv, hasattr(sys, 'ps1'))"
    assert ranks.ok(f"%%distributed\n{code}").lines == ["[0-1] [''] False"]


def test_our_frames_are_not_in_tracebacks(ranks: Notebook) -> None:
    cell = "%%distributed\nprint('in')\nimport time\ntime.sleep(600)"
    result = stop_at(ranks, cell, {0: 4, 1: 4})
    assert "KeyboardInterrupt" in result.shown
    assert "jupyter_dist_server" not in result.shown
    # It fails where we have put something around it.
    result = ranks.run("%%distributed\ndist.new_group(backend='nonsense')")
    assert result.status == "error" and "_new_process_group_helper" in result.shown
    assert "jupyter_dist_server" not in result.shown


def test_many_pools_of_forked_workers_come_and_go(ranks: Notebook) -> None:
    code = """%%distributed
import atexit, multiprocessing, os, signal
context = multiprocessing.get_context("fork")
begun = os.getpid()
atexit.register(lambda: os.write(2, b"at exit\\n") if os.getpid() != begun else None)
for _ in range(20):
    with context.Pool(2) as pool:
        squares = pool.map(abs, range(4))
process = context.Process(target=signal.pause)
process.start()
process.terminate()
process.join()
print(squares, process.exitcode)
"""
    result = ranks.ok(code)
    assert result.lines == [f"[0-1] [0, 1, 2, 3] {-signal.SIGTERM}"]
    assert result.stream("stderr") == ""


def test_a_rank_ended_by_sigterm_says_so_and_shows_no_earlier_cells(ranks: Notebook) -> None:
    ranks.ok("%%distributed\nimport sys\nprint('of an earlier cell', file=sys.stderr)")
    error = ranks.fails(
        "%%rank 1\nimport os, signal, sys\nprint('of this cell', file=sys.stderr)\n"
        "os.kill(os.getpid(), signal.SIGTERM)"
    )
    assert "Rank 1 died: killed by signal 15 (SIGTERM)." in error
    assert "last lines of stderr:\nof this cell\n" in error
    assert "earlier" not in error
    ranks.ok("%dist_restart --ranks 1")


def test_modules_that_the_notebook_finds_are_found_by_the_ranks(
    no_pool: Notebook, tmp_path: Path
) -> None:
    (tmp_path / "only_here.py").write_text("found = 'found'")
    no_pool.ok(f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n%dist_init -n 1")
    code = "%%distributed\nimport sys, only_here\nprint(only_here.found, sys.path.count(''))"
    assert no_pool.ok(code).lines == ["[0] found 1"]
