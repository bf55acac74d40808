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
        """Return what to raise for the same reason."""
        return DistError(self.code, self.message, self.hint)
