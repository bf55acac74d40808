"""The table of scenes and their tests in docs/hang-messages.md; as a program, it is written."""

from __future__ import annotations

from pathlib import Path

from . import (
    test_elsewhere,
    test_mismatch,
    test_models,
    test_never_joined,
    test_order,
    test_scripts,
)

PAGE = Path(__file__).parents[2] / "docs" / "hang-messages.md"
BEGIN, END = "<!-- scenes: written by tests/verdicts/test_table.py -->\n", "<!-- end -->\n"
MODULES = (test_never_joined, test_mismatch, test_order, test_models, test_elsewhere)


def table() -> str:
    """Return the scenes with the sentences that the tests see."""
    rows = ["| what happens | what is said | tests |", "| --- | --- | --- |"]
    for module in MODULES:
        for case in module.SCENES:
            tests = [module, test_scripts] if case in test_scripts.SCENES else [module]
            names = ", ".join(f"`{test.__name__.rpartition('.')[2]}`" for test in tests)
            rows.append(f"| {case.name} | {case.sentence} | {names} |")
    return "\n".join(rows) + "\n"


def test_the_page_has_every_scene() -> None:
    assert f"{BEGIN}\n{table()}\n{END}" in PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
