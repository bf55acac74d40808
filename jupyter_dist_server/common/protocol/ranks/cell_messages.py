"""What ranks and clients add to Jupyter's messages about cells and comms."""

from __future__ import annotations

ENDS_CELL = "ends_cell"
"""Key of a rank's ``error`` message: whether the cell ends with it, and its reply says so too."""
INTERRUPTED_AT = "interrupted_at"
"""Key of a rank's reply: where it was when the cell was first interrupted, as `Whereabouts`."""
GROUP = "group"
"""Key of the reply to a cell that did not end well: what is the same on all ranks whose process
group is whole, as in `RankStatus`."""
LOST_CUDA = "lost_cuda"
"""Key of the reply to a cell after whose error every use of CUDA fails in this process."""
COMM_STATUS = "dist_comm_status"
"""Type of the message that tells how far a rank is with a front end's message to a comm."""
COMM_REQUESTS = ("comm_msg", "comm_close")
"""Types of messages in which a front end says something to a comm."""


def cell_topic(session: str) -> bytes:
    """Return the iopub topic on which a client, known by its session's id, gets its replies."""
    return f"jupyter-dist.{session}".encode()
