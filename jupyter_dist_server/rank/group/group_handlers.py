"""What a rank does when it is asked to break its process group, or to make it again."""

from __future__ import annotations

import signal

from ...common.protocol.ranks.rank_messages import BreakRequest, RegroupReply, RegroupRequest
from .. import clock
from ..ignore_sigint import ignore_sigint
from ..request_handlers import Asked, hears
from .process_group import ProcessGroup


class GroupHandlers:
    """What `RankKernel` answers about the process group."""

    group: ProcessGroup

    @hears(BreakRequest)
    def dist_break_request(self, asked: Asked[BreakRequest]) -> None:
        """Break the group, on the control thread."""
        order = asked.content
        self.group.free(order.generation, order.group, order.sent)

    @hears(RegroupRequest)
    def dist_regroup_request(self, asked: Asked[RegroupRequest]) -> None:
        """Make the group again, on the main thread, between cells: it blocks until all are in."""
        order, failure = asked.content, "The request came too late."
        patience = order.until - clock.now()
        if patience > 0:  # or nobody waits for it any more
            handler = ignore_sigint()  # it is meant for a cell, and the others are on their way
            try:
                self.group.join(order.name, order.generation, patience, order.sent)
                failure = ""
            except Exception as error:
                failure = f"{type(error).__name__}: {error}"
            finally:
                signal.signal(signal.SIGINT, handler)
        asked.reply(RegroupReply(failure))
