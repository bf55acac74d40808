"""What belongs to which cell: its name on every rank, and what threads show after it has ended."""

from __future__ import annotations

import queue
import re
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.notebook.output.late_output import LateOutput

from ..notebook_driver import Notebook
from ..releases import HAS_SUBSHELLS
from ..result import Result
from ..waiting import PATIENCE

SERVED_ONLY = True
"""The server has no part in it, but has imported torch for an earlier notebook."""

START = """%%rank 0
import os, threading, time, warnings
go, gone = threading.Event(), threading.Event()
def late():
    go.wait()
    {}
    gone.set()
threading.Thread(target=late).start()
"""


def number(result: Result) -> int:
    """Return the notebook's number of a cell."""
    count = next(m["content"] for m in result.messages if m["msg_type"] == "execute_input")
    return int(count["execution_count"])


def late_output(notebook: Notebook, what: str, meanwhile: str = "") -> tuple[Result, Result]:
    """Let a thread do something in a later cell; return what its cell and the later one show."""
    first = notebook.send(START.format(what))
    shown = notebook.follow(first)
    second = notebook.send(f"%%rank 0\ngo.set()\n{meanwhile}\ngone.wait(10)\ntime.sleep(0.2);")
    later, has_ended = Result(), False
    while True:
        try:
            message = notebook.client.get_iopub_msg(timeout=3 if has_ended else PATIENCE)
        except queue.Empty:
            return shown, later
        parent = message["parent_header"]["msg_id"]
        has_ended |= parent == second and message["content"].get("execution_state") == "idle"
        if message["msg_type"] not in ("status", "execute_input"):
            (shown if parent == first else later).add(message["msg_type"], message["content"])
            assert parent in (first, second)


def test_warnings_name_the_cell_alike_on_ranks_that_ran_different_cells(ranks: Notebook) -> None:
    ranks.ok("%%rank 1\nmore = 1")
    result = ranks.ok("%%distributed\nimport warnings\n\nwarnings.warn('old')")
    assert f"[0-1] <Cell In[{number(result)}]>:4: UserWarning: old" in result.stream("stderr")


def test_errors_and_tracebacks_of_threads_name_the_cell(ranks: Notebook) -> None:
    result = ranks.run("%%distributed\nx = 1\nx ==== 2")
    assert f"(<Cell In[{number(result)}]>, line 3)" in result.error
    code = "%%distributed\nimport threading\nt = threading.Thread(target=lambda: 1 / 0)\n"
    result = ranks.ok(code + "t.start(); t.join()")
    assert f'File "<Cell In[{number(result)}]>", line 3, in <lambda>' in result.stream("stderr")


def test_a_cell_within_a_cell_leaves_the_outer_source_alone(ranks: Notebook) -> None:
    code = "%%rank 0\ndef f():\n    return 1 / 0\nget_ipython().run_cell('y = 2\\n');\nf()"
    assert "----> 3     return 1 / 0" in ranks.fails(code)


def test_c_output_of_a_cell_is_not_taken_by_a_thread_of_another(ranks: Notebook) -> None:
    what = "[(print('T'), time.sleep(0.001)) for _ in range(100)]"
    meanwhile = "for i in range(100):\n    os.write(1, b'C%d\\n' % i); time.sleep(0.001)"
    shown, later = late_output(ranks, what, meanwhile)
    assert shown.text.count("T") == 100 and "C" not in shown.text
    assert re.findall(r"C(\d+)", later.text) == [str(i) for i in range(100)]


def test_c_output_is_not_lost_to_a_completion(ranks: Notebook) -> None:
    code = "%%rank 0\nimport os, time\nfor i in range(100):\n    os.write(1, b'C%d\\n' % i); "
    asked: list[Any] = []

    def ask() -> None:
        asked.append(ranks.client.complete("%%rank 0\ntime.sl", 16))

    sent = ranks.send(code + "time.sleep(0.01)")
    result = ranks.follow(sent, until=lambda shown: "C5" in shown.text, act=ask)
    assert asked and re.findall(r"C(\d+)", result.text) == [str(i) for i in range(100)]


@pytest.mark.skipif(
    not HAS_SUBSHELLS, reason="before ipykernel 7, displays of threads go to the cell that runs"
)
def test_displays_of_a_thread_are_updated_after_its_cell(ranks: Notebook) -> None:
    shown, _ = late_output(ranks, "h = display('begun', display_id=True); h.update('done')")
    assert "[0]\n'done'\n" in shown.shown


def test_a_thread_without_end_is_cut_and_a_file_holds_it_all(ranks: Notebook) -> None:
    ranks.ok("%config CellMagics.output_limit = 10_000")
    shown, _ = late_output(ranks, "[print(i, 'x' * 90) for i in range(2000)]")
    ranks.ok("%config CellMagics.output_limit = 10_000_000")
    said = re.search(r"\[0\] … the output is cut here and continues in (.+)\n$", shown.text)
    assert said and len(shown.text) < 12_000
    held = Path(said[1]).read_text().splitlines()
    Path(said[1]).unlink()
    assert [int(line.split()[0]) for line in held] == list(range(2000))


class Written(LateOutput):
    """Late output whose text is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def _send(self, kind: str, content: dict[str, Any]) -> None:
        self.text += content["text"]


def test_pieces_of_late_lines_are_put_together() -> None:
    late = Written()
    for rank, text in [(0, "a"), (0, "b"), (1, "c\n"), (0, "\nd\n"), (0, "1%\r2%\r"), (0, "3%\n")]:
        late.show(rank, "stream", {"name": "stdout", "text": text})
    assert late.text == "[0] ab\n[1] c\n[0] d\n[0] 1%\r[0] 2%\r[0] 3%\n"
