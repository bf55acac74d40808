"""Why a pool failed, as agents, records and the REST API tell it."""

from __future__ import annotations

import msgspec

from ..errors import DistError


class Reason(msgspec.Struct, frozen=True):
    """Why a pool failed."""

    code: str
    message: str
    hint: str = ""
    rank: int | None = None
    stderr: list[str] = []
    """The last lines that the rank, or the agent, wrote to stderr."""

    def error(self) -> DistError:
        """Return the same as an exception."""
        return DistError(self.code, self.message, self.hint)


def why_no_start(error: DistError | OSError) -> Reason:
    """Return why ranks cannot be started."""
    if isinstance(error, DistError):  # the disk is full, say
        return Reason(error.code, error.message, error.hint)
    # No port is free, say, or the node's address has gone.
    said = f"The ranks could not be started: {error.strerror or error}."
    return Reason("start_failed", said, "Start again with %dist_init.")
