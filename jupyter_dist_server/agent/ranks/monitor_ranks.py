"""The ranks of this node, from their start to their end."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from ...common.processes.pool_processes import reap_orphans
from ...common.processes.process_ref import KILLED, ProcessRef, is_stopped
from ...common.protocol.agents.agent_messages import RankState
from ...common.protocol.agents.rank_start import Failed, Ready, decode_report
from ...common.protocol.failure_reason import Reason
from ...common.protocol.pool_file import PoolFile
from .end_ranks import end_ranks
from .exit_reasons import Deaths
from .rank_log import RankLogs
from .rank_processes import read_report, signal_rank
from .start_ranks import Starter


class Ranks:
    """Monitors, signals and ends the ranks that its `starter` starts.

    `last_cells` are the notebook's IDs of the cells in which ranks died. `helpers` returns the pids
    of our children that are not ranks.
    """

    def __init__(
        self,
        folder: Path,
        config: PoolFile,
        changed: Callable[[], None],
        failed: Callable[[Reason], None],
        helpers: Callable[[], set[int]],
    ) -> None:
        self.starter = Starter(folder, config, self._on_report)
        self.logs = RankLogs(folder)
        self.everybody = range(config.world_size)
        self._pool = config.id
        self._deaths = Deaths(self.logs, config.world_size)
        self._changed = changed
        self._failed = failed
        self._helpers = helpers
        self.last_cells: dict[int, str] = {}
        self._endings: dict[int, str] = {}
        """Why we end ranks, until they have ended."""
        self._death = asyncio.Event()

    @property
    def all(self) -> list[RankState]:
        """All ranks of the pool."""
        return self.starter.ranks

    @property
    def are_all_starting(self) -> bool:
        """Whether the whole pool starts: then the others would wait for a rank that fails."""
        return self.starter.whole and self.starter.is_starting

    def renumber(self, config: PoolFile, kept: Sequence[int]) -> None:
        """Have fewer ranks from now on; all have ended. `kept` are their earlier numbers."""
        self.everybody = range(config.world_size)
        self._deaths.world_size = config.world_size
        self.starter.renumber(config, kept)

    def resize(self, config: PoolFile) -> None:
        """Have more or fewer ranks from now on; those that are left out have ended."""
        self.everybody = range(config.world_size)
        self._deaths.world_size = config.world_size
        self.starter.resize(config)

    def _own(self, ranks: Iterable[RankState]) -> list[RankState]:
        """Return the ranks that are on this node: only here, their pids are theirs."""
        return [record for record in ranks if record.rank in self.starter.own]

    # -- what ranks say ---------------------------------------------------------------------

    def _on_report(self, rank: int) -> None:
        """Read a rank's only message: ready, or why not. SIGCHLD tells when it ends."""
        reports = self.starter.reports
        line, descriptors = read_report(reports[rank])
        if line is None:
            return
        report = decode_report(line) if line else None
        record = self.all[rank]
        asyncio.get_running_loop().remove_reader(reports[rank])
        reports.pop(rank).close()
        self.logs.keep(rank, descriptors)
        if isinstance(report, Failed) and self.starter.whole:
            self._failed(self._deaths.explain_failure(rank, report))
        elif isinstance(report, Failed):
            record.exit = f"did not start: {report.message}"
            record.failure = self._deaths.explain_failure(rank, report)
        elif isinstance(report, Ready) and record.state == "starting":
            record.state, record.since = "idle", time.time()
        self._changed()

    def on_child_end(self) -> None:
        """Reap all children that have ended, and note which are stopped; called on SIGCHLD."""
        changed = False
        for record in self._own(self.all):
            if record.pid is None or record.state == "dead":
                continue
            pid, status = os.waitpid(record.pid, os.WNOHANG)
            if not pid:  # it may have been stopped, or go on
                stopped = is_stopped(ProcessRef(record.pid, record.start_ticks or 0))
                changed = changed or stopped != record.stopped
                record.stopped = stopped
                continue
            was_starting = record.state == "starting"
            were_all_starting = self.are_all_starting
            wanted = self._endings.get(record.rank) or record.exit
            self._deaths.explain(record, status, wanted)
            changed = True
            if record.rank in self.starter.reports:
                self._on_report(record.rank)  # its last words may still be in the socket
            if was_starting or were_all_starting:
                why = self._deaths.explain_failure(record.rank, Failed(record.exit or ""))
                record.failure = record.failure or why
                if were_all_starting:
                    self._failed(why)
        reap_orphans({record.pid for record in self._own(self.all)} | self._helpers())
        if changed:
            self._death.set()
            self._changed()

    # -- what is done to them ---------------------------------------------------------------

    def interrupt(self, ranks: Collection[int]) -> None:
        """Send SIGINT to ranks and the subprocesses in their groups."""
        for record in self._own(self.all[rank] for rank in ranks):
            signal_rank(record, signal.SIGINT)

    def kill(self, ranks: Collection[int], pids: Collection[int]) -> None:
        """Kill ranks at once; no other process gets the pid of a rank that is not reaped."""
        for record in self._own(self.all):
            if record.rank in ranks and record.pid in pids and record.state != "dead":
                self._endings[record.rank] = KILLED
                signal_rank(record, signal.SIGKILL)

    async def end(self, chosen: Collection[int], why: str | None) -> None:
        """End ranks, and what they have left behind.

        `why` is given as the cause for each; with `None`, it is how its process ended.
        """
        endings = self._endings = dict.fromkeys(chosen, why) if why else {}
        self.starter.cancel(chosen)
        own = self._own(self.all)
        ending = [record for record in own if record.rank in chosen]
        # They are reaped by `on_child_end` alone.
        by_all = len(ending) == len(own)
        await end_ranks(ending, self._pool, self._death, self._helpers, by_all=by_all)
        if self._endings is endings:  # or the pool is stopped while some ranks are replaced
            self._endings = {}

    def note_cell(self, ranks: Collection[int], cell_id: str) -> None:
        """Remember the cell in which ranks have died."""
        dead = {record.rank for record in self.all if record.state == "dead"}
        self.last_cells |= dict.fromkeys(dead.intersection(ranks), cell_id)

    def forget_cells(self, ranks: Collection[int]) -> None:
        """Forget the cells of ranks that are replaced."""
        self.last_cells = {r: id for r, id in self.last_cells.items() if r not in ranks}
