"""Which part of an agent obeys which command."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from ..common.protocol.agents.agent_messages import (
    AcquireLock,
    Attach,
    Commands,
    DescribeLease,
    Extend,
    Interrupt,
    Kill,
    Log,
    LogLines,
    NoteCell,
    NoteIdle,
    NoteLate,
    Ping,
    Refused,
    ReleaseLock,
    Rename,
    Restart,
    StartRanks,
    Stop,
    StoreAnswer,
    WatchGpus,
)
from .attachments import Attachments
from .control_socket import Client, ControlSocket
from .execution_lock_queue import LockQueue
from .nodes.agents_of_other_nodes import Nodes
from .nodes.gpu_watchers import GpuWatchers
from .ranks.monitor_ranks import Ranks
from .time_limit import TimeLimit

RankCommands = Interrupt | Kill | Log | NoteCell | NoteLate | Restart | StartRanks


@dataclass
class CommandHandler:
    """Passes each command to the part or function of the agent that obeys it."""

    control: ControlSocket
    ranks: Ranks
    nodes: Nodes
    attachments: Attachments
    lock: LockQueue
    limit: TimeLimit
    gpus: GpuWatchers
    sample: Callable[[], None]
    store_answer: Callable[[StoreAnswer], None]
    answer: Callable[[Client, Ping], None]
    rename: Callable[[dict[str, str]], None]
    describe: Callable[[DescribeLease], None]
    restart: Callable[[Collection[int], StartRanks | None, bool], object]
    stop: Callable[[], object]

    def obey(self, client: Client, command: Commands) -> None:
        """Obey a client's command."""
        if isinstance(command, Attach):
            self.attachments.add(client, command.attachment)
        elif isinstance(command, AcquireLock):
            self.lock.acquire(client)
        elif isinstance(command, ReleaseLock):
            self.lock.release(client)
        elif isinstance(command, Stop):
            self.stop()
        elif isinstance(command, Extend):
            self.limit.extend(command.seconds)
        elif isinstance(command, NoteIdle):
            self.limit.note_idle(client, command.since)
        elif isinstance(command, Rename):
            self.rename(command.names)
        elif isinstance(command, DescribeLease):
            self.describe(command)
        elif isinstance(command, WatchGpus):
            self.gpus.note(client, command)
            self.sample()
        elif isinstance(command, Ping):
            self.answer(client, command)
        elif isinstance(command, StoreAnswer):
            self.store_answer(command)
        elif unknown := set(_ranks_of(command)) - set(self.ranks.everybody):
            self.control.tell(client, Refused(f"there is no rank {min(unknown)}"))
        else:
            self._obey_for_ranks(client, command)

    def _obey_for_ranks(self, client: Client, command: RankCommands) -> None:
        if isinstance(command, Interrupt):
            self.ranks.interrupt(command.ranks)
            self.nodes.send(command.ranks, Interrupt)
        elif isinstance(command, Kill):
            ranks, pids = command.ranks or self.ranks.everybody, command.pids
            self.nodes.send(ranks, lambda mine: Kill(pids, mine))
            self.ranks.kill(ranks, pids)
        elif isinstance(command, NoteCell):
            self.ranks.note_cell(command.ranks, command.cell_id)
            self.control.broadcast()
        elif isinstance(command, NoteLate):
            if command.generation == self.ranks.starter.generation:
                self.lock.note_late(command.ranks)
        elif isinstance(command, Log):
            if command.rank in self.ranks.starter.own:
                self.control.tell(client, LogLines(self.ranks.logs.lines(command.rank)))
            else:
                self.nodes.ask_log(client, command.rank)
        elif isinstance(command, StartRanks):
            # All that are here, as there may have been more until now.
            everybody = self.ranks.everybody
            self.restart(everybody if command.whole else command.ranks, command, False)
        else:
            without = command.without_lost_nodes
            chosen = [] if without else command.ranks
            self.restart(chosen or self.ranks.everybody, None, without)


def _ranks_of(command: RankCommands) -> list[int]:
    return [command.rank] if isinstance(command, Log) else command.ranks
