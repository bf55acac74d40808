"""A notebook's kernel on the first host, as tests and the demo drive it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

from ..waiting import wait_for
from .hosts import Hosts


class Lab:
    """A shell on the first host.

    Parameters
    ----------
    hosts : Hosts
        All of them.
    *within : str
        A command that runs it, such as ``salloc``.
    """

    def __init__(self, hosts: Hosts, *within: str) -> None:
        self._hosts = hosts
        shell = [*within, sys.executable, "-m", f"{__package__}.shell"]
        self._process = subprocess.Popen(
            hosts.command(1, *shell),
            env=hosts.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self, cell: str) -> None:
        """Send a cell."""
        assert self._process.stdin
        print(json.dumps(cell), file=self._process.stdin, flush=True)

    def end(self) -> dict[str, Any]:
        """Wait for the cell's end."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, "the shell has ended"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def run(self, cell: str) -> dict[str, Any]:
        """Run a cell."""
        self.begin(cell)
        return self.end()

    def ok(self, cell: str) -> str:
        """Run a cell that does not fail; return what it shows."""
        answer = self.run(cell)
        assert not answer["error"], answer
        text: str = answer["text"]
        return text

    def stop_endless_cell(self, rank: int) -> dict[str, Any]:
        """Have one rank run for ever and the others wait for it; stop them; return how it ended.

        All have begun the cell by then.
        """
        pid = int(self.ok("import os; print(os.getpid())"))
        begun = self._hosts.base / "begun"
        self.begin(
            f"%%distributed\ndist.barrier()\nif rank == {rank}:\n    open('{begun}', 'w').close()\n"
            "    while True: pass\ndist.barrier()"
        )
        wait_for(begun.exists, "the cell's begin")
        begun.unlink()
        os.kill(pid, signal.SIGINT)
        return self.end()

    def close(self) -> None:
        """End the shell."""
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
