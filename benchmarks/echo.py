"""Ranks that only answer, all in one process, and the agent of their pool.

``python -m benchmarks.echo FOLDER`` serves the sockets of a pool's folder until it is killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import zmq
from jupyter_client.session import DELIM, Session

from jupyter_dist_server.common.pool_folder import AGENT_SOCKET, endpoint, read_config
from jupyter_dist_server.common.processes.process_ref import ProcessRef
from jupyter_dist_server.common.protocol.agents.agent_messages import (
    AcquireLock,
    LockGranted,
    RankState,
    Snapshot,
    decode_command,
    encode,
)
from jupyter_dist_server.common.protocol.ranks.evidence import (
    CodePlace,
    Collective,
    EvidenceReply,
    EvidenceRequest,
    Frame,
    Group,
    RankEvidence,
)
from jupyter_dist_server.common.protocol.ranks.rank_messages import (
    RankReport,
    RankStatus,
    Whereabouts,
)

Socket = zmq.Socket[bytes]
_BEGUN = 100
"""Collectives that the ranks have begun."""


class EchoPool:
    def __init__(self, folder: Path) -> None:
        config = read_config(folder)
        self._folder = folder
        self._world_size = config.world_size
        self._session = Session(key=config.key.encode())
        self._context: zmq.Context[Socket] = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, self._context.get(zmq.SOCKET_LIMIT))

    async def serve(self) -> None:
        channels: dict[str, tuple[int, Callable[..., None]]] = {
            "cells": (zmq.ROUTER, self._run),
            "control": (zmq.ROUTER, self._tell),
            "iopub": (zmq.XPUB, self._greet),
        }
        for rank in range(self._world_size):
            for channel, (kind, answer) in channels.items():
                socket: Any = self._context.socket(kind)
                socket.bind(endpoint(self._folder, rank, channel))
                drain = partial(self._drain, socket, partial(answer, rank))
                asyncio.get_running_loop().add_reader(socket.FD, drain)
        await asyncio.start_unix_server(self._be_agent, str(self._folder / AGENT_SOCKET))
        print("ready", flush=True)
        await asyncio.Event().wait()

    async def _be_agent(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ranks = [RankState(rank, "cpu", 0.0, "idle") for rank in range(self._world_size)]
        snapshot = Snapshot(
            process=ProcessRef.of(os.getpid()),
            generation=1,
            start_method="fork",
            backend="none",
            notices=[],
            failure=None,
            stopping=False,
            attachments=[],
            ranks=ranks,
        )
        writer.write(encode(snapshot))
        while line := await reader.readline():
            if isinstance(decode_command(line), AcquireLock):
                writer.write(encode(LockGranted()))

    def _drain(self, socket: Socket, answer: Callable[[Socket, list[bytes]], None]) -> None:
        while int(socket.get(zmq.EVENTS)) & zmq.POLLIN:
            answer(socket, socket.recv_multipart())

    def _run(self, rank: int, socket: Socket, frames: list[bytes]) -> None:
        self._reply(rank, socket, frames, "execute_reply", {"status": "ok"})

    def _tell(self, rank: int, socket: Socket, frames: list[bytes]) -> None:
        if json.loads(frames[3])["msg_type"] == EvidenceRequest.kind:
            said = msgspec.to_builtins(_evidence(rank))
            self._reply(rank, socket, frames, "dist_evidence_reply", said)
            return
        status = RankStatus(
            rank=rank,
            state="idle",
            since=0.0,
            cell=None,
            cell_id=None,
            msg_id=None,
            whereabouts=Whereabouts(),
            calls=0,
            group="echo",
            world_size=self._world_size,
            report=RankReport(os.getpid(), os.getpid(), 0, None),
        )
        self._reply(rank, socket, frames, "dist_status_reply", msgspec.to_builtins(status))

    def _greet(self, rank: int, socket: Socket, frames: list[bytes]) -> None:
        if frames[0][:1] == b"\x01":
            greeting = self._session.msg("iopub_welcome")
            socket.send_multipart(self._session.serialize(greeting, ident=frames[0][1:]))

    def _reply(
        self, rank: int, socket: Socket, frames: list[bytes], kind: str, content: dict[str, Any]
    ) -> None:
        # By hand: the session's own way costs more than what is measured.
        identity, request = frames[0], frames[3]
        header = json.dumps({"msg_id": f"{rank}", "msg_type": kind, "version": "5.3"}).encode()
        parts = [header, request, b"{}", json.dumps(content).encode()]
        socket.send_multipart([identity, DELIM, self._session.sign(parts), *parts])


def _evidence(rank: int) -> EvidenceReply:
    """Return what ranks say that wait for rank 1, and have begun many collectives before."""
    waits = rank != 1
    line = CodePlace("In[9]", 5, "loss.backward()")
    begun = [
        Collective("0", number, "all_reduce", ["20 × float32"], float(number), number < _BEGUN)
        for number in range(1, _BEGUN + waits)
    ]
    evidence = RankEvidence(
        idle=not waits,
        cell=9,
        stack=[Frame("torch.distributed.distributed_c10d", "all_reduce", line)] if waits else [],
        groups={"0": Group([])},
        collectives=begun,
    )
    return EvidenceReply(evidence, group_since=0.0)


if __name__ == "__main__":
    asyncio.run(EchoPool(Path(sys.argv[1])).serve())
