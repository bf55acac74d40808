"""What the handlers of jobs share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeVar

from ...jobs.stopped_processes import stopped_processes
from ...jobs.store.job import Job
from ...jobs.store.store import Store
from ...jobs.store.store_folder import store_folder
from ..base_handlers import StatusHandler

_T = TypeVar("_T")

MOST = 1000
"""Jobs in one answer."""


async def in_store(work: Callable[[Store], _T]) -> _T:
    """Do something with the user's jobs, in a thread: the disk may be slow, and so may NVML."""

    def run() -> _T:
        store = Store(store_folder())
        try:
            return work(store)
        finally:
            store.close()

    return await asyncio.to_thread(run)


def jobs_json(jobs: list[Job], **others: Any) -> str:
    """Return the body that tells of jobs: the first ones, and how many there are."""
    told = [job.to_json() for job in jobs[:MOST]]
    return json.dumps({"jobs": told, "count": len(jobs)} | others)


def stopped_notices(store: Store) -> list[str]:
    """Return what ``jdist`` says of processes that are stopped (SIGSTOP), a text for each."""
    return [" ".join(told) for told in stopped_processes(store)]


class JobHandlerBase(StatusHandler):
    """Handlers of jobs: who may use pools need not be allowed to queue jobs, and the reverse."""

    auth_resource = "jupyter_dist_jobs"

    def answer(self, body: str, status: int = 200) -> None:
        """Answer JSON that was made in a thread."""
        self.set_status(status)
        self.finish(body, set_content_type="application/json")
