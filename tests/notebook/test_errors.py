"""A cell that fails on a rank fails in the notebook, and says where and why."""

from __future__ import annotations

import os
import re
import signal
import threading
from contextlib import suppress
from pathlib import Path

import psutil

from ..environment import lives, named, tagged
from ..notebook_driver import Notebook
from ..waiting import wait_for
from .places import pid_of

SERVED_ONLY = True
"""The server has no part in it, but has imported torch for an earlier notebook."""


def test_traceback_has_line_and_source_and_names_ranks(ranks: Notebook) -> None:
    result = ranks.run("%%distributed\ndef f():\n    return 1 / 0\n\nf()")
    assert result.status == "error"
    assert "[0-1] failed:" in result.error
    assert "----> 3     return 1 / 0" in result.error
    assert "ZeroDivisionError: division by zero" in result.error
    count = next(m["content"] for m in result.messages if m["msg_type"] == "execute_input")
    assert f"Cell In[{count['execution_count']}]" in result.error
    assert "----> 5 f()" in result.error
    assert result.error.count("Traceback") == 1


def test_errors_have_colours_only_if_the_notebook_has(ranks: Notebook) -> None:
    caught = "try:\n    f()\nexcept Exception:\n    get_ipython().showtraceback()"
    shown = f"def f():\n    1 / 0\n{caught}"  # IPython 7 leaves out the first frame
    ranks.ok("usual = get_ipython().colors")
    for colours, has in (("nocolor", False), ("{usual}", True)):
        ranks.ok(f"%colors {colours}")
        result = ranks.run(f"%%distributed\n{shown}\n2 / 0")
        assert "1 / 0" in result.stream("stderr") and "2 / 0" in result.error
        text, error = result.outputs
        assert ("\x1b" in text["text"], "\x1b" in "".join(error["traceback"])) == (has, has)


def test_lines_are_counted_as_in_the_editor(ranks: Notebook) -> None:
    for above, below in (("", ""), ("# why\n\n", "\n\n")):
        cell = f"{above}%%rank 0\n{below}x = 1\nraise ValueError"
        line = cell.count("\n") + 1
        assert f"----> {line} raise ValueError" in ranks.fails(cell), cell
        code = f"{above}%%rank 0\n{below}import sys\nassert sys._getframe().f_lineno == {line}"
        ranks.ok(code)
    captured = "%%capture shown\n%%rank 0\nimport sys\nassert sys._getframe().f_lineno == 4"
    ranks.ok(captured + "\nprint('so')")
    assert "so" in ranks.ok("shown.stdout").shown
    indented = "%%rank 0\n\n    x = 1\n    raise ValueError"
    assert re.search("----> 4 +raise ValueError", ranks.fails(indented))


def test_one_failing_rank_is_named_and_others_keep_their_variables(ranks: Notebook) -> None:
    error = ranks.fails("%%distributed\nx = rank\nassert rank == 0, 'not zero'")
    assert "Rank 1 failed with AssertionError: not zero. Rank 0 finished" in error
    assert ranks.ok("%%distributed\nx").lines == ["[0]   0", "[1]   1"]


def test_the_sentence_below_a_traceback_has_the_first_line_of_an_error(ranks: Notebook) -> None:
    error = ranks.fails("%%rank 1\nraise ValueError('bad batch\\nsecond line')")
    assert error.rstrip().endswith("Rank 1 failed with ValueError: bad batch.")


def test_other_errors_are_folded(ranks: Notebook) -> None:
    result = ranks.run("%%distributed\nraise (ValueError if rank else KeyError)('boom')")
    assert result.status == "error"
    assert result.error.count("Traceback (most recent call last)") == 1
    assert "failed with KeyError: 'boom'" in result.error
    assert "failed with ValueError: boom" in result.error
    folded = result.mime("text/html")[0]
    assert "<details>" in folded and "Traceback" in folded


def test_a_long_message_is_cut(ranks: Notebook) -> None:
    result = ranks.run("%%distributed\nraise ValueError('x' * 30_000_000)")
    assert result.status == "error" and len(result.error) < 1_000_000
    assert "29,900,000 more characters of this error are cut" in result.error


def test_a_failing_cell_stops_run_all(ranks: Notebook, tmp_path: Path) -> None:
    assert ranks.stops_run_all("raise RuntimeError('stop')", tmp_path)


def test_an_error_whose_message_cannot_be_made_is_named(ranks: Notebook) -> None:
    code = "class Wrong(Exception):\n    def __str__(self): raise RuntimeError('bad')\nraise Wrong"
    assert "with Wrong: <exception str() failed>" in ranks.fails(f"%%distributed\n{code}")


def test_an_error_is_shown_where_the_users_own_stream_is_closed(ranks: Notebook) -> None:
    code = "import io, sys\nown, sys.stdout = sys.stdout, io.StringIO()\nsys.stdout.close()"
    error = ranks.fails(f"%%distributed\n{code}\n1 / 0")
    assert "ZeroDivisionError: division by zero" in error and "closed file" not in error
    ranks.run("%%distributed\nsys.stdout = own")


