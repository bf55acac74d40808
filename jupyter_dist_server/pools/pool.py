"""The life of one pool, from its owner's side: the server, or the kernel when there is none."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..errors import DistError
from ..gpus.inventory import Inventory
from .agent_link import AgentLink, Snapshot
from .folder import create_folder, log_tail
from .launch import launch_agent
from .placement import Placement, narrow, place
from .processes import ProcessRef, end_now, session_members
from .ranks import check_ranks
from .records import PoolRecord, PoolState, RankRecord, Reason, gpu_reference
from .request import PoolRequest
from .tasks import Tasks
from .watcher import Watcher

DEFAULT_TIMEOUT = 120.0
"""Seconds that a start may take; importing torch from a cold disk takes most of it."""

_END_PATIENCE = 5.0
"""Seconds for which an agent that has hung up may take to end."""
_WATCH_PATIENCE = 5.0
"""Seconds within which every rank greets the watcher."""
_STOP_PATIENCE = 12.0
"""Seconds after which an agent that does not end by itself is killed."""


class Pool:
    """One pool and the agent that holds its ranks.

    Parameters
    ----------
    request : PoolRequest
        What the user asked for.
    inventory : Inventory
        The GPUs to place ranks on.
    on_change : callable
        Called with the pool after each change of its `record`.
    watch : bool
        Whether to follow which ranks are busy (the server shows it in the panel).

    Raises
    ------
    DistError
        If the request cannot be placed.
    """

    def __init__(
        self,
        request: PoolRequest,
        inventory: Inventory,
        on_change: Callable[[Pool], None],
        watch: bool = False,
    ) -> None:
        self.request = request
        base = os.environ if request.base_env is None else request.base_env
        allowed = narrow(inventory, base.get("CUDA_VISIBLE_DEVICES"))
        self.placement: Placement = place(
            request.num_ranks, request.gpu_ids, request.backend, allowed
        )
        self.record = PoolRecord(
            id="p-" + uuid.uuid4().hex[:8],
            kernel_id=request.kernel_id,
            name=request.name,
            world_size=len(self.placement.gpus),
            backend=self.placement.backend,
            placement=self.placement.policy,
            start_method=request.start_method,
            python=request.python or sys.executable,
            cwd=request.cwd or os.getcwd(),
            notices=list(self.placement.notices),
            ranks=[
                RankRecord(rank, rank, self.placement.device(rank), gpu_reference(gpu))
                for rank, gpu in enumerate(self.placement.gpus)
            ],
        )
        self.ended = asyncio.Event()
        self._on_change = on_change
        self._watch = watch
        self._watcher: Watcher | None = None
        self._link = AgentLink(self._on_snapshot)
        self._agent: subprocess.Popen[bytes] | None = None
        self._changed = asyncio.Event()
        self._tasks = Tasks()
        self._late: Reason | None = None
        self._cancelled = False
        self._processes: set[ProcessRef] = set()

    @property
    def timeout(self) -> float:
        """Seconds that the start may take."""
        return self.request.timeout or DEFAULT_TIMEOUT

    def start(self) -> None:
        """Begin to start; `record` tells how it goes."""
        self._tasks.add(self._live())

    def change(self, **fields: Any) -> None:
        """Change the record and tell everybody."""
        for name, value in fields.items():
            setattr(self.record, name, value)
        self.record.version += 1
        self._changed.set()
        self._changed = asyncio.Event()
        self._on_change(self)

    async def changed_since(self, version: int, wait: float) -> None:
        """Return when the record is newer than `version`, at the latest after `wait` seconds."""
        deadline = time.monotonic() + wait
        while self.record.version <= version and (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left)

    # -- commands ---------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop the pool, or cancel its start, and wait until nothing of it is left."""
        if not self.record.state.ended:
            self._cancelled = True
            if self.record.state is not PoolState.COMPLETING:
                self.change(state=PoolState.COMPLETING)
            self._end_agent()
        await self.ended.wait()

    def interrupt(self, ranks: Iterable[int] | None = None) -> None:
        """Send SIGINT to some or all ranks.

        Raises
        ------
        DistError
            If the pool is not running, or lacks one of `ranks`.
        """
        self._check_running("interrupt")
        chosen = list(range(self.record.world_size) if ranks is None else ranks)
        check_ranks(chosen, self.record.world_size)
        self._link.send("interrupt", ranks=chosen)

    def restart(self) -> None:
        """Replace every rank; their variables are lost.

        Raises
        ------
        DistError
            If the pool is not running.
        """
        self._check_running("restart")
        self.change(state=PoolState.CONFIGURING, progress={"phase": "restarting ranks", "ready": 0})
        self._link.send("restart")
        self._tasks.add(self._limit_restart())

    async def _limit_restart(self) -> None:
        """End a pool whose new ranks are not ready in time."""
        generation = self.record.generation
        await asyncio.sleep(self.timeout)
        stuck = self.record.generation in (generation, generation + 1)
        if stuck and self.record.state is PoolState.CONFIGURING:
            self._late = self._too_slow(Path(self.record.folder))
            self._end_agent()

    def _check_running(self, what: str) -> None:
        if self.record.state is not PoolState.RUNNING:
            raise DistError(
                "pool_not_running",
                f"The pool cannot {what}: it is {self.record.state.value}.",
                "Start a pool with %dist_init." if self.record.state.ended else "",
            )

    # -- life -------------------------------------------------------------------------------

    async def _live(self) -> None:
        folder: Path | None = None
        reason: Reason | None = None
        try:
            folder = create_folder()
            self._launch(folder)
            await self._link.connect(folder)
            reason = await self._wait_until_running(folder)
            if not reason and not self._cancelled:
                await self._link.closed.wait()
                reason = self._late or await self._unexpected_end(folder)
        except DistError as error:
            reason = Reason(error.code, error.message, error.hint)
        except Exception as error:  # whatever it was, it must be said and cleaned up after
            reason = Reason("start_failed", f"The pool could not be started: {error!r}.")
        try:
            await self._clean_up(folder)
        finally:
            done = PoolState.COMPLETED if self.record.started else PoolState.CANCELLED
            state = done if self._cancelled else PoolState.FAILED
            reason = None if self._cancelled else reason
            self.change(state=state, reason=reason, ended=time.time())
            self.ended.set()

    def _launch(self, folder: Path) -> None:
        self.change(
            state=PoolState.CONFIGURING,
            folder=str(folder),
            progress={"phase": "importing torch", "ready": 0},
        )
        self._agent = launch_agent(folder, self.record, self.request, self.placement, self.timeout)

    async def _wait_until_running(self, folder: Path) -> Reason | None:
        closed = asyncio.create_task(self._link.closed.wait())
        deadline = time.monotonic() + self.timeout
        try:
            while not self._all_ready():
                left = deadline - time.monotonic()
                if left <= 0:
                    return self._too_slow(folder)
                changed = asyncio.create_task(self._changed.wait())
                await asyncio.wait(
                    {changed, closed}, timeout=left, return_when=asyncio.FIRST_COMPLETED
                )
                changed.cancel()
                if closed.done():
                    return await self._unexpected_end(folder)
        finally:
            closed.cancel()
        await self._watch_ranks()
        if not self._cancelled:
            self.change(state=PoolState.RUNNING, started=time.time())
        return None

    def _all_ready(self) -> bool:
        return all(rank.state in ("idle", "busy") for rank in self.record.ranks)

    async def _watch_ranks(self) -> None:
        if self._watcher:
            await self._watcher.close()
        if self._watch and not self._cancelled:
            self._watcher = Watcher(Path(self.record.folder), self._on_rank_state)
            with contextlib.suppress(asyncio.TimeoutError):  # a rank may have died meanwhile
                await asyncio.wait_for(self._watcher.ready(), _WATCH_PATIENCE)

    def _too_slow(self, folder: Path) -> Reason:
        waiting = [rank.rank for rank in self.record.ranks if rank.state not in ("idle", "busy")]
        late = waiting[0] if waiting else 0
        return Reason(
            "start_timeout",
            f"The pool was not ready within {self.timeout:g} s: "
            f"{len(waiting)} of {self.record.world_size} ranks, the first of them rank {late}.",
            "Try again with a longer --timeout.",
            late,
            log_tail(folder / f"rank-{late}.log") or log_tail(folder / "agent.log"),
        )

    async def _unexpected_end(self, folder: Path) -> Reason | None:
        if self._cancelled:
            return None
        if failure := (self._link.snapshot or {}).get("failure"):
            return Reason(**failure)
        assert self._agent is not None
        try:
            status = await asyncio.to_thread(self._agent.wait, _END_PATIENCE)
        except subprocess.TimeoutExpired:
            return Reason("agent_failed", "The pool's agent hung up, so the pool was ended.")
        how = f"was killed by signal {-status}" if status < 0 else f"exited with code {status}"
        log = log_tail(folder / "agent.log")
        if log and "No module named 'jupyter_dist_server" in log[-1]:
            return Reason(
                "package_missing",
                "jupyter_dist_server is not installed in the kernel's environment "
                f"({self.record.python}).",
                f'Install it there: "{self.record.python}" -m pip install jupyter-dist-server',
            )
        return Reason(
            "agent_failed",
            f"The pool's agent {how}, and its ranks ended with it.",
            "Start the pool again with %dist_init.",
            stderr=log,
        )

    def _end_agent(self) -> None:
        if self._agent and self._agent.poll() is None:
            self._agent.terminate()  # also ends an agent that is still importing torch

    async def _clean_up(self, folder: Path | None) -> None:
        """Leave no process and no file, whatever state the agent is in."""
        if self._watcher:
            await self._watcher.close()
        if self._agent:
            self._end_agent()
            try:
                await asyncio.to_thread(self._agent.wait, _STOP_PATIENCE)
            except subprocess.TimeoutExpired:
                self._agent.kill()
                await asyncio.to_thread(self._agent.wait)
        await self._link.close()
        await asyncio.to_thread(lambda: end_now(session_members(self._processes)))
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        for rank in self.record.ranks:
            if rank.state != "dead":
                rank.state, rank.since = "dead", time.time()

    # -- what the ranks do ------------------------------------------------------------------

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        new_generation = snapshot["generation"] != self.record.generation
        for record, said in zip(self.record.ranks, snapshot["ranks"], strict=False):
            if new_generation or said["state"] in ("dead", "starting"):
                record.state, record.since = said["state"], said["since"]
            elif record.state == "starting":
                record.state, record.since = "idle", said["since"]
            record.pid, record.start_time = said["pid"], said["start_time"]
            record.exit = said.get("exit")
            if record.pid and record.start_time:
                self._processes.add(ProcessRef(record.pid, record.start_time))
        notices = [*self.placement.notices, *snapshot["notices"]]
        ready = sum(record.state == "idle" for record in self.record.ranks)
        if new_generation or self.record.progress["phase"] == "starting ranks":
            self.record.progress = {"phase": "starting ranks", "ready": ready}
        self.change(
            generation=snapshot["generation"],
            start_method=snapshot["start_method"],
            notices=notices,
        )
        restarting = self.record.started and self.record.state is PoolState.CONFIGURING
        if restarting and self._all_ready() and self.record.progress["phase"] == "starting ranks":
            self.record.progress["phase"] = "connecting"
            self._tasks.add(self._finish_restart())

    async def _finish_restart(self) -> None:
        await self._watch_ranks()
        if self.record.state is PoolState.CONFIGURING:
            self.change(state=PoolState.RUNNING)

    def _on_rank_state(self, rank: int, state: str) -> None:
        record = self.record.ranks[rank]
        if record.state in ("idle", "busy") and record.state != state:
            record.state, record.since = state, time.time()
            self.change()
