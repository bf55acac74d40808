"""The results, as the part *On a GPU* of docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

NO_GPU = (
    "**No GPU was used.** These checks ran on CPU ranks. They show that the script works, "
    "and nothing about GPUs."
)


@dataclass
class Outcome:
    """What became of one check."""

    name: str
    result: Literal["passed", "failed", "not run"]
    seconds: float = 0.0
    figures: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    """Why it failed or did not run."""


def page(told: str, on_gpu: bool, outcomes: Sequence[Outcome]) -> str:
    """Return the page."""
    ran = [one for one in outcomes if one.result != "not run"]
    rows = [
        f"| {one.name} | {_mark(one.result)} | {one.seconds:.1f} | {_figures(one)} |" for one in ran
    ]
    parts = ["## On a GPU", told]
    if not on_gpu:
        parts.append(NO_GPU)
    parts.append(
        "\n".join(["| check | result | s | figures |", "| --- | --- | --- | --- |", *rows])
    )
    for title, result in (("Failed", "failed"), ("Not run", "not run")):
        listed = [f"- *{one.name}*: {one.reason}" for one in outcomes if one.result == result]
        if listed:
            parts.append("\n".join([f"{title}:\n", *listed]))
    return "\n\n".join(parts) + "\n"


def _mark(result: str) -> str:
    return "**failed**" if result == "failed" else result


def _figures(outcome: Outcome) -> str:
    texts = (f"{name}: {value}" for name, value in outcome.figures.items())
    return "; ".join(texts).replace("|", "\\|") or "–"
