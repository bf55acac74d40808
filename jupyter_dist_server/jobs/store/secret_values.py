"""Values that nobody else is to read: of variables and parameters with names of secrets, and URLs.

The queue's file, all output and REST have `MASK` in their place. The values of one submission are
in a file of their own, which only its owner can read.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ...common.errors import DistError

MASK = "••••"
# No plural of TOKEN: many commands have max_tokens.
_WORD = r"(?:TOKEN|(?:KEY|SECRET|PASSWORD|PASSWD|CREDENTIAL)S?)(?![A-Z])"
_NAME = re.compile(_WORD, re.IGNORECASE)
_DIRECTIVE = re.compile(
    rf"^(#\s*(?:JDIST|SBATCH|GFLOW)\s.*?(?:{_WORD}\w*=|--notify\b.*?://)).*$".encode(),
    re.IGNORECASE | re.MULTILINE,
)


class SecretValues(msgspec.Struct):
    """The hidden values of one submission."""

    environment: dict[str, str] = {}
    params: dict[str, dict[str, str]] = {}
    """By name of a parameter, and by what is shown instead of the value."""
    notify: str = ""
    """The URL of ``--notify``."""

    def params_of(self, shown: Mapping[str, str]) -> dict[str, str]:
        """Return the true parameters of a job."""
        return {name: self.params.get(name, {}).get(text, text) for name, text in shown.items()}


def hide_secrets(
    environment: Mapping[str, str], rows: Sequence[Mapping[str, str]]
) -> tuple[dict[str, str], list[dict[str, str]], SecretValues]:
    """Return variables and parameters with `MASK` for values of secrets, and these values."""
    hidden = SecretValues({name: environment[name] for name in environment if _NAME.search(name)})
    shown: dict[str, dict[str, str]] = {}
    for name in filter(_NAME.search, rows[0]):
        values = [*dict.fromkeys(row[name] for row in rows)]
        numbers = [""] if len(values) == 1 else map(str, range(1, len(values) + 1))
        shown[name] = {value: MASK + number for value, number in zip(values, numbers, strict=True)}
        hidden.params[name] = {text: value for value, text in shown[name].items()}
    masked = [
        {name: shown.get(name, {}).get(value, value) for name, value in row.items()} for row in rows
    ]
    return {**environment, **dict.fromkeys(hidden.environment, MASK)}, masked, hidden


def hide_in_option(text: str) -> str:
    """Return a ``NAME=VALUE`` with `MASK` for the value of a secret."""
    name, equals, _ = text.partition("=")
    return f"{name}={MASK}" if equals and _NAME.search(name) else text


def hide_in_directives(script: bytes) -> bytes:
    """Return a script with `MASK` for the rest of a line of options, from a secret's value on."""
    return _DIRECTIVE.sub(rb"\1" + MASK.encode(), script)


def keep_secrets(folder: Path, hidden: SecretValues) -> str:
    """Write the values into a file of the queue's folder; return its name, empty without any."""
    if hidden == SecretValues():
        return ""
    name = os.urandom(8).hex()
    (folder / "secrets").mkdir(mode=0o700, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(folder / "secrets" / name, flags, 0o600), "w") as file:
        json.dump(msgspec.to_builtins(hidden), file)  # unlike msgspec, with any bytes
        file.flush()
        os.fsync(file.fileno())  # or the job would be kept without it after a power loss
    return name


def read_secrets(folder: Path, name: str) -> SecretValues:
    """Return the values that `keep_secrets` has written."""
    if not name:
        return SecretValues()
    path = folder / "secrets" / name
    try:
        return msgspec.convert(json.loads(path.read_bytes()), SecretValues)
    except (OSError, ValueError) as error:
        message = f"The secrets of the job in {path} cannot be read: {error}."
        raise DistError("queue_unusable", message, "Submit the job again.") from error
