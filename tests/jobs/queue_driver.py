"""Driving a queue as people do, by ``jdist``."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import psutil

from jupyter_dist_server.cli.main import main

from ..waiting import PATIENCE, wait_for

JDIST = "from jupyter_dist_server.cli.main import script; script()"
"""What the program ``jdist`` is."""


UNTIL_GO = ["sh", "-c", "while [ ! -e go ]; do sleep 0.05; done"]

OTHER = 64321
AS_OTHER = [
    *("setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups"),
    # Python may lie where only root may read.
    *("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"),
]
"""Starts a command as another user."""


def hear_signals() -> None:
    """Hear signals as a program in a terminal does: ``nohup`` and ``&`` have them ignored."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def shell(text: str, folder: Path) -> str:
    """Run lines of bash, which have to succeed; return what they print."""
    done = subprocess.run(
        ["bash", "-e", "-c", text],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, text + done.stdout + done.stderr
    return done.stdout


class Queue:
    """A user's queue, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *args: str, code: int = 0) -> str:
        """Run a command; in this process, as Python takes long to start."""
        said = io.StringIO()
        with (
            open(os.devnull) as nothing,
            mock.patch("sys.stdin", nothing),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
        ):
            assert main(args) == code, said.getvalue()
        return said.getvalue()

    def run_program(self, *args: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-c", JDIST, *args],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def program(self) -> Path:
        """Return the program ``jdist``, for jobs and shells."""
        path = self.folder / "jdist"
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{JDIST}" "$@"\n')
        path.chmod(0o755)
        return path

    def submit(self, *args: str) -> str:
        said = self.run("submit", "--parsable", *args)
        return said.split()[0]  # a notice may stand below

    def show(self, job: str) -> dict[str, Any]:
        found: list[dict[str, Any]] = json.loads(self.run("show", "--json", job))
        return found[0]

    def until(self, job: str, *states: str) -> dict[str, Any]:
        wait_for(lambda: self.show(job)["state"] in states, f"job {job} is {states}")
        return self.show(job)

    def ended(self, job: str) -> dict[str, Any]:
        self.run("wait", "--timeout", str(PATIENCE), job, code=self._code(job))
        return self.show(job)

    def _code(self, job: str) -> int:
        wait_for(lambda: self.show(job)["ended"], f"the end of job {job}")
        return 0 if self.show(job)["state"] == "COMPLETED" else 1

    def output(self, job: str) -> str:
        return (self.folder / f"jdist-{job}.out").read_text()

    def processes(self, name: str | None = None) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                is_named = name in (None, process.name())
                if is_named and process.environ().get("XDG_STATE_HOME") == str(self.folder):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def end(self) -> None:
        """End whatever belongs to it."""
        while left := self.processes():
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left, PATIENCE)


class OtherQueue(Queue):
    """The queue of another user.

    Parameters
    ----------
    folder : Path
        Whose owner that user is.
    inside : sequence of str
        What starts a command where the user is: in a container, say.
    """

    def __init__(self, folder: Path, inside: Sequence[str] = ()) -> None:
        super().__init__(folder)
        self.inside = inside

    def run(self, *args: str, code: int = 0) -> str:
        environment = os.environ | {"XDG_STATE_HOME": str(self.folder), "HOME": str(self.folder)}
        done = subprocess.run(
            [*self.inside, *AS_OTHER, sys.executable, "-c", JDIST, *args],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def dispatcher(self) -> psutil.Process:
        (found,) = self.processes("dist-dispatcher")
        return found
