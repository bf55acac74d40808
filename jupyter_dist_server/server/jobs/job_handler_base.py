"""What the handlers of jobs share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeVar

from ...common.errors import DistError
from ...jobs.stopped_processes import stopped_processes
from ...jobs.store.job import Job
from ...jobs.store.store import Store
from ...jobs.store.store_folder import store_folder
from ..base_handlers import StatusHandler

_T = TypeVar("_T")

MOST = 1000
"""Jobs in one response."""


async def in_store(work: Callable[[Store], _T]) -> _T:
    """Work with the user's jobs in a thread: disk and NVML may be slow."""

    def run() -> _T:
        store = Store(store_folder())
        try:
            return work(store)
        finally:
            store.close()

    return await asyncio.to_thread(run)


def jobs_json(jobs: list[Job], **others: Any) -> str:
    """Return a body with the first jobs and their number."""
    told = [job.to_json() for job in jobs[:MOST]]
    return json.dumps({"jobs": told, "count": len(jobs)} | others)


def stopped_notices(store: Store) -> list[str]:
    """Return the notices of ``jdist`` about stopped processes (SIGSTOP)."""
    return [" ".join(told) for told in stopped_processes(store)]


class JobHandlerBase(StatusHandler):
    """Handlers of jobs, which the authorizer may allow or refuse apart from pools."""

    auth_resource = "jupyter_dist_jobs"

    def answer(self, body: str, status: int = 200) -> None:
        """Answer JSON that was made in a thread."""
        self.set_status(status)
        self.finish(body, set_content_type="application/json")

    def flag(self, name: str) -> bool:
        """Tell whether a parameter is 1."""
        return bool(self.get_query_argument(name, "0") == "1")

    def byte_offset(self, name: str) -> int | None:
        """Return a parameter that is a number of bytes, maybe negative."""
        text = self.get_query_argument(name, "")
        if not text:
            return None
        if not (text.removeprefix("-").isdecimal() and len(text) < 18):
            raise DistError("bad_request", f"{name} must be a number of bytes.", field=name)
        return int(text)
