"""The table of programs and libraries in docs/libraries.md names every test, and only those."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
ROW = re.compile(r"^\| (.+) \| (\S+) (\S+) \| (.+) \| `(test_\w+\.py::test_\w+)` \|$", re.MULTILINE)


def rows() -> list[tuple[str, ...]]:
    page = (ROOT / "docs/libraries.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    found = [match.groups() for match in ROW.finditer(page)]
    assert len(found) == len(lines) - 2, "a row is not: what, library version, remark, test"
    return found


def test_each_row_is_a_test_and_each_test_a_row() -> None:
    tests = {
        f"{path.name}::{node.name}"
        for path in HERE.glob("test_*.py")
        if path != Path(__file__)
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }
    named = [row[-1] for row in rows()]
    assert sorted(named) == sorted(tests)


def test_versions_are_those_that_are_tested() -> None:
    pins = (ROOT / "constraints.txt").read_text() + (HERE / "requirements.txt").read_text()
    for _, library, version, *_ in rows():
        assert f"\n{library}=={version}\n" in pins, library
