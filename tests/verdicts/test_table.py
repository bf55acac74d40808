"""The table of scenes in docs/hang-messages.md; run as a program, this module writes it."""

from __future__ import annotations

from pathlib import Path

from . import test_elsewhere, test_mismatch, test_models, test_never_joined, test_order

PAGE = Path(__file__).parents[2] / "docs" / "hang-messages.md"
BEGIN, END = "<!-- scenes: written by tests/verdicts/test_table.py -->\n", "<!-- end -->\n"
MODULES = (test_never_joined, test_mismatch, test_order, test_models, test_elsewhere)


def table() -> str:
    """Return the scenes with the sentences that the tests see."""
    rows = ["| what happens | what is said |", "| --- | --- |"]
    for module in MODULES:
        rows += [f"| {case.name} | {case.sentence} |" for case in module.SCENES]
    return "\n".join(rows) + "\n"


def test_the_page_has_every_scene() -> None:
    assert f"{BEGIN}\n{table()}\n{END}" in PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
