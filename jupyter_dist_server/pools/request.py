"""What a user asks for when starting a pool, checked before anything is started."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from ..errors import DistError

BACKENDS = ("gloo", "nccl", "cpu:gloo,cuda:nccl")
START_METHODS = ("fork", "spawn")
MAX_RANKS = 1024


@dataclass(frozen=True)
class PoolRequest:
    """A checked request for a pool; `None` means "you choose"."""

    num_ranks: int | None = None
    gpu_ids: tuple[int | str, ...] | None = None
    """Physical indices or UUIDs."""
    backend: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    """Added to the ranks' environment."""
    timeout: float | None = None
    """Seconds that the start may take."""
    start_method: str = "fork" if sys.platform == "linux" else "spawn"
    """On macOS a process that has imported torch must not fork, threads or not."""
    kernel_id: str | None = None
    name: str = ""
    python: str = ""
    """The notebook kernel's interpreter, in which ranks run too; empty is this process's own."""
    cwd: str = ""
    """Where the ranks work; empty is where this process does."""
    base_env: dict[str, str] | None = None
    """The notebook kernel's whole environment; `None` is this process's own."""

    @classmethod
    def from_json(cls, body: Any) -> PoolRequest:
        """Check the body of ``POST /pools``.

        Raises
        ------
        DistError
            With the `field` that is wrong.
        """
        if not isinstance(body, dict):
            raise _bad("body", "The body must be a JSON object.")
        unknown = sorted(set(body) - set(cls.__dataclass_fields__))
        if unknown:
            known = ", ".join(cls.__dataclass_fields__)
            raise _bad(unknown[0], f"“{unknown[0]}” is not a field of a pool request.", known)
        given = {name: value for name, value in body.items() if value is not None}
        for name, value in given.items():
            _CHECKS[name](name, value)
        if "gpu_ids" in given:
            given["gpu_ids"] = tuple(given["gpu_ids"])
        return cls(**given)


def _bad(name: str, message: str, hint: str = "") -> DistError:
    return DistError("bad_request", message, hint, field=name)


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_RANKS:
        raise _bad(name, f"The number of ranks must be from 1 to {MAX_RANKS}, not {value!r}.")


def _check_gpu_ids(name: str, value: Any) -> None:
    if not isinstance(value, list) or not value:
        raise _bad(name, "GPU ids must be a list such as [0, 3].")
    for item in value:
        if isinstance(item, bool) or not isinstance(item, int | str):
            raise _bad(name, f"A GPU id is an integer or a UUID, not {item!r}.")


def _check_backend(name: str, value: Any) -> None:
    if value not in BACKENDS:
        known = ", ".join(BACKENDS)
        raise _bad(name, f"“{value}” is not a backend we can start.", f"Use one of: {known}.")


def _check_start_method(name: str, value: Any) -> None:
    if value not in START_METHODS:
        raise _bad(name, f"“{value}” is not a start method.", "Use fork or spawn.")


def _check_env(name: str, value: Any) -> None:
    if not isinstance(value, dict) or not all(
        isinstance(part, str) for pair in value.items() for part in pair
    ):
        raise _bad(name, "Environment variables must be a mapping from strings to strings.")
    for variable, text in value.items():
        if not variable or "=" in variable or "\0" in variable + text:
            raise _bad(name, f"“{variable}” cannot be the name of an environment variable.")


def _check_timeout(name: str, value: Any) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        raise _bad(name, f"The time limit must be a positive number of seconds, not {value!r}.")


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise _bad(name, f"“{name}” must be a string, not {value!r}.")


_CHECKS = {
    "num_ranks": _check_count,
    "gpu_ids": _check_gpu_ids,
    "backend": _check_backend,
    "env": _check_env,
    "timeout": _check_timeout,
    "start_method": _check_start_method,
    "kernel_id": _check_text,
    "name": _check_text,
    "python": _check_text,
    "cwd": _check_text,
    "base_env": _check_env,
}
