"""Local users of this machine, which exist for a test."""

from __future__ import annotations

import pwd
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from ..environment import lives


@contextmanager
def reachable(*paths: Path) -> Iterator[None]:
    """Let all users reach files in folders that only root may enter, such as root's home."""
    folders = {parent for path in paths for parent in (*path.parents, *path.resolve().parents)}
    before = {folder: stat.S_IMODE(folder.stat().st_mode) for folder in folders}
    closed = {folder: mode for folder, mode in before.items() if not mode & stat.S_IXOTH}
    try:
        for folder, mode in closed.items():
            folder.chmod(mode | stat.S_IXOTH)
        yield
    finally:
        for folder, mode in closed.items():
            folder.chmod(mode)


@contextmanager
def local_users(homes: Path, *names: str) -> Iterator[None]:
    """Make users with their homes in a folder; remove them, and end what they still run."""
    made = []
    try:
        for name in names:
            shell = ("--shell", "/bin/bash")
            home = ("--create-home", "--home-dir", str(homes / name))
            subprocess.run(["useradd", *home, *shell, name], check=True)
            made.append(name)
        yield
    finally:
        for name in made:
            for process in processes_of(name):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            subprocess.run(["userdel", "--force", name], check=True)


def processes_of(name: str) -> list[psutil.Process]:
    """Return the living processes of a user."""
    uid, found = pwd.getpwnam(name).pw_uid, []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess):
            if process.uids().real == uid and lives(process):
                found.append(process)
    return found
