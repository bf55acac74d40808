"""Requests to the debugger in a rank.

``message`` is one of the Debug Adapter Protocol, see
https://microsoft.github.io/debug-adapter-protocol/specification.
"""

from __future__ import annotations

from ..jupyter_messages import Content
from .rank_messages import RankReply, RankRequest


class DebugAttachRequest(RankRequest, frozen=True):
    """Switch the debugger on, for this client instead of another one, also while a cell runs.

    Later replies to this request are its events.
    """

    kind = "dist_debug_attach_request"


class DebugAttachReply(RankReply, frozen=True):
    """Whether the debugger is on, or one of its events."""

    failure: str = ""
    """Why it is off."""
    event: Content | None = None


class DebugRequest(RankRequest, frozen=True):
    """Pass a request on to the debugger."""

    kind = "dist_debug_request"
    message: Content


class DebugReply(RankReply, frozen=True):
    """Its response."""

    message: Content


class DebugDetachRequest(RankRequest, frozen=True):
    """Switch the debugger off; what it has stopped goes on."""

    kind = "dist_debug_detach_request"


class DebugDetachReply(RankReply, frozen=True):
    """It is off."""
