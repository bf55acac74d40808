"""`%%distributed --profile` says why a cell is slow, on real ranks."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from ..notebook_driver import Notebook
from ..result import Result
from .trace_format import faults, overlaps

PLAIN_ONLY = True
"""The server has no part in it."""

MODEL = """%%distributed
import time
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(10, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def step(x):
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture
def two(notebook: Notebook) -> Notebook:
    """Return a notebook with two ranks that have a model."""
    if notebook.run("%dist_status").text.count(" idle for ") != 2:
        notebook.ok("%dist_init -n 2")
    notebook.ok(MODEL)
    return notebook


def table_of(result: Result) -> list[list[str]]:
    """Return the words of the table, line by line."""
    (table,) = (text for text in result.mime("text/plain") if text.startswith("rank "))
    return [line.split() for line in table.splitlines()]


def test_a_sleep_on_one_rank_is_named(two: Notebook) -> None:
    """Whether or not the user has given a name to it."""
    place = r"(`time\.sleep`, )?In\[\d+\] line 4"  # what is called is known since Python 3.11
    for name, cause in (("with record_function('data'):", "`data`"), ("if True:", place)):
        result = two.ok(
            "%%distributed --profile\nfor _ in range(4):\n"
            f"    {name}\n        time.sleep(0.5 * rank)\n    step(torch.ones(4, 10))"
        )
        first = result.lines[0]
        assert " of a step is waiting: rank 1 arrives " in first, result.shown
        assert re.search(rf" late at all_reduce because of {cause}\.", first), result.shown
        rows = table_of(result)
        assert rows[0][:4] == ["rank", "step", "compute", "input"]
        assert [row[0] for row in rows[1:]] == ["0", "1"]
        # A narrow notebook would break the lines of a text.
        assert any(html.startswith("<table><tr><th>rank</th>") for html in result.mime("text/html"))
        assert "Times are per step, the average of 3 optimizer steps after the first one" in (
            result.text
        )


def test_a_slow_loader_everywhere(two: Notebook) -> None:
    result = two.ok(
        "%%distributed --profile\nclass Slow(torch.utils.data.Dataset):\n"
        "    def __len__(self):\n        return 4\n"
        "    def __getitem__(self, place):\n"
        "        time.sleep(0.5)\n        return torch.ones(10)\n"
        "for x in torch.utils.data.DataLoader(Slow(), batch_size=1):\n    step(x)"
    )
    assert re.match(
        r"Input-bound on all ranks: \d+ % of a step is waiting for the DataLoader\.",
        result.lines[0],
    ), result.shown


def test_balanced_ranks_give_no_alarm(two: Notebook) -> None:
    cell = (
        "%%distributed --profile --steps 3 --memory\n"
        "for _ in range(4):\n    time.sleep(2)\n    step(torch.ones(4, 10))"
    )
    for _ in range(3):  # a rank that gets no processor for a second is late indeed
        if "is waiting" not in (result := two.ok(cell)).lines[0]:
            break
    assert "rank 0" not in result.lines[0] and "rank 1" not in result.lines[0], result.shown
    assert "Input" not in result.lines[0] and "late" not in result.lines[0], result.shown
    assert re.search(r"most of it in .*In\[\d+\] line 3\.", result.lines[0]), result.shown
    assert "peak memory" in result.shown
    assert "the average of 2 optimizer steps after the first one" in result.text


def test_faults_of_a_trace_are_found() -> None:
    event = {"ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 4, "name": "a"}
    begin, end = ({"cat": "c", "id": 1, "ph": ph, "ts": ts} for ph, ts in (("s", 1), ("f", 2)))
    assert faults([event, event | begin, event | end]) == []
    assert len(faults([event | end, event | {"dur": -1}, event | {"pid": "1"}])) == 3
    assert len(faults([event | {"ph": "B"}, {"ph": "i", "name": "a", "ts": 1, "pid": 1}])) == 4
    assert overlaps([event, event | {"ts": 1, "dur": 2}]) == []
    assert overlaps([event, event | {"ts": 1, "dur": 9, "name": "b"}]) == ["b"]


def test_the_trace_of_all_ranks(two: Notebook) -> None:
    result = two.ok(
        "%%distributed --profile --memory\nmodel(torch.ones(4, 10)).sum().backward()\n"
        "dist.all_reduce(torch.ones(3))\n"
        "if rank:\n    dist.send(torch.ones(3), 0)\nelse:\n    dist.recv(torch.ones(3), 1)"
    )
    assert "the whole cell counts as one step" in result.text
    named = re.search(r"Trace of all ranks: (\S+)", result.shown)
    assert named
    assert f'href="{named[1]}" download' in result.mime("text/html")[-1]
    text = two.ok(f"import gzip, json; print(open({named[1]!r}, 'rb').read().hex())").text
    trace = json.loads(gzip.decompress(bytes.fromhex(text.strip())))
    events = trace["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {0: "rank 0", 1000: "rank 1"}
    reduced = [e for e in events if e["name"] == "gloo:all_reduce"]
    spans = {e["pid"]: e for e in sorted(reduced, key=lambda e: e["ts"])}  # the last of each
    assert spans.keys() == {0, 1000}, "each rank has its own"
    assert not faults(events)
    assert not overlaps(events), "Perfetto would drop them"
    first, second = (spans[pid] for pid in (0, 1000))
    assert first["ts"] < second["ts"] + second["dur"], "they are in it at the same time"
    assert second["ts"] < first["ts"] + first["dur"]


def test_a_cell_that_fails_keeps_its_trace(two: Notebook) -> None:
    # Another notebook may have a trace of a cell with that number.
    others = "[pathlib.Path(f'profile-cell-{number}.json.gz') for number in range(200)]"
    two.ok(f"import pathlib\nfor other in {others}:\n    other.touch()")
    result = two.run("%%distributed --profile\ndist.all_reduce(torch.ones(3))\nif rank:\n    1 / 0")
    assert result.status == "error" and "ZeroDivisionError" in result.error
    assert re.search(r"Trace of all ranks: profile-cell-\d+-2\.json\.gz", result.shown)
    assert "of the cell" in result.lines[0]


@pytest.mark.parametrize("steps", ["", " --steps 1"])
def test_a_profiler_that_fails_is_not_the_cells_failure(two: Notebook, steps: str) -> None:
    """With one of its own, the cell ends ours; a rank whose trace was written then would crash."""
    result = two.ok(
        f"%%distributed --profile{steps}\nif rank:\n    with torch.profiler.profile() as own:\n"
        "        torch.ones(3)\nstep(torch.ones(4, 10))\nprint('went on')"
    )
    assert "went on" in result.text
    why = "the cell used a profiler of torch itself, which ended this one."
    assert f"\nRank 1 could not be profiled: RuntimeError: {why}\n" in result.shown
    assert "Traceback" not in result.shown
    assert re.search(r"^0 ", result.shown, re.M) and not re.search(r"^1 ", result.shown, re.M)
    assert two.ok("%%distributed\nrank").text.split() == ["[0]", "0", "[1]", "1"], "both live"


def test_a_profiler_that_runs_already_is_left_alone(two: Notebook) -> None:
    two.ok("%%distributed\nown = torch.profiler.profile()\nown.start()")
    result = two.ok("%%distributed --profile\nx = torch.ones(9) + 1")
    why = "a profiler of torch was running before the cell"
    assert f"Ranks 0-1 could not be profiled: RuntimeError: {why}." in result.shown
    two.ok("%%distributed\nown.stop()\nassert 'aten::add' in own.key_averages().table()")


def test_a_trace_that_cannot_be_written_is_told_by_its_error(two: Notebook) -> None:
    two.ok(
        "%%distributed\nprofile = torch.profiler.profile\n"
        "def fails(*_):\n    raise RuntimeError('no trace\\nand advice')\n"
        "if rank:\n    profile.export_chrome_trace = fails"
    )
    result = two.ok("%%distributed --profile\nx = torch.ones(9) + 1")
    assert "\nRank 1 could not be profiled: RuntimeError: no trace.\n" in result.shown
    two.ok("%%rank 1\ndel profile.export_chrome_trace")


def test_a_script(two: Notebook, tmp_path: Path) -> None:
    script = tmp_path / "late.py"
    script.write_text(
        "import os, sys, time\nimport torch\nimport torch.distributed as dist\n\n\n"
        "def load(seconds):\n    time.sleep(seconds)\n\n\n"
        "dist.init_process_group('gloo')\nfor _ in range(4):\n"
        "    load(float(sys.argv[1]) * int(os.environ['RANK']))\n"
        "    dist.all_reduce(torch.ones(3))\ndist.destroy_process_group()\n"
    )
    result = two.ok(f"%dist_run --profile {script} 0.5")
    first = result.lines[0]
    assert "of the cell is waiting: rank 1 arrives " in first, result.shown
    assert re.search(r" because of (`time\.sleep`, )?late\.py line 7\.", first), result.shown
    assert "Trace of all ranks: profile-cell-" in result.shown
    for options in ("--steps 3", "--profile --steps 0"):
        assert two.refused(f"%dist_run {options} {script} 0") == "bad_option"


def test_mistakes(two: Notebook) -> None:
    for options in ("--profile --steps 0", "--steps 3", "--memory", "--profile --steps many"):
        assert two.refused(f"%%distributed {options}\npass") == "bad_option"
    assert two.ok("%%distributed\nprint('in order')").lines == ["[0-1] in order"]


def test_some_ranks(two: Notebook) -> None:
    result = two.ok(
        "%%distributed --ranks 1 --profile\nx = torch.ones(99, 99) @ torch.ones(99, 99)"
    )
    assert [row[0] for row in table_of(result)] == ["rank", "1"]
