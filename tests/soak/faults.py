"""What may happen: each fault begins, and ends again."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

import psutil

from ..waiting import PATIENCE
from .world import World

STRANGER = 64321
"""A user that is nobody."""
VICTIMS = ("rank", "rank", "rank", "agent", "zygote", "sampler", "kernel", "server")
"""Whom something happens to; a rank most often."""


class Fault:
    """Something that happens to a world.

    Attributes
    ----------
    name : str
        For the summary.
    costs : bool
        Whether variables of ranks, or a cell, may be lost.
    """

    name = ""
    costs = False

    def begin(self, world: World, rng: random.Random) -> None:
        """Let it happen, some time soon."""

    def end(self, world: World) -> None:
        """Let it be over."""

    def explains(self, error: str) -> bool:
        """Tell whether it is the truth that a failed cell says."""
        return False


class OnProcess(Fault):
    """A process is killed, or stopped and goes on before or after the person has recovered."""

    costs = True

    def __init__(self, what: str, victim: str) -> None:
        self.name = f"{what} {victim}"
        self.kills = what == "kill"
        self.victim = victim

    def begin(self, world: World, rng: random.Random) -> None:
        """Choose the process and the moment."""
        found = world.processes()[self.victim]
        self.index = rng.randrange(len(found)) if found else None
        self.process = found[self.index] if self.index is not None else None
        # A person's patience with a kernel or server that does not answer is without end.
        soon = self.victim in ("kernel", "server") or rng.random() < 0.5
        self._timers = [threading.Timer(rng.uniform(0, 0.4), self._happen)]
        if not self.kills and soon:
            self._timers.append(threading.Timer(rng.uniform(0.5, 4), self._go_on))
        for timer in self._timers:
            timer.start()

    def _happen(self) -> None:
        with suppress(psutil.NoSuchProcess):
            if self.process:
                self.process.send_signal(signal.SIGKILL if self.kills else signal.SIGSTOP)

    def _go_on(self) -> None:
        with suppress(psutil.NoSuchProcess):
            if self.process:
                self.process.resume()

    def settle(self) -> None:
        """Return when it has happened, and has been over if it is to be over soon."""
        for timer in self._timers:
            timer.join()
        if self.kills and self.process:
            psutil.wait_procs([self.process], timeout=PATIENCE)

    def end(self, world: World) -> None:
        """Let a stopped process go on: too late for those who have replaced it."""
        self.settle()
        if not self.kills:
            self._go_on()

    def explains(self, error: str) -> bool:
        """Tell whether it names what has happened, and nothing else."""
        said = re.search(r"Ranks? (\d+) died: killed by signal (\d+)", error)
        if said and (self.name != "kill rank" or int(said[1]) != self.index):
            # The ladder of a stop may end what does not stop; those who asked for it are told so.
            return False
        if self.victim == "rank" and re.search(rf"\brank {self.index}\b", error, re.IGNORECASE):
            return True
        if self.victim == "agent" and "agent" in error:
            return True
        pool_ended = "the pool has ended" in error or "No pool" in error
        return (self.kills and self.victim == "agent" and pool_ended) or "Interrupted" in error


class ClockStep(Fault):
    """The clock is set, by NTP say, and set back."""

    name = "clock step"

    def begin(self, world: World, rng: random.Random) -> None:
        """Step forwards or backwards."""
        self._step = rng.choice([-30.0, -2.0, 2.0, 30.0])
        time.clock_settime(time.CLOCK_REALTIME, time.time() + self._step)

    def end(self, world: World) -> None:
        """Step back, as far."""
        time.clock_settime(time.CLOCK_REALTIME, time.time() - self._step)


class FullDisk(Fault):
    """The disk of the temporary folder is full."""

    name = "full disk"
    costs = True

    def begin(self, world: World, rng: random.Random) -> None:
        """Fill it to the last byte."""
        self._filler = world.disk / "filler"
        with open(self._filler, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 16))
            except OSError as error:
                assert error.errno == errno.ENOSPC, error

    def end(self, world: World) -> None:
        """Make room."""
        self._filler.unlink()

    def explains(self, error: str) -> bool:
        """Tell whether it is named."""
        return "No space left on device" in error


class SlowClients(Fault):
    """A page that never reads its WebSocket, and a caller who never reads what his cell prints."""

    name = "slow clients"
    _held: list[socket.socket] = []  # noqa: RUF012 - of all times together, the last few
    MOST = 12

    def begin(self, world: World, rng: random.Random) -> None:
        """Ask, and never read."""
        pool = world.server.pools()[0]["id"]
        body = json.dumps({"code": "print('x' * 5_000_000)", "stream": True})
        upgrade = (
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        )
        self._ask(world, "GET", "jupyter-dist/stream", upgrade)
        self._ask(world, "POST", f"jupyter-dist/pools/{pool}/execute", "", body)
        while len(self._held) > self.MOST:
            self._held.pop(0).close()

    def _ask(self, world: World, method: str, path: str, headers: str, body: str = "") -> None:
        url = urlsplit(world.server.url)
        connection = socket.create_connection(("127.0.0.1", url.port or 80), 30)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(
            f"{method} {url.path}{path} HTTP/1.1\r\nHost: {url.netloc}\r\n{headers}"
            f"Authorization: token {world.server.token}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        self._held.append(connection)


class Stranger(Fault):
    """Another local user tries to get in."""

    name = "second uid"

    def begin(self, world: World, rng: random.Random) -> None:
        """Let him try until `end`."""
        program = [sys.executable, "-m", "tests.soak.stranger", str(world.disk), str(world.leases)]
        self._process = subprocess.Popen(
            ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups", *program],
            stdout=subprocess.PIPE,
            text=True,
        )

    def end(self, world: World) -> None:
        """Send him away; he must have got nothing."""
        self._process.kill()
        said, _ = self._process.communicate()
        assert "ENTERED" not in said, said


def all_faults(world: World) -> list[Fault]:
    """Return those that can happen here; only root can make some of them happen."""
    faults: list[Fault] = [
        OnProcess(what, victim) for what in ("kill", "stop") for victim in VICTIMS
    ]
    faults += [SlowClients(), SlowClients()]
    if os.geteuid() == 0:
        faults += [Stranger(), Stranger()]
        with suppress(OSError):
            time.clock_settime(time.CLOCK_REALTIME, time.time())
            faults += [ClockStep(), ClockStep()]
    if world.mounted:
        faults += [FullDisk(), FullDisk()]
    return faults
