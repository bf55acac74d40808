"""Reads command lines of programs of others, and runs ``jdist`` instead."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...common.errors import DistError
from ...common.package_version import version
from ...jobs.store.store import Store
from ...jobs.submit.job_options import Parser
from ..main import options_of, run_of
from ..printing import printable

Run = Callable[[list[str], Store], int]


class Option(NamedTuple):
    """An option as it is written, and by the name that its program's table has first."""

    written: str
    name: str
    value: str | None


class Options:
    """The options of a command line; what nobody takes has no meaning here, and is named.

    Parameters
    ----------
    program : str
        Whose they are.
    known : str
        Its options: names of the same option with ``,`` between, and ``=`` if it has a value.
    words : sequence of str
        The command line.
    """

    def __init__(self, program: str, known: str, words: Sequence[str]) -> None:
        self.program = program
        self._found, self.rest = read_options(program, known, words)

    def take(self, name: str) -> str | None:
        """Return the value of an option, the last if it is there several times."""
        values = [one.value for one in self._found if one.name == name]
        self._found = [one for one in self._found if one.name != name]
        return (values[-1] or "") if values else None

    def has(self, name: str) -> bool:
        """Return whether an option without a value is there."""
        return self.take(name) is not None

    def answer(self, command: str, store: Store) -> None:
        """Print the help of a command of ``jdist``, or the version, and leave, if that is asked."""
        if self.has("--help"):
            run_jdist(command, ["-h"], store)
        if self.has("-V"):
            print(version())
            raise SystemExit(0)

    def refuse(self, *names: str) -> None:
        """Refuse options without which another thing would happen."""
        for one in self._found:
            if one.name in names:
                raise untranslated(f"{self.program} {one.written}")

    def name_others(self) -> None:
        """Say which options are not used."""
        for one in self._found:
            value = "" if one.value is None else f" {one.value}"
            notice(f"{self.program} {one.written}{value} is not used.")
        self._found = []


def untranslated(what: str, hint: str = "") -> DistError:
    """Return the error that words have no translation."""
    return DistError("bad_option", f"{what} has no translation to jdist.", hint or "See jdist -h.")


def notice(text: str) -> None:
    """Say something besides the answer."""
    print(f"jdist: {printable(text)}", file=sys.stderr)


def run_jdist(name: str, words: Sequence[str], store: Store) -> int:
    """Run a command of ``jdist``."""
    parser = Parser(prog=f"jdist {name}")
    options_of(name)(parser)
    return run_of(name)(parser.parse_args(words), store)


def read_options(
    program: str, known: str, words: Sequence[str], *, is_submitting: bool = False
) -> tuple[list[Option], list[str]]:
    """Return the options of a command line, and its other words.

    When submitting, other words end the options, and options that are not known have a value.
    """
    groups = [(group.rstrip("=").split(","), group.endswith("=")) for group in known.split()]
    named = {name: (names[0], takes) for names, takes in groups for name in names}
    found, rest, left = [], [], list(words)
    while left:
        word = left.pop(0)
        if word == "--" or word == "-" or not word.startswith("-"):
            rest += [] if word == "--" else [word]
            if word == "--" or is_submitting:
                rest += left
                break
            continue
        name, equals, value = word.partition("=")
        if not word.startswith("--"):
            name, equals, value = word[:2], word[2:], word[2:].removeprefix("=")
        elif name not in named:
            longer = {first: one for one, (first, _) in named.items() if one.startswith(name)}
            name = next(iter(longer.values())) if len(longer) == 1 else name
        if name not in named and not is_submitting:
            raise DistError("bad_option", f"{program} has no option “{name}”.")
        first, takes = named.get(name, (name, True))
        if takes and not equals:
            if not left:
                raise DistError("bad_option", f"{program} {name} needs a value.")
            value = left.pop(0)
        elif not takes and equals and not word.startswith("--"):
            left.insert(0, f"-{word[2:]}")  # such as -hl
            equals = ""
        found.append(Option(name, first, value if takes or equals else None))
    return found, rest
