"""The notebook's connection to the ranks of its pool."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from ...client.agent_link import unreachable
from ...client.pool_client import PoolClient
from ...common.errors import DistError
from ...common.protocol.agents.agent_messages import Attach
from ...common.protocol.agents.attachment import KERNEL, Attachment
from ...common.protocol.pool_file import OtherVersion
from ...common.protocol.pool_record import PoolRecord
from ..loop_thread import LoopThread
from .pool_control import kernel_id


class PoolConnection:
    """A client of the ranks, which lives in the notebook's loop."""

    def __init__(self, loop: LoopThread) -> None:
        self.client: PoolClient | None = None
        self._loop = loop
        self._pool: tuple[str, int] | None = None
        """The pool's ID, and the generation of its ranks."""
        self._calls: set[Future[Any]] = set()
        self._all_cells: str | None = None
        """The ID of the pool to which cells without a magic of ours go too."""

    def open(self, record: PoolRecord) -> None:
        """Connect to the ranks of a pool, and keep it alive."""
        self.close()
        self.end_all_cells_of_others(record.id)
        self.client = self._loop.run(_connected(Path(record.folder), self._attachment()))
        self._pool = record.id, record.generation

    def close(self) -> None:
        """Disconnect, if there is a connection."""
        if self.client:
            self._loop.run(self.client.close())
        self.client = self._pool = None

    def is_to(self, record: PoolRecord) -> bool:
        """Tell whether it is to a pool's present ranks."""
        return self._pool == (record.id, record.generation)

    @property
    def is_broken(self) -> bool:
        """Whether the pool's agent has closed it."""
        client = self.client
        return client is not None and client.link.closed.is_set()

    @property
    def all_cells(self) -> bool:
        """Whether cells without our magics go to the ranks too; the pool's attachments tell it."""
        return self._all_cells is not None

    @all_cells.setter
    def all_cells(self, on: bool) -> None:
        self._all_cells = self._pool[0] if on and self._pool else None
        if self.client:
            attachment = self._attachment()
            self._loop.call(lambda link: link.send(Attach(attachment)), self.client.link)

    def end_all_cells_of_others(self, pool_id: str) -> None:
        """Send all cells only to the pool for which the user has enabled it."""
        if self._all_cells != pool_id:
            self._all_cells = None

    def keep_for(self, call: Future[Any]) -> None:
        """Stay open until a call ends, even if ranks are replaced meanwhile."""
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    @contextlib.contextmanager
    def replaced(self) -> Iterator[None]:
        """Make way for a connection to new ranks; the old one closes when its calls have ended."""
        old, self.client, self._pool = self.client, None, None
        try:
            yield
        finally:
            if old:
                self._loop.submit(_close_after(list(self._calls), old))

    def _attachment(self) -> Attachment:
        name = os.environ.get("JPY_SESSION_NAME", "")
        return Attachment.of_this_process(KERNEL, kernel_id(), name, self.all_cells)


async def _connected(folder: Path, attachment: Attachment) -> PoolClient:
    try:
        client = PoolClient(folder)  # its sockets belong to the loop that makes them
    except FileNotFoundError as error:
        raise unreachable(folder, error) from None
    except OtherVersion as error:
        raise DistError(
            "pool_unreachable",
            f"This kernel cannot use the pool: {error}.",
            "Install the same version of jupyter-dist-server in the environments of the Jupyter "
            "server and of the kernel.",
        ) from None
    await client.connect()
    client.link.send(Attach(attachment))
    return client


async def _close_after(calls: Iterable[Future[Any]], client: PoolClient) -> None:
    await asyncio.gather(*map(asyncio.wrap_future, calls), return_exceptions=True)
    await client.close()
