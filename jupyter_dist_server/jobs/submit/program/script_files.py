"""Scripts and notebooks that jobs run: Python's where they lie, copies of all others."""

from __future__ import annotations

import os
import time
from pathlib import Path

from ....common.errors import DistError
from ...job_command import interpreter_of
from ...store.store import Store

_LONGEST_COPY = 64 * 2**20


def is_binary(path: Path) -> bool:
    """Tell whether a file is a program, and no script."""
    try:
        with path.open("rb") as file:
            return b"\0" in file.read(1024)
    except OSError as error:
        raise DistError("bad_script", f"{path} cannot be read: {error.strerror}.") from error


def check_start(script: Path, *, is_certain: bool) -> None:
    """Refuse a script with DOS line breaks, or without its interpreter if that `is_certain`."""
    with script.open("rb") as file:
        line = file.readline(_LONGEST_COPY)
    # Python itself reads such lines.
    if line.endswith(b"\r\n") and (line.startswith(b"#!") or script.suffix != ".py"):
        message = f"{script.name} has DOS line breaks (\\r\\n)."
        raise DistError("bad_script", message, f"Convert it: sed -i 's/\\r$//' {script.name}")
    (needed, *_) = interpreter_of(str(script)) or [""]
    if is_certain and os.path.isabs(needed) and not os.path.exists(needed):
        message = f"The interpreter {needed} of {script.name} does not exist."
        raise DistError("bad_script", message, "Change its first line.")


def command_in_place(script: Path) -> list[str]:
    """Return what runs a Python script where it lies, so that it can import its neighbours."""
    return [*(interpreter_of(str(script)) or ["python"]), os.path.abspath(script)]


def keep_copy(store: Store, script: Path, is_script: bool) -> str:
    """Copy a file, so that what runs is what was submitted; return the copy's path."""
    try:
        with script.open("rb") as file:
            body = file.read(_LONGEST_COPY + 1)
    except OSError as error:
        raise DistError("bad_script", f"{script} cannot be read: {error.strerror}.") from error
    if len(body) > _LONGEST_COPY:
        raise DistError("bad_script", f"{script} is longer than 64 MiB.")
    if is_script and not body.startswith(b"#!"):
        body = b"#!/bin/bash\n" + body
    folder = store.folder / "scripts"
    folder.mkdir(mode=0o700, exist_ok=True)
    copy = folder / f"{time.time_ns()}-{script.name}"
    copy.write_bytes(body)
    copy.chmod(0o700)
    return str(copy)
