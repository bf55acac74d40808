"""What a tool is, and what tools have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from ..base_handlers import AUTH_RESOURCE, DistHandler
from .own_routes import RouteFailed

Arguments = dict[str, Any]

VERSION = {
    "type": "string",
    "description": "The `version` that you read last; what has changed since refuses the call.",
}


@dataclass(frozen=True)
class Tool:
    """One tool; `run` returns its text."""

    name: str
    description: str
    run: Callable[[DistHandler, Arguments], Awaitable[str]]
    fields: dict[str, Any]
    required: tuple[str, ...] = ()
    executes: bool = False
    """Whether it changes or runs something."""
    destroys: bool = False
    resource: str = AUTH_RESOURCE
    """For Jupyter's authorizer."""

    def to_json(self) -> dict[str, Any]:
        """Return what ``tools/list`` tells."""
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": {
                "type": "object",
                "properties": self.fields,
                "required": list(self.required),
                "additionalProperties": False,
            },
            "annotations": {
                "readOnlyHint": not self.executes,
                "destructiveHint": self.destroys,
                "openWorldHint": False,
            },
        }


def check_version(given: Arguments, version: str) -> None:
    """Refuse to end what has changed since the agent has read it."""
    if version != given["version"]:
        message = f"It has changed since you read version {given['version']}: it is {version} now."
        raise RouteFailed(f"{message} Read it again, and decide anew.")
