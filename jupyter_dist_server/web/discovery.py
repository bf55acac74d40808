"""The private file by which this server's kernels find it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from jupyter_core.paths import jupyter_runtime_dir

from ..notebook.server_control import FILE_PREFIX

_ANY_ADDRESS = ("", "*", "0.0.0.0", "::", "localhost")


def local_url(serverapp: Any) -> str:
    """Return the URL under which a process on this machine reaches the server."""
    scheme = "https" if serverapp.certfile else "http"
    host = "127.0.0.1" if serverapp.ip in _ANY_ADDRESS else serverapp.ip
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
