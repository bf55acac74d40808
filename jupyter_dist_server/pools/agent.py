"""The agent: a zygote that forks, watches and reaps the ranks of one pool.

`main` runs in the notebook kernel's interpreter, in a process of its own. It imports torch once,
then forks each rank, so that ranks share its pages. It starts no thread and never opens CUDA: both
would make a fork unsafe. Whoever can reach the socket in the pool's private folder may send
commands, as JSON lines, and gets a snapshot at each change.
"""

from __future__ import annotations

import asyncio
import contextlib
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
from collections.abc import Collection
from pathlib import Path
from typing import Any, NoReturn

import psutil

from . import rank as rank_process
from .control_socket import Client, ControlSocket
from .deaths import Deaths
from .environment import rank_environment
from .folder import CONFIG
from .holders import Holders
from .processes import (
    RESTARTED,
    STOPPED,
    ProcessRef,
    adopt_descendants,
    call_ourselves,
    end_now,
    reap_orphans,
)
from .rank_processes import close_all_but, left_behind, read_report, signal_rank, spawn
from .tasks import Tasks
from .turns import Turns
from .zygote import leave_zygote

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
        self._endings: dict[int, str] = {}
        self._to_fork: deque[int] = deque()
        self._restarting = asyncio.Lock()
        self._wake = asyncio.Event()
        self._death = asyncio.Event()
        self._reports: dict[int, socket.socket] = {}
        self._deaths = Deaths(folder)
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._store: socket.socket | None = None
        self._whole_start = True
        self._control = ControlSocket(listener, self.snapshot, self._obey, self._on_gone)
        self._turns = Turns(lambda client, said: self._control.tell(client, {"turn": said}))
        self._tasks = Tasks()
        self._holders = Holders(
            ProcessRef(**self.config["owner"]),
            self.config["grace"],
            changed=self._control.broadcast,
            abandoned=lambda: self._tasks.add(self.stop()),
        )

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

    def order_ranks(self, chosen: Collection[int]) -> None:
        """Ask the main loop to start ranks, in place of their predecessors if there are any."""
        self.generation += 1
        self._whole_start = len(chosen) == self.world_size
        if self._whole_start:
            if self._store:
                self._store.close()
            # Rank 0 serves the store on this very socket: nobody can take its port in between.
            self._store = socket.create_server(("127.0.0.1", 0), backlog=1024)
        fresh = {"pid": None, "start_time": None, "state": "starting", "since": time.time()}
        self.ranks = [
            {"rank": rank, **fresh} if rank in chosen else self.ranks[rank]
            for rank in range(self.world_size)
        ]
        self._to_fork.extend(chosen)
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
            alone=not self._whole_start,
        )
        if self.start_method == "fork":
            pid = os.fork()
            if pid == 0:
                self._become_rank(orders, inherited)
        else:
            child = spawn(orders)
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
        close_all_but(inherited | {orders.report, orders.store})
        asyncio.set_event_loop(None)
        call_ourselves(f"dist-rank-{orders.rank}")
        rank_process.run(orders, keep_alive=self)

    # -- what ranks say ---------------------------------------------------------------------

    def _on_report(self, rank: int) -> None:
        """Read a rank's only message: ready, or why not. Its end is SIGCHLD's to tell."""
        report, descriptors = read_report(self._reports[rank])
        if report is None:
            return
        asyncio.get_running_loop().remove_reader(self._reports[rank])
        self._reports.pop(rank).close()
        self._deaths.keep(rank, descriptors)
        if "failure" in report and self._whole_start:
            self._fail(rank, report["failure"])
        elif "failure" in report:
            self.ranks[rank]["exit"] = f"did not start: {report['failure']['message']}"
        elif report and self.ranks[rank]["state"] == "starting":
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
            starting = any(known["state"] == "starting" for known in self.ranks)
            was_starting = self._whole_start and starting
            wanted = self._endings.get(record["rank"]) or record.get("exit")
            record |= self._deaths.explain(record, status, wanted)
            changed = True
            if record["rank"] in self._reports:
                self._on_report(record["rank"])  # its last words may still be in the socket
            if was_starting and not self.stopping and not self.failure:
                self._fail(record["rank"], {"message": record["exit"]})
        reap_orphans({record["pid"] for record in self.ranks})
        if changed:
            self._death.set()
            self._control.broadcast()

    def _fail(self, rank: int, failure: dict[str, Any]) -> None:
        self.failure = self._deaths.explain_failure(rank, failure)
        self._tasks.add(self.stop())

    # -- talking to owners and clients ------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Return all that a client may want to know."""
        return {
            "process": vars(ProcessRef.of(os.getpid())),
            "generation": self.generation,
            "start_method": self.start_method,
            "notices": self.notices,
            "failure": self.failure,
            "stopping": self.stopping,
            "holders": self._holders.to_json(),
            "ranks": self.ranks,
        }

    def _on_gone(self, client: Client) -> None:
        self._holders.remove(client)
        self._turns.remove(client)

    def _obey(self, client: Client, command: dict[str, Any]) -> None:
        if command["do"] == "hold":
            self._holders.add(client, command["who"])
        elif command["do"] == "take_turn":
            self._turns.take(client)
        elif command["do"] == "end_turn":
            self._turns.end(client)
        elif command["do"] == "interrupt":
            for rank in command["ranks"]:
                signal_rank(self.ranks[rank], signal.SIGINT)
        elif command["do"] == "restart" and not self.stopping:
            self._tasks.add(self._restart(command.get("ranks") or range(self.world_size)))
        elif command["do"] == "stop":
            self._tasks.add(self.stop())

    # -- ending -----------------------------------------------------------------------------

    async def _restart(self, chosen: Collection[int]) -> None:
        async with self._restarting:  # two notebooks may ask for the same rank
            if self._whole_start and any(rank["state"] == "starting" for rank in self.ranks):
                chosen = range(self.world_size)  # as the others would wait for those to meet them
            self._to_fork = deque(rank for rank in self._to_fork if rank not in chosen)
            self._endings = dict.fromkeys(chosen, RESTARTED)
            await self._end_ranks(chosen)
            if not self.stopping:
                self._endings = {}
                self.order_ranks(chosen)
                self._control.broadcast()

    async def stop(self) -> None:
        """End every rank and whatever they left behind, then let the main loop return."""
        if self.stopping:
            return
        self.stopping = True
        everybody = range(self.world_size)
        self._endings = {} if self.failure else dict.fromkeys(everybody, STOPPED)
        self._to_fork.clear()
        self._control.broadcast()
        await self._end_ranks(everybody)
        self._control.broadcast()
        self._stopped = True
        self._wake.set()

    async def _end_ranks(self, chosen: Collection[int]) -> None:
        ending = [record for record in self.ranks if record["rank"] in chosen]
        for number in (signal.SIGTERM, signal.SIGKILL):
            for record in ending:
                signal_rank(record, number)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._all_dead(ending), GRACE)
        # The ranks themselves are reaped by `_on_child_end` alone.
        end_now(left_behind(ending, self.config["id"], by_all=len(ending) == len(self.ranks)))

    async def _all_dead(self, ending: list[dict[str, Any]]) -> None:
        while any(record["pid"] and record["state"] != "dead" for record in ending):
            self._death.clear()
            await self._death.wait()

    # -- the main loop ----------------------------------------------------------------------

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._on_child_end)
        loop.add_signal_handler(signal.SIGTERM, lambda: self._tasks.add(self.stop()))
        await self._control.open()
        self._holders.open()
        if self.failure:
            self._tasks.add(self.stop())
        else:
            self.order_ranks(range(self.world_size))

    async def _has_next(self) -> bool:
        """Wait for a rank to start; false when the pool has ended."""
        while not self._to_fork:
            if self._stopped:
                return False
            self._wake.clear()
            await self._wake.wait()
        return True

    def run(self) -> None:
        """Start the ranks and serve until the pool ends."""
        inherited = {int(name) for name in os.listdir("/dev/fd")}
        inherited.discard(self.listener.fileno())
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.run_until_complete(self._open())
        # The loop is paused while forking, so that a child never stands inside a callback.
        while loop.run_until_complete(self._has_next()):
            if self._to_fork:  # a restart may have emptied it in the loop's last turn
                self.start_rank(self._to_fork.popleft(), inherited)
            if not self._to_fork:
                self._control.broadcast()
        shutil.rmtree(self.folder, ignore_errors=True)
        loop.run_until_complete(self._control.close())


def serve(listener: socket.socket, seat: socket.socket | None = None) -> None:
    """Be the agent of a listening control socket, which lies in the folder, until its pool ends.

    With a `seat`, leave a zygote that talks to our owner by it.
    """
    call_ourselves("dist-agent")
    agent = Agent(Path(listener.getsockname()).parent, listener)
    agent.prepare()
    if seat:
        if agent.start_method == "fork" and not agent.failure:
            leave_zygote(seat, ProcessRef(**agent.config["owner"]), listener, serve)
        seat.close()
    adopt_descendants()  # not before: the zygote must not be ours to end
    agent.run()


def main() -> None:
    """Run the agent of the descriptors given as arguments: control socket and seat."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(*(socket.socket(fileno=int(number)) for number in sys.argv[1:]))
