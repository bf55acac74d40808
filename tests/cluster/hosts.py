"""Hosts on this machine: each has a network, a host name and temporary folder of its own.

They are joined by a bridge.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import psutil

from ..waiting import wait_for

NEEDED = ("ip", "nsenter", "unshare")


def why_no_hosts() -> str:
    """Say why there can be no such hosts here; empty if there can."""
    if os.geteuid() != 0:
        return "needs root, for network namespaces"
    if missing := [name for name in NEEDED if not shutil.which(name)]:
        return f"needs {', '.join(missing)}: apt-get install iproute2"
    made = subprocess.run(["unshare", "--net", "--uts", "--mount", "true"], capture_output=True)
    return "" if made.returncode == 0 else f"no namespaces here: {made.stderr.decode().strip()}"


class Hosts:
    """Hosts ``n1``, ``n2`` and so on.

    Parameters
    ----------
    count : int
        How many.
    delays : dict
        By the number of a host, the seconds that each message takes to it, and from it.

    Attributes
    ----------
    variables : dict
        Added to the environment of programs on the hosts.
    """

    def __init__(self, count: int = 2, delays: Mapping[int, float] | None = None) -> None:
        self.numbers = range(1, count + 1)
        self._delays = delays or {}
        self.base = Path(tempfile.mkdtemp(prefix="jh-"))
        self.net = f"10.{100 + secrets.randbelow(100)}.{secrets.randbelow(250)}"
        self.variables = {"HOME": str(self.base / "home"), "TMPDIR": str(self.base / "tmp")}
        self._tag = secrets.token_hex(2)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._namespaces: list[subprocess.Popen[bytes]] = []
        for name in ("run", "log", "tmp", "home"):
            (self.base / name).mkdir()
        try:
            self._make_network()
        except BaseException:
            self.close()
            raise

    def _make_network(self) -> None:
        bridge = f"jb{self._tag}"
        _run("ip", "link", "add", bridge, "type", "bridge")
        _run("ip", "addr", "add", f"{self.net}.254/24", "dev", bridge)
        _run("ip", "link", "set", bridge, "up")
        for number in self.numbers:
            # The hosts last as long as this process; each has files of its own in its /…/tmp.
            made = f"hostname n{number} && mount -t tmpfs tmpfs {self.base}/tmp && echo made"
            host = subprocess.Popen(
                ["unshare", "--net", "--uts", "--mount", "sh", "-c", f"{made} && exec cat"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            self._namespaces.append(host)
            assert host.stdout and host.stdout.readline() == b"made\n"
            self._make_cable(number, str(host.pid))
            _run("ip", "link", "set", self.link(number), "master", bridge, "up")
            for words in (
                "link set lo up",
                f"addr add {self.address(number)}/24 dev eth0",
                "link set eth0 up",
            ):
                self.run(number, "ip", *words.split())

    def _make_cable(self, number: int, pid: str) -> None:
        link = self.link(number)
        if delay := self._delays.get(number):
            words = (sys.executable, "-m", f"{__package__}.slow_link", link, "eth0", pid)
            cable = self.daemon(f"link{number}", *words, str(delay))
            made = self.base / "log" / f"link{number}.out"
            wait_for(lambda: bool(made.read_text()) or cable.poll() is not None, "a slow link")
            assert made.read_text() == "made\n", made.read_text()
        else:
            _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", pid)

    def address(self, number: int) -> str:
        """Return where the others reach a host."""
        return f"{self.net}.{number}"

    def link(self, number: int) -> str:
        """Return the end of a host's cable that is in the bridge."""
        return f"jv{self._tag}{number}"

    def cut(self, number: int) -> None:
        """Pull a host's cable."""
        _run("ip", "link", "set", self.link(number), "down")

    def mend(self, number: int) -> None:
        """Plug it in again."""
        _run("ip", "link", "set", self.link(number), "up")

    def throttle(self, number: int, megabits: int) -> None:
        """Let so much a second through a host's cable, each way."""
        rate = ("root", "tbf", "rate", f"{megabits}mbit", "burst", "1mb", "latency", "50ms")
        self.run(number, "tc", "qdisc", "replace", "dev", "eth0", *rate)
        _run("tc", "qdisc", "replace", "dev", self.link(number), *rate)

    def traffic(self, number: int) -> tuple[int, int]:
        """Return how many bytes went to a host, and came from it."""
        counters = Path(f"/sys/class/net/{self.link(number)}/statistics")
        to, since = ((counters / f"{way}_bytes").read_text() for way in ("tx", "rx"))
        return int(to), int(since)

    @property
    def environment(self) -> dict[str, str]:
        """Return what programs on the hosts need."""
        return {**os.environ, **self.variables}

    def command(self, number: int, *words: str) -> list[str]:
        """Return a command that runs another one on a host."""
        pid = str(self._namespaces[number - 1].pid)
        return ["nsenter", f"--target={pid}", "--net", "--uts", "--mount", *words]

    def run(self, number: int, *words: str) -> str:
        """Run a command on a host, and return what it says."""
        return _run(*self.command(number, *words), env=self.environment)

    def folders(self, number: int) -> list[str]:
        """Return the private folders of pools on a host."""
        names = self.run(number, "ls", str(self.base / "tmp")).split()
        return [name for name in names if "jdist" in name]

    def processes(self, number: int, name: str = "") -> list[psutil.Process]:
        """Return the processes on a host, or those with some name."""
        host = self._namespaces[number - 1].pid
        ours = os.readlink(f"/proc/{host}/ns/uts")
        found = []
        for process in psutil.process_iter(["name"]):
            if process.pid != host and name in ("", process.info["name"]):
                with contextlib.suppress(OSError):  # it has just ended, or is not ours
                    if os.readlink(f"/proc/{process.pid}/ns/uts") == ours:
                        found.append(process)
        return found

    def daemon(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """Start a process that runs as long as the hosts; ``log/NAME.out`` has what it says."""
        with (self.base / "log" / f"{name}.out").open("wb") as log:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def close(self) -> None:
        """Remove all that was made."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            _wait(process)
        for number, host in enumerate(self._namespaces, 1):
            for left in self.processes(number):
                with contextlib.suppress(psutil.NoSuchProcess):
                    left.kill()
            host.terminate()
            _wait(host)
        for link in (*map(self.link, self.numbers), f"jb{self._tag}"):
            subprocess.run(["ip", "link", "del", link], capture_output=True, check=False)
        shutil.rmtree(self.base, ignore_errors=True)


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _run(*words: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stdout} {done.stderr}"
    return done.stdout
