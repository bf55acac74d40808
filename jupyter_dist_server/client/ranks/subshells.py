"""Requests that a rank answers while a cell runs: in a subshell, a thread beside the cell.

ipykernel before version 7 has none. The control thread answers then, and Stop waits meanwhile.
"""

from __future__ import annotations

import asyncio

from ...common.background_tasks import within
from ...common.patience import patience
from ...common.protocol.jupyter_messages import Content, Message
from .rank_connection import RankConnection


async def subshell_of(connection: RankConnection, rank: int) -> str:
    """Return the id of a rank's subshell; empty if it has none, or does not answer."""
    if rank not in connection.subshells:
        # Clients share one: each is a thread, and a pool may outlive many kernels.
        said = await _manage(connection, rank, "list_subshell_request")
        if said and said["status"] == "ok" and not said["subshell_id"]:
            said = await _manage(connection, rank, "create_subshell_request")
            said = said and said | {"subshell_id": [said["subshell_id"]]}
        if not said:
            return ""
        connection.subshells[rank] = said["subshell_id"][0] if said["status"] == "ok" else ""
    return connection.subshells[rank]


async def _manage(connection: RankConnection, rank: int, kind: str) -> Content | None:
    replies = await connection.ask(kind, {}, [rank], timeout=patience.busy_answer)
    return replies[rank]["content"] if rank in replies else None


async def ask_beside(
    connection: RankConnection, kind: str, content: Content, rank: int, timeout: float
) -> Content | None:
    """Send one rank a request, and return the content of its reply, if it comes in time."""

    async def answer() -> Content | None:
        subshell = await subshell_of(connection, rank)
        channel, header = ("shell", {"subshell_id": subshell}) if subshell else ("control", None)
        replies = await connection.ask(
            kind, content, [rank], channel=channel, header=header, timeout=timeout
        )
        return replies[rank]["content"] if rank in replies else None

    try:
        said = await within(answer(), timeout)
    except asyncio.TimeoutError:
        return None
    if said and said["status"] != "ok":
        connection.subshells.pop(rank, None)  # another client may have ended it
    return said


async def forward(connection: RankConnection, rank: int, message: Message) -> None:
    """Pass a front end's message to a comm on to a rank, under the front end's own header.

    It goes to a subshell if it came to one.
    """
    header = dict(message["header"])
    if header.pop("subshell_id", None) and (subshell := await subshell_of(connection, rank)):
        header["subshell_id"] = subshell
    passed = {"header": header, "parent_header": {}, "metadata": message["metadata"]}
    passed["content"] = message["content"]
    connection.send(passed, [rank], "shell", message["buffers"])
