"""An environment of its own for each server and kernel, by which its processes are known."""

from __future__ import annotations

import os
import sys
import uuid
from contextlib import suppress
from pathlib import Path

import psutil

TAG = "JUPYTER_DIST_TEST"


def environment(home: Path, **extra: str) -> dict[str, str]:
    """Return an environment of its own for one server or kernel, and tag its processes."""
    home.mkdir(parents=True, exist_ok=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "JPY", "PYTEST"))}
    env |= {f"JUPYTER_{kind}_DIR": str(home / kind.lower()) for kind in ("RUNTIME", "DATA")}
    # jupyter and python beside this interpreter must be found by kernelspecs and servers.
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    env |= {"IPYTHONDIR": str(home / "ipython"), TAG: uuid.uuid4().hex}
    env |= {"XDG_STATE_HOME": str(home / "state")}
    env |= {"JUPYTER_CONFIG_DIR": str(home / "config"), "JUPYTER_NO_CONFIG": ""}
    return env | extra


def tagged(env: dict[str, str]) -> list[psutil.Process]:
    """Return the living processes that were started, directly or not, with `env`."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(TAG) == env[TAG] and (
                process.status() != psutil.STATUS_ZOMBIE
            ):
                found.append(process)
    return found


def named(env: dict[str, str], name: str) -> list[psutil.Process]:
    """Return those of them that have a name."""
    found = []
    for process in tagged(env):
        with suppress(psutil.Error):  # it may end meanwhile
            if process.name() == name:
                found.append(process)
    return found


def lives(process: psutil.Process) -> bool:
    """Return whether a process has not ended; one that its parent has not waited for yet has."""
    with suppress(psutil.Error):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False
