"""Fixtures: a folder for leases, and processes that do something in it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, settings

from jupyter_dist_server.common.files.shared_folder import FOLDER
from jupyter_dist_server.jobs.store.store import Store

from ..fake_nvml.build import State
from .queue_driver import OTHER, OtherQueue, Queue

# A busy machine is no fault of what is tested.
settings.register_profile(
    "any machine",
    parent=settings.default,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any machine")


@pytest.fixture
def leases(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return where the folder for leases will be: a place that all users can reach."""
    parent = Path(tempfile.mkdtemp(dir="/tmp"))
    parent.chmod(0o1777)
    monkeypatch.setenv(FOLDER, str(parent / "leases"))
    yield parent / "leases"
    for child in [*_children]:  # of a test that has failed
        child.kill()
    shutil.rmtree(parent)


@pytest.fixture
def queue(tmp_path: Path, leases: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    ours = Queue(tmp_path)
    yield ours
    ours.end()
    for log in tmp_path.glob("jupyter-dist/*/dispatcher.log"):
        print(log.read_text())  # shown if the test fails


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Return a store that no queue of a test uses."""
    ours = Store(tmp_path / "queue")
    yield ours
    ours.close()


@pytest.fixture
def folder_of_other(leases: Path, fake_nvml: State) -> Path:
    """Return a folder of another user, on a machine with eight GPUs."""
    if not shutil.which("setpriv"):
        pytest.skip("needs setpriv")
    fake_nvml.write(gpus=8, memory=80 << 30)
    for path in (fake_nvml.path, fake_nvml.log):
        path.touch()
        path.chmod(0o666)
    folder = leases.parent / "other"
    folder.mkdir()
    os.chown(folder, OTHER, OTHER)
    return folder


@pytest.fixture
def other(queue: Queue, folder_of_other: Path) -> Iterator[OtherQueue]:
    yield from _until_ended(OtherQueue(folder_of_other))


@pytest.fixture
def contained(queue: Queue, folder_of_other: Path) -> Iterator[OtherQueue]:
    """Return the queue of another user who sees no process of ours, and other pids than we."""
    make = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]
    container = subprocess.Popen(
        [*make, "mount -o remount,hidepid=2 /proc && echo up && exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with container:
        assert container.stdin and container.stdout
        if container.stdout.readline() != b"up\n":
            pytest.skip("namespaces cannot be made here")
        (init,) = psutil.Process(container.pid).children()
        inside = [
            "nsenter",
            f"--target={init.pid}",
            "--pid",
            "--mount",
            f"--wdns={folder_of_other}",
        ]
        yield from _until_ended(OtherQueue(folder_of_other, [*inside, f"--wdns={folder_of_other}"]))
        container.stdin.close()


def _until_ended(theirs: OtherQueue) -> Iterator[OtherQueue]:
    yield theirs
    theirs.end()
    for log in theirs.folder.glob("jupyter-dist/*/dispatcher.log"):
        print(log.read_text())


_children: set[Child] = set()


class Child:
    """A process that does something, says the result, and goes on until it is told to end.

    Parameters
    ----------
    work : callable
        What it does; what that returns is kept there, and is `said` if it has a type of JSON's.
    user : int or None
        As whom.
    """

    def __init__(self, work: Callable[[], Any], user: int | None = None) -> None:
        answer, answers = os.pipe()
        ended, self._end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(answer)
                os.close(self._end)
                if user is not None:
                    os.setgroups([])
                    os.setgid(user)
                    os.setuid(user)
                kept = work()
                plain = isinstance(kept, str | int | list | dict)
                os.write(answers, json.dumps(kept if plain else None).encode())
                os.close(answers)
                os.read(ended, 1)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        _children.add(self)
        os.close(ended)
        os.close(answers)
        with open(answer, "rb") as file:
            said = file.read()
        self.said: Any = json.loads(said) if said else None
        self.alive = bool(said)

    def end(self) -> int:
        """Let it end by itself; return its exit code, negative for a signal."""
        os.close(self._end)
        self.alive = False
        _children.discard(self)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def kill(self) -> int:
        """Kill it."""
        os.kill(self.pid, signal.SIGKILL)
        return self.end()
