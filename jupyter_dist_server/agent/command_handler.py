"""Which part of an agent obeys which command."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from ..common.protocol.agents import agent_messages as messages
from .attachments import Attachments
from .control_socket import Client, ControlSocket
from .execution_lock_queue import LockQueue
from .nodes.agents_of_other_nodes import Nodes
from .nodes.gpu_watchers import GpuWatchers
from .ranks.monitor_ranks import Ranks
from .time_limit import TimeLimit

RankCommands = (
    messages.Interrupt
    | messages.Kill
    | messages.Log
    | messages.NoteCell
    | messages.NoteLate
    | messages.Restart
    | messages.StartRanks
)


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
    store_answer: Callable[[messages.StoreAnswer], None]
    answer: Callable[[Client, messages.Ping], None]
    rename: Callable[[dict[str, str]], None]
    describe: Callable[[messages.DescribeLease], None]
    restart: Callable[[Collection[int], messages.StartRanks | None, bool], object]
    resize: Callable[[messages.Resize], object]
    park: Callable[[messages.NoteParked | messages.GiveBack | messages.TakeBack], object]
    stop: Callable[[], object]

    def obey(self, client: Client, command: messages.Commands) -> None:
        """Obey a client's command."""
        if isinstance(command, messages.Attach):
            self.attachments.add(client, command.attachment)
        elif isinstance(command, messages.AcquireLock):
            self.lock.acquire(client)
        elif isinstance(command, messages.ReleaseLock):
            self.lock.release(client)
        elif isinstance(command, messages.Stop):
            self.stop()
        elif isinstance(command, messages.Resize):
            self.resize(command)
        elif isinstance(command, messages.NoteParked | messages.GiveBack | messages.TakeBack):
            self.park(command)
        elif isinstance(command, messages.Extend):
            self.limit.extend(command.seconds)
        elif isinstance(command, messages.NoteIdle):
            self.limit.note_idle(client, command.since)
        elif isinstance(command, messages.Rename):
            self.rename(command.names)
        elif isinstance(command, messages.DescribeLease):
            self.describe(command)
        elif isinstance(command, messages.WatchGpus):
            self.gpus.note(client, command)
            self.sample()
        elif isinstance(command, messages.Ping):
            self.answer(client, command)
        elif isinstance(command, messages.StoreAnswer):
            self.store_answer(command)
        elif unknown := set(_ranks_of(command)) - set(self.ranks.everybody):
            self.control.tell(client, messages.Refused(f"there is no rank {min(unknown)}"))
        else:
            self._obey_for_ranks(client, command)

    def _obey_for_ranks(self, client: Client, command: RankCommands) -> None:
        if isinstance(command, messages.Interrupt):
            self.ranks.interrupt(command.ranks)
            self.nodes.send(command.ranks, messages.Interrupt)
        elif isinstance(command, messages.Kill):
            ranks, pids = command.ranks or self.ranks.everybody, command.pids
            self.nodes.send(ranks, lambda mine: messages.Kill(pids, mine))
            self.ranks.kill(ranks, pids)
        elif isinstance(command, messages.NoteCell):
            self.ranks.note_cell(command.ranks, command.cell_id)
            self.control.broadcast()
        elif isinstance(command, messages.NoteLate):
            if command.generation == self.ranks.starter.generation:
                self.lock.note_late(command.ranks)
        elif isinstance(command, messages.Log):
            if command.rank in self.ranks.starter.own:
                self.control.tell(client, messages.LogLines(self.ranks.logs.lines(command.rank)))
            else:
                self.nodes.ask_log(client, command.rank)
        elif isinstance(command, messages.StartRanks):
            # All that are here, as there may have been more until now.
            everybody = self.ranks.everybody
            self.restart(everybody if command.whole else command.ranks, command, False)
        else:
            without = command.without_lost_nodes
            chosen = [] if without else command.ranks
            self.restart(chosen or self.ranks.everybody, None, without)


def _ranks_of(command: RankCommands) -> list[int]:
    return [command.rank] if isinstance(command, messages.Log) else command.ranks
