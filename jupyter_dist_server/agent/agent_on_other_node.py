"""The agent on another node than the pool's first: what an engine starts there.

It lives as long as it hears the first node's agent on its stdin, see `agent.nodes`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

import msgspec

from ..common import pool_folder
from ..common.errors import DistError
from ..common.package_version import version
from ..common.patience import patience
from ..common.processes.process_ref import boot_id, call_ourselves
from ..common.protocol.node_messages import NO_FOLDER, decode_node_orders
from ..common.protocol.pool_file import CONFIG, PoolFile


def main() -> NoReturn:
    """Read which pool it is, import torch, and be its agent here."""
    call_ourselves("dist-agent")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The threads of Ray's actors block it, and our ranks would inherit that.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    said = os.dup(1)
    os.dup2(2, 1)  # what a library prints while it is imported is no message
    try:
        orders = decode_node_orders(_first_line(), version())
    except ValueError as error:
        sys.exit(str(error))
    # So that what is left if this process is killed is removed here, as any pool's is.
    pool = msgspec.structs.replace(orders, host=socket.gethostname(), boot=boot_id())
    from .nodes.request_lease import LeaseRequest
    from .ranks.start_ranks import preload
    from .serve import serve

    asked = LeaseRequest(pool)  # meanwhile
    failure = preload()
    pool, lease, no_lease = asked.wait()
    with contextlib.suppress(OSError):  # `create_folder` says what is wrong with their place
        _sweep()
    try:
        folder = pool_folder.create_folder()
        try:
            serve(_listen(folder, pool), lease, failure or no_lease, (0, said))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except DistError as error:
        sys.exit(f"{NO_FOLDER}{error}")
    os._exit(0)


def _listen(folder: Path, pool: PoolFile) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(folder / pool_folder.AGENT_SOCKET))
        listener.listen(64)
    except OSError as error:  # the disk is full
        raise pool_folder.unwritable(str(folder), error) from error
    pool_folder.write_private(folder / CONFIG, pool)  # at last, see `_sweep`
    return listener


def _sweep() -> None:
    """Remove the folders of killed agents on this node: nobody listens there."""
    for folder in pool_folder.our_folders():
        try:
            config = pool_folder.read_config(folder)
            if config.node and config.host == socket.gethostname():
                with socket.socket(socket.AF_UNIX) as agent:
                    agent.settimeout(patience.answer)
                    agent.connect(str(folder / pool_folder.AGENT_SOCKET))
        except ConnectionRefusedError:
            shutil.rmtree(folder, ignore_errors=True)
        except (OSError, ValueError):
            continue  # it is not ours, or its agent is busy


def _first_line() -> bytes:
    """Read one line, and no byte after it: what follows is for the agent."""
    line = bytearray()
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    return bytes(line)
