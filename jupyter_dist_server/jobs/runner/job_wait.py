"""Sees that ranks of a job stand still, has it explained, and writes that into the job's log.

The runner asks the ranks only where they are, which costs microseconds. A process of its own finds
out why they wait, once they have stood still for long: the runner stays small.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ...common.ask_from_outside import PLACE
from ...common.patience import patience
from ...common.processes.python_command import python_command

if TYPE_CHECKING:
    import subprocess

LIMIT = "JUPYTER_DIST_WAIT_LIMIT"
"""The environment variable with the seconds for which ranks may wait before the log says why."""
_LIMIT = 60.0
_EVERY = 10.0
"""Seconds between two looks, and from the last one, which takes shorter waits, to the job's end."""
_EXPLAIN = "jupyter_dist_server.pools.explain_wait"


class WaitWatch:
    """The watch of one job, whose processes listen in a folder.

    Parameters
    ----------
    folder : Path
    log : str
        The file that verdicts are appended to.
    label : str
        The job's, as users write it.
    limit : str
        What the job's environment says of it; 0 is never.
    """

    def __init__(self, folder: Path, log: str, label: str, limit: str) -> None:
        self.told = ""
        """The last verdict, while it holds."""
        self._key = ""
        """What it is about: the collectives, and which ranks are missing."""
        self._folder, self._log, self._label = folder, log, label
        self._limit = _read(limit)
        self._every = min(_EVERY, self._limit / 2)
        self._places: dict[int, bytes | None] = {}
        """By pid, where it was at the last look; `None` if it did not answer."""
        self._since: dict[int, float] = {}
        """By pid, since when it has been there, in seconds since 1970."""
        self._explained: dict[int, float] = {}
        """The ranks that stood still when this was explained."""
        self._asks: subprocess.Popen[bytes] | None = None
        self._regular = time.monotonic() + self._every
        self._has_seen_end = False

    def due(self, ends_at: float | None) -> float | None:
        """Return when to look, by the monotonic clock, for a job that ends then."""
        if not self._limit:
            return None
        if ends_at is None or self._has_seen_end:
            return self._regular
        return min(self._regular, ends_at - _EVERY)

    def look(self, ends_at: float | None) -> None:
        """See which ranks stand still, and begin to find out why if that is new."""
        now = time.monotonic()
        self._regular = now + self._every
        least = self._limit
        if ends_at is not None and now >= ends_at - _EVERY:
            self._has_seen_end, least = True, min(self._limit, _EVERY)
        places, clock = self._ask_places(), time.time()
        same = {pid for pid in places if self._places.get(pid, b"") == places[pid]}
        self._since = {pid: self._since[pid] if pid in same else clock for pid in places}
        self._places = places
        still = {pid: since for pid, since in self._since.items() if since <= clock - least}
        if not still and self.told:
            self._say("", "")
        if still and still != self._explained and self._asks is None:
            self._explained = still
            self._explain(clock - least)

    def _ask_places(self) -> dict[int, bytes | None]:
        """Return where each rank is, `None` for those that do not answer at once."""
        asked: dict[int, tuple[int, socket.socket]] = {}
        places: dict[int, bytes | None] = {}
        poll = select.poll()
        for name in os.listdir(self._folder) if self._folder.is_dir() else []:
            if not name.isdecimal():
                continue
            if not Path("/proc", name).exists():
                self._forget(name)
                continue
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(patience.instant)
            try:
                connection.connect(str(self._folder / name))
                connection.sendall(PLACE)
            except BlockingIOError:  # it does not accept
                connection.close()
                places[int(name)] = None
                continue
            except OSError:  # it has just begun, or ends
                connection.close()
                continue
            asked[connection.fileno()] = int(name), connection
            poll.register(connection, select.POLLIN)
        until = time.monotonic() + patience.instant
        silent = len(places)
        while len(places) - silent < len(asked) and (left := until - time.monotonic()) > 0:
            for descriptor, _ in poll.poll(left * 1000):
                pid, connection = asked[descriptor]
                poll.unregister(descriptor)
                with contextlib.suppress(OSError):
                    places[pid] = connection.recv(65536)
        for pid, connection in asked.values():
            places.setdefault(pid, None)
            connection.close()
        return {pid: place for pid, place in places.items() if _is_place(place)}

    def _forget(self, name: str) -> None:
        """Remove the files of a process that has ended: a long job may start many."""
        for file in self._folder.glob(f"{name}*"):
            if re.fullmatch(rf"{name}(-fr|\.stack)?", file.name):
                file.unlink(missing_ok=True)

    def _explain(self, older_than: float) -> None:
        import subprocess  # not above: few runners need it

        still = [f"{pid}:{since}" for pid, since in self._explained.items()]
        arguments = [str(os.getpid()), str(older_than), *still]
        self._asks = subprocess.Popen(
            [*python_command(sys.executable, _EXPLAIN), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            cwd="/",
        )
        assert self._asks.stdout is not None
        os.set_blocking(self._asks.stdout.fileno(), False)

    def note_end(self, pid: int, status: int) -> None:
        """Take the answer of a process of ours that has ended."""
        if self._asks and self._asks.pid == pid:
            asks, self._asks = self._asks, None
            assert asks.stdout is not None
            said = asks.stdout.read() or b""
            asks.stdout.close()
            asks.returncode = os.waitstatus_to_exitcode(status)  # our caller has reaped it
            if asks.returncode == 0:
                key, _, verdict = said.decode(errors="replace").strip().partition("\n")
                self._say(key, verdict)

    def _say(self, key: str, verdict: str) -> None:
        before, self._key, self.told = self._key, key, verdict
        if key == before:  # a rank has only moved to another line
            return
        line = "The ranks no longer wait."
        if verdict:
            sentences = re.sub(r"(?<=\.) (?=Ranks? )", "\n", verdict)
            line = f"{sentences}\nAll stacks: jdist why {self._label}"
        with contextlib.suppress(OSError), open(self._log, "ab") as log:
            log.write(f"\n[jdist: {line}]\n".encode())


def _is_place(place: bytes | None) -> bool:
    """Tell whether a rank stands somewhere, or is silent; others do not say, or cannot."""
    return place is None or not (place == b"" or place.startswith(b"{"))


def _read(limit: str) -> float:
    try:
        return max(0.0, float(limit or _LIMIT))
    except ValueError:
        return _LIMIT
