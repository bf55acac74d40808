"""The private file in Jupyter's runtime folder by which kernels find their server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from jupyter_core.paths import jupyter_runtime_dir

FILE_PREFIX = "jupyter-dist-"
SECRET_SCHEME = "JupyterDist"
"""``Authorization: JupyterDist SECRET`` opens our routes, and nothing else of the server."""

_LOCAL = {"": "localhost", "*": "localhost", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""Where a server that listens everywhere is reached, and nobody else's could be."""


def local_url(serverapp: Any) -> str:
    """Return the URL under which a process on this machine reaches the server."""
    scheme = "https" if serverapp.certfile else "http"
    host = _LOCAL.get(serverapp.ip, serverapp.ip)
    host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host}:{serverapp.port}{serverapp.base_url}"


def write_discovery_file(serverapp: Any, secret: str) -> Path:
    """Tell this user's kernels, and nobody else, where we are.

    Returns
    -------
    Path
        The file, for removal at the end.
    """
    path = Path(jupyter_runtime_dir(), f"{FILE_PREFIX}{os.getpid()}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    content = {
        "url": local_url(serverapp),
        "secret": secret,
        "certfile": serverapp.certfile,
        "pid": os.getpid(),
    }
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w") as file:
        json.dump(content, file)
    return path


def read_discovery_files() -> Iterator[dict[str, Any]]:
    """Yield what running servers of this user wrote, the parent of this process first."""
    files = Path(jupyter_runtime_dir()).glob(f"{FILE_PREFIX}*.json")
    parent = FILE_PREFIX + os.environ.get("JPY_PARENT_PID", "")
    for file in sorted(files, key=lambda file: file.stem != parent):
        try:
            known = json.loads(file.read_text())
            alive = psutil.pid_exists(known["pid"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # its server is just writing or removing it, or it is no file of ours
        if alive:
            yield known
