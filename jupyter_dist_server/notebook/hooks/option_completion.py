"""Completion of the options of our magics, which IPython does not know."""

from __future__ import annotations

import argparse
import re
from typing import Any

from ...common.protocol.jupyter_messages import Content

_MAGIC_LINE = re.compile(r"\s*%{1,2}(?P<name>\w+)\b(?:[^#\n]*\s)?(?P<word>-[\w-]*)$")


def complete_option(shell: Any, code: str, position: int) -> Content | None:
    """Complete an option of a magic.

    Parameters
    ----------
    shell : InteractiveShell
        Knows the magics.
    code : str
        The cell.
    position : int
        Where the cursor is, in characters.

    Returns
    -------
    dict or None
        The content of a ``complete_reply``; `None` if there is no option at the cursor.
    """
    line = code[:position].rpartition("\n")[2]
    match = _MAGIC_LINE.match(line)
    if not match:
        return None
    name, word = match["name"], match["word"]
    magic = shell.find_cell_magic(name) if "%%" in line else shell.find_line_magic(name)
    if not getattr(magic, "__module__", "").startswith("jupyter_dist_server."):
        return None
    options = sorted(filter(lambda option: option.startswith(word), _options(magic)), key=_order)
    begin = position - len(word)
    kinds = [{"start": begin, "end": position, "text": o, "type": "option"} for o in options]
    return {
        "matches": options,
        "cursor_start": begin,
        "cursor_end": position,
        "metadata": {"_jupyter_types_experimental": kinds},
        "status": "ok",
    }


def _options(magic: Any) -> set[str]:
    parser: argparse.ArgumentParser | None = getattr(magic, "parser", None)
    actions = parser._actions if parser else ()
    return {
        option
        for action in actions
        if action.help != argparse.SUPPRESS
        for option in action.option_strings
    }


def _order(option: str) -> tuple[bool, str]:
    """Long options come first."""
    return not option.startswith("--"), option
