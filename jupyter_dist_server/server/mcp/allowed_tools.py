"""Which tools a coding agent may call."""

from __future__ import annotations

from ..base_handlers import DistHandler
from .job_tools import JOB_TOOLS
from .pool_tools import POOL_TOOLS
from .tool import Tool

TOOLS = {tool.name: tool for tool in (*POOL_TOOLS, *JOB_TOOLS)}


async def may_call(handler: DistHandler, tool: Tool) -> bool:
    """Tell whether a tool is switched on, and the user of a request allowed to use it."""
    if not tool.executes:
        return await handler.may("read", tool.resource)
    is_on = handler.settings["jupyter_dist_mcp"] == "all"
    return is_on and await handler.may("execute", tool.resource)
