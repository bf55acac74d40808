"""Parsing the options of magics, with clear error messages."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, TypeVar, cast

from IPython.core.error import UsageError

from ...common.errors import DistError
from ...common.nearest_name import did_you_mean, option_names
from ...placement.requests.field_checks import CPU

F = TypeVar("F", bound=Callable[..., Any])

_BEFORE_COMMENT = re.compile(r"""("(\\.|[^"\\])*"|'(\\.|[^'\\])*'|(?<=\S)#|[^#])*""")
"""A `#` in quotes, or in a word, begins no comment."""
_UNKNOWN = re.compile(r"unrecognized arguments: ((\S+?)(?:[= ]+(\w\S*))?(?: .*)?)$", re.DOTALL)
"""What argparse says; all that it does not know, the first option of it, and its value."""
_COUNTS_RANKS = {"gpus", "nproc", "nproc-per-node", "num-gpus", "world-size", "ntasks"}
"""Options of other programs for what is ``-n`` here."""


def plain_usage(method: F) -> F:
    """Let a magic ignore a comment, and say in one or two lines what is wrong with its options."""

    @wraps(method)
    def wrapper(magics: Any, line: str, *cell: Any) -> Any:
        try:
            return method(magics, without_comment(line), *cell)
        except UsageError as error:
            said = str(error).removesuffix(", arguments")  # which argparse requires of a script
            called = f"%%{method.__name__}" if any(cell) else f"%{method.__name__}"
            message, near = f"{said[:1].upper()}{said[1:]}.", ""
            if unknown := _UNKNOWN.match(said):
                words, option, value = unknown.groups()
                message = f"{called} has no option “{words}”."
                near = _nearest(method, option, value or "")
            raise DistError("bad_option", message, f"{near}See {called}?") from None

    return cast("F", wrapper)


def _nearest(magic: Any, option: str, value: str) -> str:
    names = option_names(magic.parser)
    counts_ranks = option.strip("-").replace("_", "-") in _COUNTS_RANKS and "-n" in names
    return did_you_mean(option, names, f"-n {value}".strip() if counts_ranks else "")


def without_comment(line: str) -> str:
    """Return a magic's line without the comment at its end."""
    match = _BEFORE_COMMENT.match(line)
    assert match  # it matches the empty line too
    return match[0].rstrip()


def parse(magic: Any, line: str) -> Any:
    """Read a magic's options; quotes are taken off as a shell does: ``--gpu-ids "0,1"``."""
    return magic.parser.parse_args(split(line))


def split(line: str) -> list[str]:
    """Split a line as a shell does."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"“{line}”: {error}") from None


def unquoted(text: str) -> str:
    """Remove quotes from one option; expressions beside it keep theirs."""
    return " ".join(split(text))


def expressions(words: Iterable[str]) -> list[str]:
    """Join words that form one expression, such as ``x[0,`` and ``1]``."""
    found, unfinished = [], ""
    for word in words:
        unfinished = f"{unfinished} {word}".lstrip()
        if is_expression(unfinished):
            found.append(unfinished)
            unfinished = ""
    return [*found, unfinished] if unfinished else found


def is_expression(text: str) -> bool:
    """Tell whether Python can evaluate a text."""
    try:
        compile(text, "<value>", "eval")
    except (SyntaxError, ValueError):
        return False
    return True


def no_options(name: str, line: str) -> None:
    """Refuse options of a magic that takes none."""
    if line.strip():
        raise UsageError(f"%{name} takes no options, not “{line.strip()}”")


def read_gpu_ids(text: str) -> list[int | str]:
    """Read ``0,3``, MIG instances as ``0:1``, or UUIDs."""
    try:
        return [_gpu(item) for item in _items(text)]
    except ValueError as error:
        message = f"--gpu-ids must be indices such as 0,3, or UUIDs, not “{error}”"
        raise UsageError(message) from None


def read_performance(text: str) -> dict[str, float]:
    """Read ``0=100,3=110``: GPUs and their scores."""
    scores = {}
    for item in _items(text):
        gpu, _, score = item.partition("=")
        try:
            scores[str(_gpu(gpu))] = float(score)
        except ValueError:
            message = f"--performance must be GPUs with scores, such as 0=100,3=110, not “{item}”"
            raise UsageError(message) from None
    return scores


def read_map(text: str) -> dict[str, int | str]:
    """Read ``0:3,1:0,2:cpu``: ranks and their GPUs."""
    gpus = {}
    for item in _items(text):
        rank, _, gpu = item.partition(":")
        try:
            gpus[str(int(rank))] = CPU if gpu.strip() == CPU else _gpu(gpu)
        except ValueError:
            message = f"--map must be ranks with GPUs, such as 0:3,1:0,2:cpu, not “{item}”"
            raise UsageError(message) from None
    if len(gpus) < len([*_items(text)]):
        raise UsageError(f"--map has a rank twice: “{text}”")
    return gpus


def read_node_map(text: str) -> list[tuple[str, int | str | None]] | None:
    """Read ``n1:0,n2:3``: a node and a GPU for each rank, or ``n1,n2``; `None` for other maps."""
    items = [item.partition(":") for item in _items(text)]
    if items[0][0].isdecimal():
        return None
    try:
        return [(node, _gpu(gpu) if colon else None) for node, colon, gpu in items]
    except ValueError:
        message = f"--map must be nodes with GPUs, such as n1:0,n2:3, or nodes, not “{text}”"
        raise UsageError(message) from None


def read_bytes(text: str) -> int:
    """Read ``20GiB`` or ``500MiB``; ``20GB`` and ``20G`` are the same, as in Slurm."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([GM])(?:i?B)?", text.strip(), re.IGNORECASE)
    if not match:
        raise UsageError(f"--min-free-memory must be a size such as 20GiB or 500MiB, not “{text}”")
    return int(float(match[1]) * (2**30 if match[2] in "gG" else 2**20))


def read_wait(text: str) -> float:
    """Read the seconds of ``--wait S``."""
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--wait must be a number of seconds, not “{text}”") from None


def _items(text: str) -> Iterator[str]:
    return (part.strip() for part in text.strip("[]{}").split(","))


def _gpu(text: str) -> int | str:
    text = text.strip()
    if text.isdecimal():
        return int(text)
    if text.startswith(("GPU-", "MIG-")) or re.fullmatch("[0-9]+:[0-9]+", text):
        return text
    raise ValueError(text)


def read_variable(text: str) -> tuple[str, str]:
    """Read ``K=V``."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--env must be K=V, not “{text}”")
    return name, value
