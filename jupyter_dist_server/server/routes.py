"""All routes below ``/jupyter-dist/``; `docs/openapi.yaml` describes them."""

from __future__ import annotations

import socket
from typing import Any

from ..common.version import version
from .base_handlers import DistHandler, StatusHandler
from .gpus.export_handlers import GpuCsvHandler, GpuLinesHandler
from .gpus.gpu_handlers import GpuHistoryHandler, GpusHandler
from .jobs.job_details import JobDetailsHandler, JobLinesHandler
from .jobs.job_handlers import (
    HoldHandler,
    JobHandler,
    JobsHandler,
    PlanHandler,
    QueueHandler,
    ReleaseHandler,
    RequeueHandler,
    SignalHandler,
    SubmitSchemaHandler,
)
from .jobs.log_handlers import JobLogHandler
from .kernels import KernelPoolHandler
from .page_handler import PageHandler
from .pools.cell_handlers import CellsHandler, LanesHandler
from .pools.execute import ExecuteHandler
from .pools.pool_handlers import (
    ExtendHandler,
    InterruptHandler,
    KillHandler,
    LogHandler,
    PoolHandler,
    PoolsHandler,
    RestartHandler,
    StackHandler,
    StartSchemaHandler,
    VerdictHandler,
)
from .pools.variables_and_check_handlers import CheckHandler, VariablesHandler
from .stream_handler import StreamHandler


class ServerStatusHandler(StatusHandler):
    """The extension itself."""

    async def get(self) -> None:
        """Say that the extension is here, and how many pools are alive."""
        await self.require("read")
        alive = sum(not pool.record.state.ended for pool in self.manager.pools.values())
        self.finish({"version": version(), "host": socket.gethostname(), "pools": alive})


class ZygotesHandler(DistHandler):
    """The processes that are kept warm for the next pool."""

    async def delete(self) -> None:
        """End them; pools go on, and the next one starts afresh."""
        await self.require("execute")
        self.manager.zygotes.drop()
        self.finish({})


_POOL = r"jupyter-dist/pools/(?P<pool_id>[\w-]+)"
_JOB = r"jupyter-dist/jobs/(?P<job>[\w-]+)"
_RANK = _POOL + r"/ranks/(?P<rank>[\w-]+)"

ROUTES: list[tuple[str, type[Any]]] = [
    (r"jupyter-dist/", PageHandler),
    (r"jupyter-dist/status", ServerStatusHandler),
    (r"jupyter-dist/gpus", GpusHandler),
    (r"jupyter-dist/gpus/history", GpuHistoryHandler),
    (r"jupyter-dist/gpus/export\.csv", GpuCsvHandler),
    (r"jupyter-dist/gpus/export\.jsonl", GpuLinesHandler),
    (r"jupyter-dist/start-schema", StartSchemaHandler),
    (r"jupyter-dist/zygotes", ZygotesHandler),
    (r"jupyter-dist/pools", PoolsHandler),
    (_POOL, PoolHandler),
    (_POOL + "/interrupt", InterruptHandler),
    (_POOL + "/restart", RestartHandler),
    (_POOL + "/kill", KillHandler),
    (_POOL + "/extend", ExtendHandler),
    (_POOL + "/execute", ExecuteHandler),
    (_POOL + "/verdict", VerdictHandler),
    (_POOL + "/variables", VariablesHandler),
    (_POOL + "/check", CheckHandler),
    (_POOL + "/lanes", LanesHandler),
    (_RANK + "/stack", StackHandler),
    (_RANK + "/log", LogHandler),
    (r"jupyter-dist/cells", CellsHandler),
    (r"jupyter-dist/kernels/(?P<kernel_id>[\w-]+)/pool", KernelPoolHandler),
    (r"jupyter-dist/jobs", JobsHandler),
    (r"jupyter-dist/jobs/plan", PlanHandler),
    (r"jupyter-dist/queue", QueueHandler),
    (r"jupyter-dist/submit-schema", SubmitSchemaHandler),
    (_JOB, JobHandler),
    (_JOB + "/hold", HoldHandler),
    (_JOB + "/release", ReleaseHandler),
    (_JOB + "/requeue", RequeueHandler),
    (_JOB + "/signal", SignalHandler),
    (_JOB + "/log", JobLogHandler),
    (_JOB + "/details", JobDetailsHandler),
    (_JOB + "/lines", JobLinesHandler),
    (r"jupyter-dist/stream", StreamHandler),
]
