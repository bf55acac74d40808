"""What a user may have meant by a name that does not exist."""

from __future__ import annotations

import argparse
from collections.abc import Iterable


def did_you_mean(word: str, names: Iterable[str], first: str = "") -> str:
    """Return “Did you mean …? ” with `first` and the nearest name, or nothing if none is near."""
    from difflib import get_close_matches  # here: jdist would load it at every command

    by_letters = {_letters(name): name for name in names}
    near = get_close_matches(_letters(word.partition("=")[0]), by_letters, n=1, cutoff=0.7)
    meant = [first] * bool(first) + [by_letters[letters] for letters in near]
    return f"Did you mean {' or '.join(meant)}? " if meant else ""


def option_names(parser: argparse.ArgumentParser) -> list[str]:
    """Return all names of a parser's options."""
    return [name for action in parser._actions for name in action.option_strings]


def _letters(name: str) -> str:
    return name.strip("-").replace("_", "-").lower()
