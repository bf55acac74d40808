"""What ranks and clients add to Jupyter's messages about cells and comms."""

from __future__ import annotations

ENDS_CELL = "ends_cell"
"""Key of a rank's ``error`` message: whether the cell ends with it, as its reply says too."""
INTERRUPTED_AT = "interrupted_at"
"""Key of a rank's reply: where it was when the cell was first interrupted, as `Whereabouts`."""
GROUP = "group"
"""Key of the reply to a cell that did not end well: the `group` of `RankStatus`."""
LOST_CUDA = "lost_cuda"
"""Key of the reply to a cell after whose error CUDA no longer works in this process."""
COMM_STATUS = "dist_comm_status"
"""Type of the message that tells how far a rank is with a front end's message to a comm."""
COMM_REQUESTS = ("comm_msg", "comm_close")
"""Types of a front end's messages to a comm."""


def cell_topic(session: str) -> bytes:
    """Return the iopub topic of replies to the client with a session's id."""
    return f"jupyter-dist.{session}".encode()
