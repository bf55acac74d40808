"""Processes that go on without whoever starts them, and leave no zombie to one that stays."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...common.processes.python_command import python_command


def start_in_background(
    module: str,
    arguments: Sequence[str],
    log: Path,
    *,
    pass_fds: Sequence[int] = (),
    env: Mapping[str, str] | None = None,
) -> None:
    """Start a module of ours in a session of its own; its output is appended to `log`."""
    import subprocess  # not above: most commands find all running that they need
    import threading

    with log.open("ab") as output:
        process = subprocess.Popen(
            [*python_command(sys.executable, module), *arguments],
            pass_fds=pass_fds,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env=env,
            start_new_session=True,
        )
    threading.Thread(target=process.wait, name="jupyter-dist-reaper", daemon=True).start()
