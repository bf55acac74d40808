"""The private file in Jupyter's runtime folder by which kernels find their server."""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from jupyter_core.paths import jupyter_runtime_dir

from .processes.process_ref import ProcessRef
from .protocol.decode_message import reader

SECRET_SCHEME = "JupyterDist"
"""``Authorization: JupyterDist SECRET`` opens our routes, and nothing else of the server."""

CHALLENGE, PROOF = "Jupyter-Dist-Challenge", "Jupyter-Dist-Proof"
"""Headers: what a kernel sends before all else, and what only its server can answer."""

_LOCAL = {"": "localhost", "*": "localhost", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""Where a server that listens on all interfaces is reached, so that it cannot be another's."""


class DiscoveryFile(msgspec.Struct, frozen=True):
    """Where a server is, and the secret that opens our routes."""

    url: str
    """Local, with its base URL."""
    secret: str
    certfile: str
    """The server's own certificate; empty without TLS."""
    process: ProcessRef
    root: str = ""
    """The folder that it shows."""


_decode: Callable[[bytes], DiscoveryFile] = reader(DiscoveryFile)


def local_url(serverapp: Any) -> str:
    """Return the URL under which a process on this machine reaches the server."""
    scheme = "https" if serverapp.certfile else "http"
    host = _LOCAL.get(serverapp.ip, serverapp.ip)
    host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host}:{serverapp.port}{serverapp.base_url}"


def write_discovery_file(serverapp: Any, secret: str) -> Path:
    """Write where we are, for this user's kernels alone; return the file."""
    path = Path(jupyter_runtime_dir(), file_name(os.getpid()))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    process = ProcessRef.of(os.getpid())
    content = DiscoveryFile(
        local_url(serverapp), secret, serverapp.certfile or "", process, serverapp.root_dir
    )
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        file.write(msgspec.json.encode(content))
    return path


def file_name(pid: int | str, host: str = "") -> str:
    """Name a server's file: machines and containers that share a home folder have the same pids."""
    try:
        namespace = os.stat("/proc/self/ns/pid").st_ino
    except OSError:  # not on Linux
        namespace = 0
    return f"jupyter-dist-{host or socket.gethostname()}-{namespace}-{pid}.json"


def proof(secret: str, challenge: str) -> str:
    """Return what proves knowledge of the secret without revealing it."""
    message = f"server of {challenge}".encode()
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def read_discovery_files() -> Iterator[DiscoveryFile]:
    """Yield the files of running servers of this user, that of this process's parent first."""
    # The machine may have another name by now; which boot of it a file is of is in the file.
    files = Path(jupyter_runtime_dir()).glob(file_name("*", host="*"))
    parent = file_name(os.environ.get("JPY_PARENT_PID", ""), host="*")
    for path in sorted(files, key=lambda path: not path.match(parent)):
        try:
            content = _read(path)
        except (OSError, ValueError):
            continue  # its server is just writing or removing it, or it is no file of ours
        if content.process.find():
            yield content


def _read(path: Path) -> DiscoveryFile:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags), "rb") as file:
        about = os.fstat(file.fileno())
        if about.st_uid != os.getuid() or about.st_mode & 0o077 or not stat.S_ISREG(about.st_mode):
            raise PermissionError(1, f"{path} is not private to this user")
        return _decode(file.read())
