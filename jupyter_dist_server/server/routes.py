"""All routes below ``/jupyter-dist/``; `docs/openapi.yaml` describes them."""

from __future__ import annotations

import socket
from typing import Any

from tornado import web

from ..common.package_version import version
from .base_handlers import DistHandler, StatusHandler
from .gpus import gpu_handlers
from .jobs import job_handlers, log_handlers
from .jobs.verdict_handler import JobVerdictHandler
from .mcp.mcp_handler import McpHandler
from .page import PageHandler
from .pools import execute, pool_handlers, rank_handlers, start_form
from .pools_of_kernels import KernelPoolHandler
from .stream_handler import StreamHandler


class ServerStatusHandler(StatusHandler):
    @web.authenticated
    async def get(self) -> None:
        """Return the version, the host and the number of live pools."""
        await self.require("read")
        alive = sum(not pool.record.state.ended for pool in self.manager.pools.values())
        self.finish({"version": version(), "host": socket.gethostname(), "pools": alive})


class ZygotesHandler(DistHandler):
    @web.authenticated
    async def delete(self) -> None:
        """End the processes that wait for the next pool; running pools keep running."""
        await self.require("execute")
        self.manager.zygotes.drop()
        self.finish({})


_POOL = r"jupyter-dist/pools/(?P<pool_id>[\w-]+)"
_JOB = r"jupyter-dist/jobs/(?P<job>[\w-]+)"
_RANK = _POOL + r"/ranks/(?P<rank>[\w-]+)"

ROUTES: list[tuple[str, type[Any]]] = [
    (r"jupyter-dist/", PageHandler),
    (r"jupyter-dist/status", ServerStatusHandler),
    (r"jupyter-dist/gpus", gpu_handlers.GpusHandler),
    (r"jupyter-dist/gpus/history", gpu_handlers.GpuHistoryHandler),
    (r"jupyter-dist/gpus/export\.csv", gpu_handlers.GpuCsvHandler),
    (r"jupyter-dist/gpus/export\.jsonl", gpu_handlers.GpuLinesHandler),
    (r"jupyter-dist/start-schema", start_form.StartSchemaHandler),
    (r"jupyter-dist/zygotes", ZygotesHandler),
    (r"jupyter-dist/pools", pool_handlers.PoolsHandler),
    (_POOL, pool_handlers.PoolHandler),
    (_POOL + "/interrupt", pool_handlers.InterruptHandler),
    (_POOL + "/restart", pool_handlers.RestartHandler),
    (_POOL + "/resize", pool_handlers.ResizeHandler),
    (_POOL + "/park", pool_handlers.ParkHandler),
    (_POOL + "/resume", pool_handlers.ResumeHandler),
    (_POOL + "/kill", pool_handlers.KillHandler),
    (_POOL + "/extend", pool_handlers.ExtendHandler),
    (_POOL + "/execute", execute.ExecuteHandler),
    (_POOL + "/verdict", rank_handlers.VerdictHandler),
    (_POOL + "/variables", rank_handlers.VariablesHandler),
    (_POOL + "/check", rank_handlers.CheckHandler),
    (_POOL + "/lanes", rank_handlers.LanesHandler),
    (_RANK + "/stack", rank_handlers.StackHandler),
    (_RANK + "/log", rank_handlers.LogHandler),
    (r"jupyter-dist/cells", rank_handlers.CellsHandler),
    (r"jupyter-dist/kernels/(?P<kernel_id>[\w-]+)/pool", KernelPoolHandler),
    (r"jupyter-dist/jobs", job_handlers.JobsHandler),
    (r"jupyter-dist/jobs/plan", job_handlers.PlanHandler),
    (r"jupyter-dist/queue", job_handlers.QueueHandler),
    (r"jupyter-dist/submit-schema", job_handlers.SubmitSchemaHandler),
    (_JOB, job_handlers.JobHandler),
    (_JOB + "/hold", job_handlers.HoldHandler),
    (_JOB + "/release", job_handlers.ReleaseHandler),
    (_JOB + "/requeue", job_handlers.RequeueHandler),
    (_JOB + "/signal", job_handlers.SignalHandler),
    (_JOB + "/log", log_handlers.JobLogHandler),
    (_JOB + "/verdict", JobVerdictHandler),
    (_JOB + "/details", job_handlers.JobDetailsHandler),
    (_JOB + "/lines", log_handlers.JobLinesHandler),
    (r"jupyter-dist/mcp", McpHandler),
    (r"jupyter-dist/stream", StreamHandler),
]
