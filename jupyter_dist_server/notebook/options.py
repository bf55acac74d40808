"""Reading the options of magics, and saying plainly what is wrong with them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from IPython.core.error import UsageError

from ..errors import DistError

F = TypeVar("F", bound=Callable[..., Any])


def plain_usage(method: F) -> F:
    """Turn a usage error into one of ours: an error output, of one or two lines."""

    @wraps(method)
    def wrapper(*arguments: Any) -> Any:
        try:
            return method(*arguments)
        except UsageError as error:
            raise DistError("bad_option", f"{error}.", f"See %{method.__name__}?") from None

    return cast("F", wrapper)


def no_options(name: str, line: str) -> None:
    """Refuse options of a magic that takes none."""
    if line.strip():
        raise UsageError(f"%{name} takes no options, not “{line.strip()}”")


def read_gpu_ids(text: str | None) -> list[int | str] | None:
    """Read ``0,3`` or UUIDs."""
    if text is None:
        return None
    ids: list[int | str] = []
    for part in text.strip("[]").split(","):
        item = part.strip()
        if item.isdecimal():
            ids.append(int(item))
        elif item.startswith(("GPU-", "MIG-")):
            ids.append(item)
        else:
            raise UsageError(f"--gpu-ids takes integers such as 0,3, or UUIDs, not “{item}”")
    return ids


def read_variable(text: str) -> tuple[str, str]:
    """Read ``K=V``."""
    try:
        name, equals, value = " ".join(shlex.split(text)).partition("=")
    except ValueError as error:
        raise UsageError(f"--env {text}: {error}") from error
    if not equals or not name:
        raise UsageError(f"--env takes K=V, not “{text}”")
    return name, value
