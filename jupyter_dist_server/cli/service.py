"""``jdist service``: waiting jobs start after a restart of the machine, also before you log in."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from ..common.errors import DistError
from ..common.files.shared_folder import FOLDER
from ..common.patience import patience
from ..common.processes.python_command import python_command
from ..jobs.store.store import Store
from .queue import refresh

NAME = "jupyter-dist-queue.service"
_MARK = "# jupyter-dist-queue"
_START = "jupyter_dist_server.cli.service"


def add_service_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist service``."""
    parser.add_argument(
        "action",
        choices=("install", "remove"),
        metavar="install|remove",
        help="install or remove it",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")


def run_service(options: argparse.Namespace, store: Store) -> int:
    """Install or remove a systemd user unit or, without systemd, a line in the crontab."""
    install = options.action == "install"
    if shutil.which("systemctl") and _run("systemctl", "--user", "show-environment"):
        said = _unit(install)
    elif shutil.which("crontab"):
        said = _cron(install)
    else:
        raise DistError(
            "no_service",
            "This machine has neither systemd for users nor cron.",
            "After a restart, jobs wait until you run any jdist command.",
        )
    print(json.dumps({"installed": install, "said": said}) if options.json else "\n".join(said))
    return 0


def is_installed() -> bool:
    """Tell whether waiting jobs start after a restart of the machine."""
    return _unit_path().exists() or _MARK in _crontab()


def _unit_path() -> Path:
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return home / "systemd" / "user" / NAME


def _crontab() -> str:
    if not shutil.which("crontab"):
        return ""
    return subprocess.run(
        ["crontab", "-l"], capture_output=True, text=True, timeout=patience.program, check=False
    ).stdout


def _unit(install: bool) -> list[str]:
    path = _unit_path()
    if not install:
        _run("systemctl", "--user", "disable", NAME)
        path.unlink(missing_ok=True)
        return [f"Removed {path}."]
    path.parent.mkdir(parents=True, exist_ok=True)
    variables = "".join(f'Environment="{text}"\n' for text in _variables())
    # With KillMode, the dispatcher and its jobs survive a stop of the unit.
    path.write_text(
        "[Unit]\nDescription=Starts waiting jobs of Jupyter Dist\n\n[Service]\nType=oneshot\n"
        f"RemainAfterExit=yes\nKillMode=process\n{variables}ExecStart={_command()}\n\n"
        "[Install]\nWantedBy=default.target\n"
    )
    for action in (["daemon-reload"], ["enable", NAME]):
        if not _run("systemctl", "--user", *action):
            raise DistError("no_service", f"systemctl --user {action[0]} failed.", f"See {path}.")
    said = [f"Installed {path}. Waiting jobs start when the machine does."]
    if not _run("loginctl", "enable-linger"):
        late = "They start when you log in, until an administrator runs loginctl enable-linger."
        said.append(late)
    return said


def _cron(install: bool) -> list[str]:
    lines = [line for line in _crontab().splitlines() if _MARK not in line]
    if install:
        variables = " ".join(map(shlex.quote, _variables()))
        command = _command().replace("%", "\\%")  # which cron takes for the end of a line
        lines.append(f"@reboot env {variables} {command} {_MARK}".replace("  ", " "))
    text = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(
        ["crontab", "-"], input=text, text=True, timeout=patience.program, check=False
    )
    if done.returncode:
        raise DistError("no_service", "crontab refused the change.", "See its message above.")
    return ["Waiting jobs start when the machine does (crontab)." if install else "Removed."]


def _command() -> str:
    return shlex.join(python_command(sys.executable, _START))


def _variables() -> list[str]:
    """Return the variables that say where the queue and the leases are."""
    names = ("XDG_STATE_HOME", FOLDER)
    return [f"{name}={os.environ[name]}" for name in names if os.environ.get(name)]


def _run(*command: str) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=patience.program, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def main() -> None:
    """Start waiting jobs."""
    from ..jobs.store.store_folder import store_folder

    store = Store(store_folder())
    refresh(store)
    store.close()
