"""``/jupyter-dist/jobs/JOB/verdict``."""

from __future__ import annotations

import msgspec
from tornado import web

from ...jobs.job_control import check_one
from ...jobs.select_jobs import select
from ...pools.explain_processes import explain_job
from .job_handler_base import JobHandlerBase, in_store


class JobVerdictHandler(JobHandlerBase):
    @web.authenticated
    async def get(self, job: str) -> None:
        """Return why the ranks of a job wait, and their stacks."""
        await self.require("read")
        found = await in_store(lambda store: check_one(select(store, [job])))
        self.finish({"launches": msgspec.to_builtins(await explain_job(found), str_keys=True)})
