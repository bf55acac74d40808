"""``POST /jupyter-dist/pools/{id}/execute``: run code on ranks from any tool."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from tornado import web
from tornado.iostream import StreamClosedError

from ...client.cell_execution import Execution
from ...client.pool_client import POOL_PARKED, PoolClient
from ...common.errors import DistError
from ...common.rank_specs import check_ranks
from ...placement.requests.field_checks import MAX_SECONDS
from ..base_handlers import NDJSON, DistHandler
from .outputs import LARGEST_DISPLAY, PORTION, Backlog, Collected, portions
from .pool_handlers import check_rank_list

_Run = Callable[[Any], Coroutine[Any, Any, dict[int, str]]]


class ExecuteHandler(DistHandler):
    @web.authenticated
    async def post(self, pool_id: str) -> None:
        """Run code and return outputs by rank; ``Accept: application/x-ndjson`` streams them."""
        await self.require("execute")
        body = self.body(("code", "ranks", "timeout"))
        pool = self.manager.get(pool_id)
        code, limit = body.get("code"), body.get("timeout")
        if not isinstance(code, str):
            raise DistError("bad_request", "The code must be a string.", field="code")
        if limit is not None and (type(limit) not in (int, float) or not 0 < limit <= MAX_SECONDS):
            message = "The time limit must be a positive number of seconds."
            raise DistError("bad_request", message, field="timeout")
        ranks = check_rank_list(body) or list(range(pool.record.world_size))
        check_ranks(ranks, pool.record.world_size)
        while True:
            async with self.settings["jupyter_dist_clients"].use(pool, limit) as client:
                run = partial(run_limited, client, code, ranks, limit, gone=self.gone)
                try:
                    if NDJSON in self.request.headers.get("Accept", ""):
                        await self._stream(run)
                    else:
                        await self._collect(run, ranks)
                    return
                except DistError as error:
                    if error.code != POOL_PARKED:  # while the code waited for its turn
                        raise

    async def _collect(self, run: _Run, ranks: list[int]) -> None:
        outputs = Collected(ranks)
        statuses = await run(outputs.add)
        self.set_header("Content-Type", "application/json")
        with contextlib.suppress(StreamClosedError):
            waiting = ""
            for piece in outputs.pieces(statuses):
                waiting += piece
                if len(waiting) >= PORTION:
                    await self.send(waiting)
                    waiting = ""
            await self.finish(waiting)

    async def _stream(self, run: _Run) -> None:
        self.set_header("Content-Type", NDJSON)
        lines = Backlog()
        running = asyncio.create_task(run(lines.put))
        running.add_done_callback(lambda _: lines.end())
        try:
            while line := await lines.take():
                for portion in portions(line):
                    await self.send(portion)
            for rank, status in (await running).items():
                self.write(json.dumps({"rank": rank, "status": status}) + "\n")
            await self.finish(set_content_type=NDJSON)
        except StreamClosedError:
            self.gone.set()
            await running


async def run_limited(
    client: PoolClient,
    code: str,
    ranks: list[int],
    limit: float | None,
    on_output: Any,
    gone: asyncio.Event,
) -> dict[int, str]:
    """Run code, and stop it at the time limit or when the client has left.

    The statuses of the ranks are ``ok``, ``error``, ``dead`` or ``timeout``.
    """
    executions: list[Execution] = []
    work = client.execute(
        code, ranks, on_output, largest_display=LARGEST_DISPLAY, started=executions.append
    )
    running, left = asyncio.create_task(work), asyncio.create_task(gone.wait())
    late: list[int] = []
    await asyncio.wait({running, left}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
    left.cancel()
    if not running.done():
        late = executions[0].outstanding
        client.stop(executions[0])
    try:
        replies = await running
    finally:
        client.executions.forget(executions)  # nobody reads the output of its threads
    return {rank: "timeout" if rank in late else replies[rank].status for rank in ranks}
