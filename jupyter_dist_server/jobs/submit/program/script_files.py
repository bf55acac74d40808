"""Scripts and notebooks that jobs run: copies, so that you can edit what you have submitted."""

from __future__ import annotations

import time
from pathlib import Path

from ....common.errors import DistError
from ...store.store import Store

_LONGEST_COPY = 64 * 2**20


def is_binary(path: Path) -> bool:
    """Tell whether a file is a program, and no script.

    Raises
    ------
    DistError
        If it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return b"\0" in file.read(1024)
    except OSError as error:
        raise DistError("bad_script", f"{path} cannot be read: {error.strerror}.") from error


def keep_copy(store: Store, script: Path, is_script: bool) -> str:
    """Copy a file, so that what runs is what was submitted; return the copy's path.

    Raises
    ------
    DistError
        If it cannot be read, or is too long.
    """
    try:
        with script.open("rb") as file:
            body = file.read(_LONGEST_COPY + 1)
    except OSError as error:
        raise DistError("bad_script", f"{script} cannot be read: {error.strerror}.") from error
    if len(body) > _LONGEST_COPY:
        raise DistError("bad_script", f"{script} is longer than 64 MiB.")
    if is_script and not body.startswith(b"#!"):
        shell = b"#!/usr/bin/env python\n" if script.suffix == ".py" else b"#!/bin/bash\n"
        body = shell + body
    folder = store.folder / "scripts"
    folder.mkdir(mode=0o700, exist_ok=True)
    copy = folder / f"{time.time_ns()}-{script.name}"
    copy.write_bytes(body)
    copy.chmod(0o700)
    return str(copy)
