"""``POST /jupyter-dist/pools/{id}/execute``: run code on ranks from any tool."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from tornado.iostream import StreamClosedError

from ..errors import DistError
from ..pools.client import PoolClient
from ..pools.execution import Execution
from ..pools.pool import Pool
from ..pools.ranks import check_ranks
from ..pools.records import PoolState
from ..pools.request import MAX_SECONDS
from .base import DistHandler
from .pools import check_rank_list

NDJSON = "application/x-ndjson"


class Clients:
    """One client for each pool that is used by REST."""

    def __init__(self) -> None:
        self._clients: dict[str, tuple[int, PoolClient]] = {}
        """By pool, with the generation of the ranks that the client is connected to."""
        self._connecting = asyncio.Lock()

    async def get(self, pool: Pool) -> PoolClient:
        """Return a connected client.

        Raises
        ------
        DistError
            If the pool is not running.
        """
        if pool.record.state is not PoolState.RUNNING:
            raise DistError(
                "pool_not_running", f"The pool cannot run code: it is {pool.record.state.value}."
            )
        async with self._connecting:
            await self._drop_ended()
            generation, client = self._clients.get(pool.record.id, (None, None))
            if client is None or generation != pool.record.generation:
                await self.drop(pool.record.id)
                client, generation = PoolClient(Path(pool.record.folder)), pool.record.generation
                await client.connect()
                self._clients[pool.record.id] = generation, client
        return client

    async def _drop_ended(self) -> None:
        for pool_id, (_, client) in list(self._clients.items()):
            if client.link.closed.is_set():
                await self.drop(pool_id)

    async def drop(self, pool_id: str) -> None:
        """Disconnect from a pool."""
        if known := self._clients.pop(pool_id, None):
            await known[1].close()

    async def close(self) -> None:
        """Disconnect from every pool."""
        for pool_id in list(self._clients):
            await self.drop(pool_id)


class ExecuteHandler(DistHandler):
    """Run code on ranks."""

    _gone: asyncio.Event | None = None

    def on_connection_close(self) -> None:
        """Note that nobody listens any more."""
        super().on_connection_close()
        if self._gone:
            self._gone.set()

    async def post(self, pool_id: str) -> None:
        """Run code and answer outputs by rank; ``Accept: application/x-ndjson`` streams them."""
        await self.require("execute")
        body = self.body(("code", "ranks", "timeout"))
        pool = self.manager.get(pool_id)
        code, limit = body.get("code"), body.get("timeout")
        if not isinstance(code, str):
            raise DistError("bad_request", "The code must be a string.", field="code")
        if limit is not None and (type(limit) not in (int, float) or not 0 < limit <= MAX_SECONDS):
            raise DistError(
                "bad_request", "The time limit is a positive number of seconds.", field="timeout"
            )
        ranks = check_rank_list(body) or list(range(pool.record.world_size))
        check_ranks(ranks, pool.record.world_size)
        client = await self.settings["jupyter_dist_clients"].get(pool)
        self._gone = asyncio.Event()
        if NDJSON in self.request.headers.get("Accept", ""):
            await self._stream(client, code, ranks, limit)
        else:
            await self._collect(client, code, ranks, limit)

    async def _collect(
        self, client: PoolClient, code: str, ranks: list[int], limit: float | None
    ) -> None:
        assert self._gone
        outputs: dict[int, list[dict[str, Any]]] = {rank: [] for rank in ranks}

        def collect(rank: int, kind: str, content: dict[str, Any]) -> None:
            add_output(outputs[rank], kind, content)

        statuses = await run_limited(client, code, ranks, limit, collect, self._gone)
        if not self._gone.is_set():
            answer = {
                str(rank): {"status": statuses[rank], "outputs": joined(outputs[rank])}
                for rank in ranks
            }
            self.finish({"ranks": answer})

    async def _stream(
        self, client: PoolClient, code: str, ranks: list[int], limit: float | None
    ) -> None:
        assert self._gone
        self.set_header("Content-Type", NDJSON)
        lines: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

        def collect(rank: int, kind: str, content: dict[str, Any]) -> None:
            if output := to_output(kind, content):
                lines.put_nowait({"rank": rank, "output": output})

        work = run_limited(client, code, ranks, limit, collect, self._gone)
        running = asyncio.create_task(work)
        running.add_done_callback(lambda _: lines.put_nowait(None))
        try:
            while line := await lines.get():
                self.write(json.dumps(line) + "\n")
                await self.flush()
            for rank, status in (await running).items():
                self.write(json.dumps({"rank": rank, "status": status}) + "\n")
            await self.finish(set_content_type=NDJSON)
        except StreamClosedError:
            self._gone.set()
            await running


async def run_limited(
    client: PoolClient,
    code: str,
    ranks: list[int],
    limit: float | None,
    on_output: Any,
    gone: asyncio.Event,
) -> dict[int, str]:
    """Run code, and stop what still runs at the time limit or when the caller is gone.

    Returns
    -------
    dict
        By rank: ``ok``, ``error``, ``dead`` or ``timeout``.
    """
    executions: list[Execution] = []
    work = client.execute(code, ranks, on_output, started=executions.append)
    running, left = asyncio.create_task(work), asyncio.create_task(gone.wait())
    late: list[int] = []
    await asyncio.wait({running, left}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
    left.cancel()
    if not running.done():
        late = executions[0].outstanding
        client.stop(executions[0])
    replies = await running
    return {rank: "timeout" if rank in late else replies[rank].status for rank in ranks}


def to_output(kind: str, content: dict[str, Any]) -> dict[str, Any] | None:
    """Return a message as a notebook output (nbformat 4), `None` if it is not one."""
    if kind == "stream":
        return {"output_type": "stream", "name": content["name"], "text": content["text"]}
    if kind == "error":
        names = ("ename", "evalue", "traceback")
        return {"output_type": "error", **{name: content[name] for name in names}}
    if kind in ("display_data", "update_display_data", "execute_result"):
        output = {"data": content["data"], "metadata": content.get("metadata", {})}
        if kind == "execute_result":
            output["execution_count"] = content["execution_count"]
            return {"output_type": kind, **output}
        return {"output_type": "display_data", **output}
    return None


def add_output(outputs: list[dict[str, Any]], kind: str, content: dict[str, Any]) -> None:
    """Append a message to a rank's outputs; the text of a stream stays in pieces until `joined`."""
    if kind == "clear_output":
        outputs.clear()
        return
    output = to_output(kind, content)
    if output is None:
        return
    last = outputs[-1] if outputs else {}
    if kind != "stream":
        outputs.append(output)
    elif last.get("name") == output["name"]:
        last["text"].append(output["text"])
    else:
        outputs.append(output | {"text": [output["text"]]})


def joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return outputs with the pieces of each stream joined."""
    return [
        output | {"text": "".join(output["text"])} if "text" in output else output
        for output in outputs
    ]
