"""The official client of the Model Context Protocol: all versions, over HTTP and `jdist mcp`."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from ..jobs.queue_driver import JDIST
from ..server_driver import Server

mcp = pytest.importorskip("mcp")
MODES = ["legacy", "2026-07-28", None]
"""The handshake, the newest version, and what the client chooses."""


async def look(transport: Any, mode: str | None) -> None:
    async with mcp.Client(transport, **({"mode": mode} if mode else {})) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"start_pool", "run_on_ranks", "why_stuck", "submit_job"} <= tools
        found = await client.call_tool("pools", {})
        assert not found.is_error and json.loads(found.content[0].text).keys() <= {"pools"}
        refused = await client.call_tool("pool", {"pool": "p-0"})
        assert refused.is_error and "There is no pool p-0" in refused.content[0].text


@pytest.mark.parametrize("mode", MODES)
async def test_over_http(server: Server, mode: str | None) -> None:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"token {server.token}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        url = f"{server.url.rstrip('/')}/jupyter-dist/mcp"
        await look(streamable_http_client(url, http_client=http), mode)


@pytest.mark.parametrize("mode", MODES)
async def test_by_the_bridge(server: Server, mode: str | None) -> None:
    from mcp.client.stdio import StdioServerParameters, stdio_client

    command = StdioServerParameters(
        command=sys.executable, args=["-c", JDIST, "mcp"], env=server.env, cwd=server.root
    )
    await look(stdio_client(command), mode)