def test_names_that_are_no_strings_do_no_harm(ranks: Notebook) -> None:
    ranks.ok("%%distributed\nglobals()[1] = 'one'")
    assert ranks.ok("%%distributed\nglobals().pop(1)").lines == ["[0-1] 'one'"]
    ranks.ok("%%distributed\nglobals()[1] = 2; shown = 3")
    assert "shown" in ranks.ok("%dist_vars").text
    ranks.ok("%%distributed\ndel globals()[1]")


def test_syntax_error(ranks: Notebook) -> None:
    assert "SyntaxError" in ranks.fails("%%distributed\ndef f(:")


def count_sleeping(notebook: Notebook) -> int:
    """Return how many of a notebook's processes are `sleep`, the command."""
    names = []
    for process in tagged(notebook.env):
        with suppress(psutil.NoSuchProcess):
            names.append(process.name())
    return names.count("sleep")


def test_stop_interrupts_the_ranks_and_keeps_variables(ranks: Notebook) -> None:
    ranks.ok("%%distributed\nkeep = 41")
    for body in ("while True: pass", "import time; time.sleep(600)", "!sleep 600"):

        def stop(body: str = body) -> None:
            if body.startswith("!"):
                wait_for(lambda: count_sleeping(ranks) == 2, "the ranks' commands")
            ranks.interrupt()

        error = ranks.fails(
            f"%%distributed\nprint('running')\n{body}",
            until=lambda r: "running" in r.text,
            act=stop,
        )
        assert "Interrupted" in error
        # One rank may come back sooner than the other.
        assert ranks.ok("%%distributed\ndist.barrier()\nkeep").lines == ["[0-1] 41"]


def test_a_failure_is_said_while_others_still_run(ranks: Notebook) -> None:
    result = ranks.run(
        "%%distributed\nif rank == 1:\n    raise ValueError('bad shape\\nof x')\n"
        "import time\ntime.sleep(600)",
        until=lambda r: "failed" in r.stream("stderr"),
        act=ranks.interrupt,
    )
    line = "[1] failed (ValueError: bad shape); ranks still running: 0.\n"
    assert result.stream("stderr") == line
    assert "ValueError: bad shape" in result.error


def test_a_second_interrupt_does_not_take_the_place_of_the_first(ranks: Notebook) -> None:
    ranks.ok(
        "%%distributed\nimport os, signal\nshown = get_ipython().InteractiveTB\n"
        "def twice(*arguments, **options):\n    del shown.structured_traceback\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return shown.structured_traceback(*arguments, **options)\n"
        "shown.structured_traceback = twice"
    )
    result = ranks.run("%%rank 0\nraise KeyboardInterrupt('the first')")
    assert "KeyboardInterrupt: the first" in result.error
    assert "Traceback (most recent call last)" in result.error
    assert result.stream("stderr") == ""


def test_dist_interrupt_from_another_place(ranks: Notebook) -> None:
    ranks.ok("%dist_interrupt")  # nothing runs: nothing happens
    assert ranks.ok("%%distributed\nrank").lines == ["[0]   0", "[1]   1"]


def test_a_killed_rank_is_said_and_the_other_goes_on(ranks: Notebook) -> None:
    pid = pid_of(ranks, 1)
    killer = threading.Timer(0, os.kill, (pid, signal.SIGKILL))
    ranks.ok("%%rank 0\nkeep = 41")
    result = ranks.run(
        "%%distributed\nprint('in')\nimport time\ntime.sleep(1 if rank == 0 else 600)",
        until=lambda r: "in" in r.text,
        act=killer.start,
    )
    assert result.status == "error"
    assert "Rank 1 died:" in result.error
    assert "Rank 0 finished" in result.error
    assert ranks.ok("%%rank 0\nkeep").lines == ["[0]   41"]
    assert "died" in ranks.fails("%%distributed\n1")
    assert "dead: killed by signal 9" in ranks.ok("%dist_status").text
    ranks.ok("%dist_restart")
    assert ranks.ok("%%distributed\nrank").lines == ["[0]   0", "[1]   1"]


def test_a_killed_agent_takes_its_ranks_along_and_is_said(ranks: Notebook) -> None:
    (agent,) = named(ranks.env, "dist-agent")
    family = [agent, *agent.children(recursive=True)]
    assert len(family) >= 3
    agent.kill()
    wait_for(lambda: not any(map(lives, family)), "the end")
    error = ranks.fails("%%distributed\n1")
    assert "The pool's agent was killed by signal 9, and its ranks ended with it." in error
    ranks.ok("%dist_init -n 2")
    assert ranks.ok("%%distributed\nrank").lines == ["[0]   0", "[1]   1"]


def test_failures_that_differ_in_an_address_are_said_once(ranks: Notebook) -> None:
    code = "%%distributed\nimport os\nraise ValueError(f'{object()} of pid {os.getpid()}')"
    error = ranks.fails(code)
    said = "Ranks 0-1 failed with ValueError: <object object at 0x…> of pid …."
    assert said in error and error.count("failed with") == 1
