"""Run a program of `programs/` on the ranks of a notebook, as its user would."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from ..notebook_driver import Notebook
from ..result import Result

PROGRAMS = Path(__file__).parent / "programs"
FSDP2 = pytest.mark.skipif(
    version("torch").startswith("2.8."),
    reason="with torch 2.8, FSDP2 trains other parameters on CPU ranks, also under torchrun",
)


def run(notebook: Notebook, name: str) -> str:
    """Run a program as a cell and, in the same pool, as a script; they must say the same."""
    said = run_as_cell(notebook, name)
    assert run_as_script(notebook, name) == said
    return said


def run_as_cell(notebook: Notebook, name: str) -> str:
    """Paste a program into a cell; return its last line, which all ranks must have printed."""
    source = (PROGRAMS / f"{name}.py").read_text()
    return said_by_all(notebook.ok(f"%%distributed\n{source}"))


def run_as_script(notebook: Notebook, name: str, options: str = "") -> str:
    """Run a program by its file; return its last line, which all ranks must have printed."""
    command = f"%dist_run {PROGRAMS / name}.py {options}"
    return said_by_all(notebook.ok(command))


def said_by_all(result: Result) -> str:
    """Return the last line of each rank, without the marks that say whose it is."""
    last = {rank: lines[-1] for rank, lines in result.lines_by_rank.items()}
    (said,) = set(last.values()) or {result.shown}
    assert sorted(last) in ([0, 1], [0, 1, 2, 3]), result.shown
    return said
