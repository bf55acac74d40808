"""What a stopped cell shows: one sentence, and folded details below it."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

from IPython import get_ipython

from ...client.cell_execution import Execution
from ...common.protocol.jupyter_messages import Content
from ...common.protocol.ranks.rank_messages import Whereabouts
from ...common.rank_specs import format_ranks, name_ranks
from .publish import Display, publish

_MOST_PLACES = 3
"""Places that the sentence names; the details have the others."""
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

Errors = list[tuple[list[int], Content]]
"""Each different error with its ranks."""


def show_stop_details(result: Any) -> None:
    """Show a cell's details below its error, which IPython publishes after the cell's outputs."""
    error = getattr(result, "error_in_exec", None)
    if details := getattr(error, "stop_details", None):
        publish([details])


def _without_colours(error: Content) -> str:
    return _ANSI.sub("", "\n".join(error["traceback"]))


def in_notebooks_colours(text: str) -> str:
    """Return what ranks have coloured, as plain text if the notebook's shell has no colours."""
    shell = get_ipython()
    return _ANSI.sub("", text) if shell and shell.colors.lower() == "nocolor" else text


def places(execution: Execution, at: Mapping[int, Whereabouts]) -> list[str]:
    """Say where ranks were when the cell was stopped, such as "ranks 0,2 were in backward"."""
    ranks: dict[str, list[int]] = {}
    for rank in sorted(execution.begun | set(at)):
        if rank in execution.stopped:
            where = "stopped (SIGSTOP)"
        elif (place := at.get(rank)) is None:
            where = "in C code that holds the GIL"
        else:
            where = f"waiting in {place.call}" if place.call else _in_python(place)
            of_script = f"{place.file} " if place.file else ""
            where += f" ({of_script}line {place.line})" if place.line else ""
        ranks.setdefault(where, []).append(rank)
    said: list[str] = []
    for where, there in ranks.items():
        verb = "" if said else "was " if len(there) == 1 else "were "
        said.append(f"{name_ranks(there)} {verb}{where}")
    return said


def _in_python(place: Whereabouts) -> str:
    if place.asks:
        return "waiting for an answer to `input()`"
    return "in backward" if place.backward else "in Python code"


def one_sentence(
    why: str, ranks: list[int], places: list[str], *, stopped: bool, repaired: bool
) -> str:
    """Return the result of a cell whose ranks have all stopped or finished; see `places`."""
    more = len(places) - _MOST_PLACES
    if more > 0:
        places = [*places[:_MOST_PLACES], f"others at {more} other place{'s' * (more > 1)}"]
    done = "just begun" if stopped else "finished"
    where = ", ".join(places) or f"{name_ranks(ranks)} had {done}"
    again = ", but create DDP models and groups from `new_group` again" if repaired else ""
    return f"{why}: {where}; all variables are kept{again}."


def folded_details(sentences: str, errors: Errors) -> Display | None:
    """Return what the sentence leaves out, which a click unfolds; `None` if nothing."""
    parts = [sentences] if sentences else []
    parts += [f"[{format_ranks(ranks)}]\n{_without_colours(error)}" for ranks, error in errors]
    if not parts:
        return None
    text = "\n\n".join(parts)
    rich = f"<details><summary>Details</summary><pre>{html.escape(text)}</pre></details>"
    return Display({"text/plain": f"Details:\n{text}", "text/html": rich})


def folded_errors(errors: Errors) -> Display:
    """Return further errors as one line each, their tracebacks one click away."""
    plain, rich = [], []
    for ranks, error in errors:
        line = f"[{format_ranks(ranks)}] {error['ename']}: {error['evalue']}"
        plain.append(line)
        rich.append(
            f"<details><summary>{html.escape(line)}</summary>"
            f"<pre>{html.escape(_without_colours(error))}</pre></details>"
        )
    return Display({"text/plain": "\n".join(plain), "text/html": "".join(rich)})
