"""The agent: a zygote that forks, watches and reaps the ranks of one pool.

`main` runs in the notebook kernel's interpreter, in a process of its own. It imports torch once,
then forks each rank, so that ranks share its pages. It starts no thread and never opens CUDA: both
would make a fork unsafe. Whoever can reach the socket in the pool's private folder may send
commands, as JSON lines, and gets a snapshot at each change.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any, NoReturn

import psutil

from ..interpreter import python_command
from . import rank as rank_process
from .control_socket import ControlSocket
from .environment import rank_environment
from .folder import CONFIG, log_tail
from .processes import RESTARTED, STOPPED, ProcessRef, end_now, exit_words, session_members
from .tasks import Tasks

GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""


class Agent:
    """State of the agent process.

    Parameters
    ----------
    folder : Path
        The pool's private folder, holding ``pool.json``.
    listener : socket.socket
        The control socket, already bound by the owner.
    """

    def __init__(self, folder: Path, listener: socket.socket) -> None:
        self.folder = folder
        self.config: dict[str, Any] = json.loads((folder / CONFIG).read_text())
        self.listener = listener
        self.world_size: int = self.config["world_size"]
        self.start_method: str = self.config["start_method"]
        self.notices: list[str] = []
        self.failure: dict[str, Any] | None = None
        self.generation = 0
        self.ranks: list[dict[str, Any]] = []
        self.stopping = False
        self._stopped = False
        self._ending = ""
        self._to_fork: deque[int] = deque()
        self._wake = asyncio.Event()
        self._death = asyncio.Event()
        self._reports: dict[int, socket.socket] = {}
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._store: socket.socket | None = None
        self._control = ControlSocket(listener, self.snapshot, self._obey)
        self._tasks = Tasks()

    # -- starting ranks ---------------------------------------------------------------------

    def prepare(self) -> None:
        """Import what every rank needs, and make sure that forking is safe."""
        try:
            rank_process.preload()
        except Exception as error:
            self.failure = rank_process.import_failure(error)
            return
        threads = psutil.Process().num_threads()
        if self.start_method == "fork" and threads > 1:
            self.start_method = "spawn"
            self.notices.append(
                f"Importing torch left {threads} threads running, so the ranks were spawned "
                "and not forked: that takes longer and shares no memory."
            )
        gc.collect()
        gc.freeze()  # keeps the collector from touching, and so copying, pages shared with ranks

    def order_ranks(self) -> None:
        """Ask the main loop to start every rank."""
        self.generation += 1
        if self._store:
            self._store.close()
        # Rank 0 serves the store on this very socket, so nobody can take its port in between.
        self._store = socket.create_server(("127.0.0.1", 0), backlog=1024)
        now = time.time()
        self.ranks = [
            {"rank": rank, "pid": None, "start_time": None, "state": "starting", "since": now}
            for rank in range(self.world_size)
        ]
        self._to_fork.extend(range(self.world_size))
        self._wake.set()

    def start_rank(self, rank: int, inherited: set[int]) -> None:
        """Fork or spawn one rank. Does not return in a forked child."""
        assert self._store is not None
        ours, theirs = socket.socketpair()
        environment = rank_environment(
            rank, self.world_size, self.config["id"], self._store.getsockname()[1]
        )
        orders = rank_process.Orders(
            folder=self.folder,
            rank=rank,
            report=theirs.fileno(),
            store=self._store.fileno(),
            environment=environment | self.config["thread_limits"],
            parent=os.getpid(),
        )
        if self.start_method == "fork":
            pid = os.fork()
            if pid == 0:
                self._become_rank(orders, inherited)
        else:
            child = subprocess.Popen(
                [*python_command(sys.executable, rank_process.__name__), orders.to_json()],
                pass_fds=(orders.report, orders.store),
                stdin=subprocess.DEVNULL,
            )
            pid = child.pid
            self._children[pid] = child
        theirs.close()
        ours.setblocking(False)
        self._reports[rank] = ours
        self.ranks[rank] |= {"pid": pid, "start_time": ProcessRef.of(pid).start_time}
        asyncio.get_event_loop().add_reader(ours, self._on_report, rank)

    def _become_rank(self, orders: rank_process.Orders, inherited: set[int]) -> NoReturn:
        # The child must neither use nor finalise the agent's sockets and event loop: they share
        # one epoll set with the agent. It closes their descriptors and keeps the objects alive.
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        keep = inherited | {orders.report, orders.store}
        for name in os.listdir("/dev/fd"):
            if int(name) not in keep:
                with contextlib.suppress(OSError):
                    os.close(int(name))
        asyncio.set_event_loop(None)
        rank_process.run(orders, keep_alive=self)

    # -- what ranks say ---------------------------------------------------------------------

    def _on_report(self, rank: int) -> None:
        """Read a rank's only message: ready, or why not. Its end is SIGCHLD's to tell."""
        try:
            line = self._reports[rank].recv(65536)
        except (BlockingIOError, ConnectionResetError):
            return
        asyncio.get_running_loop().remove_reader(self._reports[rank])
        self._reports.pop(rank).close()
        if not line:
            return
        report = json.loads(line)
        if "failure" in report:
            self._fail(rank, report["failure"])
        elif self.ranks[rank]["state"] == "starting":
            self.ranks[rank] |= {"state": "idle", "since": time.time()}
        self._control.broadcast()

    def _on_child_end(self) -> None:
        """Reap every child that has ended; called on SIGCHLD."""
        changed = False
        for record in self.ranks:
            if record["pid"] is None or record["state"] == "dead":
                continue
            pid, status = os.waitpid(record["pid"], os.WNOHANG)
            if not pid:
                continue
            was_starting = any(known["state"] == "starting" for known in self.ranks)
            cause = self._ending or exit_words(status)
            record |= {"state": "dead", "since": time.time(), "exit": cause}
            changed = True
            if record["rank"] in self._reports:
                self._on_report(record["rank"])  # its last words may still be in the socket
            if was_starting and not self.stopping and not self.failure:
                self._fail(record["rank"], {"message": record["exit"]})
        self._reap_orphans()
        if changed:
            self._death.set()
            self._control.broadcast()

    def _reap_orphans(self) -> None:
        # As sub-reaper we inherit what ranks leave behind; zombies of theirs are ours to reap.
        ours = {record["pid"] for record in self.ranks}
        for child in psutil.Process().children():
            with contextlib.suppress(psutil.NoSuchProcess, ChildProcessError):
                if child.pid not in ours and child.status() == psutil.STATUS_ZOMBIE:
                    os.waitpid(child.pid, os.WNOHANG)

    def _fail(self, rank: int, failure: dict[str, Any]) -> None:
        message = failure["message"]
        self.failure = {
            "code": failure.get("code", "rank_failed"),
            "message": f"Rank {rank} did not start: {message}",
            "hint": failure.get("hint", ""),
            "rank": rank,
            "stderr": log_tail(self.folder / f"rank-{rank}.log"),
        }
        self._tasks.add(self.stop())

    # -- talking to owners and clients ------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Return all that a client may want to know."""
        return {
            "pid": os.getpid(),
            "generation": self.generation,
            "start_method": self.start_method,
            "notices": self.notices,
            "failure": self.failure,
            "stopping": self.stopping,
            "ranks": self.ranks,
        }

    def _obey(self, command: dict[str, Any]) -> None:
        if command["do"] == "interrupt":
            for rank in command["ranks"]:
                self._signal(self.ranks[rank], signal.SIGINT)
        elif command["do"] == "restart" and not self.stopping:
            self._tasks.add(self._restart())
        elif command["do"] == "stop":
            self._tasks.add(self.stop())

    def _signal(self, record: dict[str, Any], number: signal.Signals) -> None:
        """Signal a rank and the subprocesses in its group (a `!command`, say)."""
        if record["pid"] and record["state"] != "dead":
            try:
                os.killpg(record["pid"], number)
            except ProcessLookupError:  # just forked, it leads no group yet
                os.kill(record["pid"], number)

    # -- ending -----------------------------------------------------------------------------

    async def _restart(self) -> None:
        self._ending = RESTARTED
        await self._end_ranks()
        if not self.stopping:
            self._ending = ""
            self.order_ranks()
            self._control.broadcast()

    async def stop(self) -> None:
        """End every rank and whatever they left behind, then let the main loop return."""
        if self.stopping:
            return
        self.stopping = True
        self._ending = "" if self.failure else STOPPED
        self._to_fork.clear()
        self._control.broadcast()
        await self._end_ranks()
        self._control.broadcast()
        self._stopped = True
        self._wake.set()

    async def _end_ranks(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            for record in self.ranks:
                self._signal(record, number)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._all_dead(), GRACE)
        # Whatever a rank started in the background: in its session, or, as we are sub-reaper on
        # Linux, a descendant of ours. The ranks themselves are reaped by `_on_child_end` alone.
        leaders = [ProcessRef(r["pid"], r["start_time"]) for r in self.ranks if r["pid"]]
        left = {*session_members(leaders), *psutil.Process().children(recursive=True)}
        ranks = {leader.pid for leader in leaders}
        end_now(process for process in left if process.pid not in ranks)

    async def _all_dead(self) -> None:
        while self._living():
            self._death.clear()
            await self._death.wait()

    def _living(self) -> bool:
        return any(record["pid"] and record["state"] != "dead" for record in self.ranks)

    # -- the main loop ----------------------------------------------------------------------

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._on_child_end)
        loop.add_signal_handler(signal.SIGTERM, lambda: self._tasks.add(self.stop()))
        await self._control.open()
        self._tasks.add(self._watch_owner(ProcessRef(**self.config["owner"])))
        if self.failure:
            self._tasks.add(self.stop())
        else:
            self.order_ranks()

    async def _watch_owner(self, owner: ProcessRef) -> None:
        """End the pool when the process that started it dies, however it dies."""
        try:
            descriptor = os.pidfd_open(owner.pid)
        except (AttributeError, OSError):  # no pidfds on macOS and in some sandboxes
            while owner.find():
                await asyncio.sleep(0.5)
        else:
            ended, loop = asyncio.Event(), asyncio.get_running_loop()
            loop.add_reader(descriptor, ended.set)
            if owner.find():  # or the pid belongs to another process by now
                await ended.wait()
            loop.remove_reader(descriptor)
        await self.stop()

    async def _next(self) -> int | None:
        """Wait for a rank to start; `None` when the pool has ended."""
        while not self._to_fork:
            if self._stopped:
                return None
            self._wake.clear()
            await self._wake.wait()
        return self._to_fork.popleft()

    def run(self) -> None:
        """Start the ranks and serve until the pool ends."""
        self.prepare()
        inherited = {int(name) for name in os.listdir("/dev/fd")}
        inherited.discard(self.listener.fileno())
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.run_until_complete(self._open())
        # The loop is paused while forking, so that a child never stands inside a callback.
        while (rank := loop.run_until_complete(self._next())) is not None:
            self.start_rank(rank, inherited)
            if not self._to_fork:
                self._control.broadcast()
        shutil.rmtree(self.folder, ignore_errors=True)
        loop.run_until_complete(self._control.close())


def main() -> None:
    """Run the agent of the folder and listening descriptor given as arguments."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        PR_SET_CHILD_SUBREAPER = 36
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    Agent(Path(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))).run()
