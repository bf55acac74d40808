"""Questions that a rank answers while a cell runs: in a subshell, a thread beside the cell.

Before ipykernel 7 there are none. The control thread answers then, and a Stop waits meanwhile.
"""

from __future__ import annotations

import asyncio

from ...common.protocol.jupyter_messages import Content, Message
from .rank_connection import RankConnection

_ANSWER = 5.0
"""Seconds for which a rank's control thread is waited for."""


async def subshell_of(connection: RankConnection, rank: int) -> str:
    """Return the id of a rank's subshell; empty if it has none, or does not answer."""
    if rank not in connection.subshells:
        # Clients share one: each is a thread, and a pool outlives many a notebook's kernel.
        listed = await connection.ask("list_subshell_request", {}, [rank], timeout=_ANSWER)
        if rank not in listed:
            return ""
        if listed[rank]["content"]["status"] != "ok":
            connection.subshells[rank] = ""
            return ""
        ids = listed[rank]["content"]["subshell_id"]
        if not ids:
            made = await connection.ask("create_subshell_request", {}, [rank], timeout=_ANSWER)
            if rank not in made:
                return ""
            ids = [made[rank]["content"]["subshell_id"]]
        connection.subshells[rank] = ids[0]
    return connection.subshells[rank]


async def ask_beside(
    connection: RankConnection, kind: str, content: Content, rank: int, timeout: float
) -> Content | None:
    """Ask a rank something.

    Parameters
    ----------
    connection : RankConnection
        To the rank, among others.
    kind : str
        The message type, such as ``complete_request``.
    content : dict
        The message's content.
    rank : int
        Whom to ask.
    timeout : float
        Seconds to wait.

    Returns
    -------
    dict or None
        The reply's content; `None` if none came in time.
    """

    async def answer() -> Content | None:
        subshell = await subshell_of(connection, rank)
        channel, header = ("shell", {"subshell_id": subshell}) if subshell else ("control", None)
        replies = await connection.ask(
            kind, content, [rank], channel=channel, header=header, timeout=timeout
        )
        return replies[rank]["content"] if rank in replies else None

    try:
        said = await asyncio.wait_for(answer(), timeout)
    except asyncio.TimeoutError:
        return None
    if said and said["status"] != "ok":
        connection.subshells.pop(rank, None)  # whoever made it may have ended it
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
