"""Asking the ranks of a pool how they are, by their control channels alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client.session import Session

from ..common.folder import endpoint, read_config


async def ask_rank(folder: Path, rank: int, request: str, timeout: float) -> dict[str, Any] | None:
    """Return what one rank answers to one request; `None` if it does not within `timeout` s."""
    config = read_config(folder)
    session = Session(key=config["key"].encode(), username="jupyter-dist")
    with zmq.asyncio.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.linger = 0
        socket.connect(endpoint(folder, rank, "control"))
        await socket.send_multipart(session.serialize(session.msg(request, {})))
        try:
            return await asyncio.wait_for(_answer(session, socket, request), timeout)
        except asyncio.TimeoutError:
            return None


async def _answer(session: Session, socket: zmq.asyncio.Socket, request: str) -> dict[str, Any]:
    reply = request.replace("_request", "_reply")
    while True:
        _, parts = session.feed_identities(await socket.recv_multipart())
        message = session.deserialize(parts)
        if message["msg_type"] == reply:
            content: dict[str, Any] = message["content"]
            return content


class StatusChannel:
    """One socket to each rank, with a session of our own; nothing else of a rank reaches us.

    Parameters
    ----------
    folder : Path
        The pool's private folder.
    """

    def __init__(self, folder: Path) -> None:
        config = read_config(folder)
        self._session = Session(key=config["key"].encode(), username="jupyter-dist")
        self._context = zmq.asyncio.Context()
        self._sockets: list[zmq.asyncio.Socket] = []
        self._awaited: dict[int, asyncio.Task[dict[str, Any]]] = {}
        for rank in range(config["world_size"]):
            socket = self._context.socket(zmq.DEALER)
            socket.linger = 0
            socket.connect(endpoint(folder, rank, "control"))
            self._sockets.append(socket)

    async def ask(
        self, timeout: float, ranks: Iterable[int] | None = None
    ) -> list[dict[str, Any] | None]:
        """Return what each rank says, see `RankKernel`; `None` if it did not within `timeout` s.

        Of `ranks`, if they are given, one that has not answered yet is not asked again.
        """
        everybody = range(len(self._sockets))
        frames = self._session.serialize(self._session.msg("dist_status_request", {}))
        for rank in everybody if ranks is None else ranks:
            if rank not in self._awaited:
                socket = self._sockets[rank]
                await socket.send_multipart(frames)  # signed once: all ranks share the key
                answer = _answer(self._session, socket, "dist_status_request")
                self._awaited[rank] = asyncio.create_task(answer)
        if self._awaited:
            await asyncio.wait(self._awaited.values(), timeout=timeout)
        done = {rank: answer for rank, answer in self._awaited.items() if answer.done()}
        for rank in done:
            del self._awaited[rank]
        return [done[rank].result() if rank in done else None for rank in everybody]

    async def close(self) -> None:
        """Disconnect; the ranks go on."""
        for answer in self._awaited.values():
            answer.cancel()
        await asyncio.gather(*self._awaited.values(), return_exceptions=True)
        self._context.destroy(linger=0)
