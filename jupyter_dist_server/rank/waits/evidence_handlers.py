"""What this rank does, and which collectives it has begun: reported when its pool hangs."""

from __future__ import annotations

from msgspec.structs import replace

from ...common.protocol.ranks.evidence import (
    DumpReply,
    DumpRequest,
    EvidenceReply,
    EvidenceRequest,
)
from ...common.protocol.ranks.rank_messages import Activity
from .. import clock
from ..group.process_group import ProcessGroup
from ..request_handlers import Asked, hears
from ..torch_internals import groups_by_name
from .flight_recorder import pickled_dump
from .own_evidence import own_evidence
from .stacks import main_thread, of_the_cell


class EvidenceHandlers:
    """What `RankKernel` answers about the collectives that it waits in."""

    _state: Activity
    _cell: int | None
    _ended: str  # the error that ended the last cell
    group: ProcessGroup

    @hears(EvidenceRequest)
    def dist_evidence_request(self, asked: Asked[EvidenceRequest]) -> None:
        """Answer on the control thread, whatever the main thread does."""
        busy, since = self._state == "busy", self.group.since
        stack = of_the_cell(list(main_thread())) if busy else []
        found = own_evidence(stack, since=since, idle=not busy, learn_lines=not busy)
        evidence = replace(
            found,
            cell=self._cell,
            ended=self._ended,
            collectives=clock.shared_collectives(found.collectives),
        )
        asked.reply(EvidenceReply(evidence, clock.shared(since)))

    @hears(DumpRequest)
    def dist_dump_request(self, asked: Asked[DumpRequest]) -> None:
        """Answer on the control thread, too."""
        dump = pickled_dump(groups_by_name())
        asked.reply(DumpReply(), [memoryview(dump)] if dump else [])
