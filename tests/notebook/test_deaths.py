"""A rank that dies says why: in words, with what it wrote last."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..control_group import control_group
from ..environment import environment
from ..notebook_driver import Notebook, plain_notebook

ROOM = 200 << 20
"""Bytes that a control group leaves its processes."""


@pytest.fixture
def pool(notebook: Notebook) -> Notebook:
    """Return the notebook with two ranks, both alive."""
    if "idle" not in (said := notebook.run("%dist_status").text):
        notebook.ok("%dist_init -n 2")
    elif "dead" in said:
        notebook.ok("%dist_restart --ranks 1")
    return notebook


@pytest.fixture
def memory_group() -> Iterator[Path]:
    """Return a control group for memory, of version 1 or 2."""
    root = Path("/sys/fs/cgroup")
    with control_group(root / "memory" if (root / "memory").is_dir() else root) as group:
        yield group


def test_the_last_lines_on_stderr_are_shown(pool: Notebook) -> None:
    error = pool.fails(
        "%%distributed\nimport os, sys\nif rank == 1:\n"
        "    print('from Python', file=sys.stderr)\n    os.write(2, b'and from C\\n')\n"
        "    os.kill(os.getpid(), 9)"
    )
    assert "[1] last lines of stderr:\nfrom Python\nand from C\nRank 1 died:" in error
    assert "killed by signal 9 (SIGKILL)." in error
    assert "memory" not in error


def test_a_crash_shows_where_it_was(pool: Notebook) -> None:
    error = pool.fails("%%distributed\nimport ctypes\nif rank == 1:\n    ctypes.string_at(0)")
    assert "Rank 1 died: killed by signal 11 (SIGSEGV)." in error
    assert "Fatal Python error: Segmentation fault\n" in error
    assert re.search(r"line 4 in <(module|cell line: 0)>\nRank 1 died", error)  # IPython 7's name


def test_a_rank_that_cannot_take_the_place_of_another_is_told(pool: Notebook) -> None:
    connection = "from ipykernel.connect import get_connection_file"
    taken = f"%%rank 1\n{connection}\nimport os\nfile = get_connection_file()\n"
    pool.ok(f"{taken}os.unlink(file)\nos.mkdir(file)")
    result = pool.run("%dist_restart --ranks 1")
    # Root comes as far as that file, and jupyter_client 7 has another error than 8; others may not
    # have the ports that a rank without one takes.
    why = r"(?:OSError|IsADirectoryError): .*/rank-1.json|zmq.error.ZMQError: Permission denied"
    assert re.match(rf"Rank 1 did not start: (?:{why}).*\n  ", result.error), result.error
    assert pool.error_code() == "rank_failed"
    assert "1 of 2 ranks ready on the CPU (gloo) in" in result.shown
    assert re.search(f"dead: did not start: (?:{why})", pool.ok("%dist_status").text)
    error = pool.fails("%dist_restart")  # where none would be there for the others to meet
    assert re.match(rf"Rank 1 did not start: (?:{why}).*\n  ", error), error
    assert pool.error_code() == "rank_failed"
    assert "2 ranks ready" in pool.ok("%dist_init -n 2").shown


def test_a_death_is_said_while_the_others_still_run(pool: Notebook, tmp_path: Path) -> None:
    go = tmp_path / "go"
    wait = f"import time\n    while not os.path.exists({str(go)!r}): time.sleep(0.01)"
    said = "[1] died (exited with code 3); ranks still running: 0.\n"
    result = pool.run(
        f"%%distributed\nimport os\nif rank == 0:\n    {wait}\nelse:\n    os._exit(3)",
        until=lambda r: r.stream("stderr") == said,
        act=go.touch,
    )
    assert "Rank 1 died: exited with code 3. Rank 0 finished" in result.error
    assert "variables are kept. Replace rank 1 with %dist_restart --ranks 1." in result.error


def test_a_death_for_lack_of_memory_is_told_from_others(memory_group: Path, tmp_path: Path) -> None:
    notebook = plain_notebook(environment(tmp_path / "home"), tmp_path)
    try:
        pid = notebook.ok("%load_ext jupyter_dist_server\nimport os\nprint(os.getpid())").text
        (memory_group / "cgroup.procs").write_text(pid.split()[-1])
        notebook.ok("%dist_init -n 2")
        notebook.ok("%%rank 1\nfew = bytearray(1 << 20)")
        set_limit(memory_group)
        error = notebook.fails("%%rank 1\nmany = b'x' * (2 << 30)")
        assert "Rank 1 died: killed by signal 9 (SIGKILL), " in error
        assert "out of memory: " in error
        assert notebook.ok("%%rank 0\nrank").lines == ["[0]   0"]
    finally:
        notebook.close()


def set_limit(group: Path) -> None:
    """Leave its processes little more memory than they have."""
    usage, limit = (
        ("memory.usage_in_bytes", "memory.limit_in_bytes")
        if (group / "memory.limit_in_bytes").exists()
        else ("memory.current", "memory.max")
    )
    (group / limit).write_text(str(int((group / usage).read_text()) + ROOM))
