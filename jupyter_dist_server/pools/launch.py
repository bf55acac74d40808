"""Starting an agent on this machine: the seam where another engine would start it elsewhere."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

from ..errors import DistError
from ..interpreter import python_command
from .environment import agent_environment, thread_limits
from .folder import AGENT_SOCKET, CONFIG, new_key, write_private
from .placement import Placement
from .processes import ProcessRef
from .records import PoolRecord
from .request import PoolRequest


def launch_agent(
    folder: Path, record: PoolRecord, request: PoolRequest, placement: Placement, timeout: float
) -> subprocess.Popen[bytes]:
    """Start the agent of a pool.

    Parameters
    ----------
    folder : Path
        The pool's private folder; the agent's socket listens there on return.
    record : PoolRecord
        What was decided.
    request : PoolRequest
        What was asked for.
    placement : Placement
        Where ranks go.
    timeout : float
        Seconds that the start may take.

    Raises
    ------
    DistError
        If the interpreter cannot be started, or the folder cannot be written.
    """
    base = dict(os.environ) if request.base_env is None else request.base_env
    config = {
        "id": record.id,
        "key": new_key(),
        "world_size": record.world_size,
        "backend": record.backend,
        "start_method": record.start_method,
        "timeout": timeout,
        "cwd": record.cwd,
        "thread_limits": thread_limits(base, request.env),
        "owner": vars(ProcessRef.of(os.getpid())),
        "ranks": [{"device": rank.device, "gpu": rank.gpu} for rank in record.ranks],
    }
    write_private(folder / CONFIG, config)
    # The socket is bound here and handed over, so that it can be connected to at once.
    with socket.socket(socket.AF_UNIX) as listener, open(folder / "agent.log", "wb") as log:
        listener.bind(str(folder / AGENT_SOCKET))
        listener.listen(64)
        command = python_command(record.python, f"{__package__}.agent")
        try:
            return subprocess.Popen(
                [*command, str(folder), str(listener.fileno())],
                pass_fds=[listener.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=record.cwd,
                env=agent_environment(base, request.env, placement),
                start_new_session=True,
            )
        except OSError as error:
            raise DistError(
                "agent_failed",
                f"{record.python} cannot be started in {record.cwd}: {error.strerror}.",
                "Check the kernel's interpreter and the notebook's folder.",
            ) from error
