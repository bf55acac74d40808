"""The Jupyter Server extension: settings, wiring, start and stop."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import threading
from functools import partial
from pathlib import Path
from typing import Any

from jupyter_server.extension.application import ExtensionApp
from jupyter_server.utils import url_path_join
from traitlets import Bool, CaselessStrEnum, Float, default

from ..common.background_tasks import Tasks
from ..common.patience import patience
from ..common.processes.program_path import let_programs_find_jdist
from ..common.protocol.agents.attachment import SERVER, Owner
from ..common.server_file import write_discovery_file
from ..engines.choose_engine import ENGINES
from ..gpus.telemetry import Telemetry
from ..gpus.used_without_lease import UNSEEN, most_unseen
from ..pools.pool import DEFAULT_TIMEOUT
from ..pools.pool_manager import PoolManager
from ..pools.processes.zygote_registry import DEFAULT_KEEP_WARM
from ..pools.reports.cell_history import CellHistory
from ..pools.reports.gpus_of_other_nodes import OtherNodes
from ..pools.reports.rank_usage import RankUsage
from ..pools.reports.rank_variables import RankVariables
from .gpus.gpu_messages import GpuFeed
from .gpus.prometheus import GpuCollector
from .jobs.job_news import JobFeed
from .mcp.agent_calls import AgentCalls
from .mcp.pool_tools import Runs
from .pools.orphaned_pools import end_orphans
from .pools.shared_clients import Clients
from .pools.start_form import ClusterQuestion
from .pools_of_kernels import follow_files, follow_kernels, kernel_processes
from .routes import ROUTES
from .weak_settings import weak_points

_CELLS_ON_RANKS = {"%%distributed": "python3", "%%rank": "python3"}
"""The highlighting of such cells in exported notebooks."""


class JupyterDistApp(ExtensionApp):
    """Pools of ranks for notebooks."""

    name = "jupyter_dist_server"
    extension_url = "/lab"
    load_other_extensions = True

    start_timeout = Float(
        DEFAULT_TIMEOUT,
        min=1.0,
        config=True,
        help="""Time limit in seconds for the start of a pool. Most of this time is the import of
        torch, which is slow from a cold or shared disk. A request can set a longer limit.""",
    )
    orphan_grace = Float(
        600.0,
        min=0.0,
        config=True,
        help="""Seconds that a pool keeps running after its kernel died or this server was killed.
        Until then, a notebook can use it with %dist_attach, and a new server adopts it.""",
    )
    keep_warm = Float(
        DEFAULT_KEEP_WARM,
        min=0.0,
        config=True,
        help="""Seconds that a process with torch imported keeps running after the last pool has
        ended. The next pool then starts in a fraction of the time. 0 disables this.""",
    )
    engine = CaselessStrEnum(
        ["", *ENGINES],
        "",
        config=True,
        help="""What starts ranks on other nodes if %dist_init has no --engine. By default, the
        cluster that the notebook is in. local: pools have only the node of the notebook.""",
    )
    stop_pools_on_exit = Bool(
        True,
        config=True,
        help="""Whether to stop pools when this server is shut down. Otherwise, they keep running as
        long as their kernels, or for orphan_grace seconds, and the next server adopts them.""",
    )
    sample_interval = Float(
        1.0,
        min=0.25,
        max=60.0,
        config=True,
        help="""Seconds between two samples of the GPUs, from 0.25 to 60. One process reads the
        GPUs for all clients, and only while a client needs them.""",
    )
    history_minutes = Float(
        15.0,
        min=1.0,
        max=240.0,
        config=True,
        help="""Minutes of GPU history at full resolution, from 1 to 240. Averages are kept for
        24 times as long. One hour takes 11 MiB for 8 GPUs.""",
    )
    sampler_linger = Float(
        60.0,
        min=0.0,
        config=True,
        help="""Seconds that the GPUs are still read after the last panel was closed.""",
    )
    patience = Float(
        1.0,
        min=0.01,
        max=100.0,
        config=True,
        help="""Factor for all limits of waits on other processes, nodes and drivers, here and in
        notebooks, ranks and jobs. Raise it on a machine that is always overloaded. The default is
        JUPYTER_DIST_PATIENCE in the server's environment, or 1.""",
    )
    unseen_memory = Float(
        512.0,
        min=0.0,
        config=True,
        help="""MiB that processes which nobody can see may use of a GPU that counts as free: the
        driver itself, or a desktop. inf counts the processes alone that the driver lists. The
        default is JUPYTER_DIST_UNSEEN_MEMORY in the server's environment, or 512.""",
    )
    mcp = CaselessStrEnum(
        ["off", "read", "all"],
        "all",
        config=True,
        help="""Which tools coding agents have at jupyter-dist/mcp, and by jdist mcp: none, those
        that only read, or all. Like REST, they need Jupyter's authentication and authorization.""",
    )
    let_kernels_find_us = Bool(
        True,
        config=True,
        help="""Whether to write a file, readable only by you, with which the magics in a
        notebook find this server. Without it, %dist_init starts ranks from the notebook's
        kernel, and the panel does not show them.""",
    )

    @default("patience")
    def _default_patience(self) -> float:
        return patience.factor

    @default("unseen_memory")
    def _default_unseen_memory(self) -> float:
        return most_unseen() / 2**20

    def initialize_settings(self) -> None:
        """Create what handlers share."""
        patience.set(self.patience)
        os.environ[UNSEEN] = f"{self.unseen_memory:g}"  # for notebooks and jobs
        let_programs_find_jdist()
        if self.serverapp:
            self.serverapp.config.HighlightMagicsPreprocessor.languages.update(_CELLS_ON_RANKS)
        self._secret = secrets.token_urlsafe(32)
        owner = Owner(SERVER, self.orphan_grace)
        self._manager = PoolManager(
            watch=True, owner=owner, keep_warm=self.keep_warm, engine=self.engine
        )
        self._clients = Clients()
        self._telemetry = Telemetry(
            self.sample_interval, 60 * self.history_minutes, self.sampler_linger
        )
        self._usage = RankUsage(self._manager)
        self._other_nodes = OtherNodes(self._manager, self._telemetry)
        kernels = partial(kernel_processes, self.serverapp)
        self._gpus = GpuFeed(self._telemetry, self._usage, self._manager, kernels)
        self._collector = GpuCollector(self._telemetry, self._manager)
        self._discovery_file: Path | None = None
        self._has_adopted = asyncio.Event()
        """Set when the pools of an earlier server are known."""
        self._tasks = tasks = Tasks()
        self.settings.update(
            jupyter_dist_manager=self._manager,
            jupyter_dist_has_adopted=self._has_adopted,
            jupyter_dist_cells=CellHistory(self._manager),
            jupyter_dist_secret=self._secret,
            jupyter_dist_clients=self._clients,
            jupyter_dist_variables=RankVariables(),
            jupyter_dist_gpus=self._gpus,
            jupyter_dist_jobs=JobFeed(),
            jupyter_dist_mcp=self.mcp,
            jupyter_dist_mcp_calls={},
            jupyter_dist_agent_calls=AgentCalls(),
            jupyter_dist_mcp_runs=Runs(),
            jupyter_dist_tasks=tasks,
            jupyter_dist_start_timeout=self.start_timeout,
            jupyter_dist_cluster=ClusterQuestion(self.engine, tasks),
        )
        follow_kernels(self.serverapp, self._manager, tasks)
        follow_files(self.serverapp, self._manager)
        # Before 2.16, Jupyter Server calls nothing once it runs.
        calls_us = hasattr(ExtensionApp, "_start_jupyter_server_extension")
        if self.serverapp and not calls_us:
            start = partial(self._start_jupyter_server_extension, self.serverapp)
            self.serverapp.io_loop.add_callback(start)

    def initialize_handlers(self) -> None:
        """Register the routes."""
        self.handlers.extend((url_path_join("/", route), handler) for route, handler in ROUTES)

    async def _start_jupyter_server_extension(self, serverapp: Any) -> None:
        _let_sigint_stop_as_sigterm()
        try:
            # Only now is the port known.
            if self.let_kernels_find_us:
                self._discovery_file = write_discovery_file(serverapp, self._secret)
            self._collector.start()
            for weak_point in weak_points():
                self.log.warning("%s", weak_point)
            for pool in await self._manager.adopt_unserved():
                self.log.info("Adopted pool %s of a server that has ended", pool.record.id)
        finally:
            self._has_adopted.set()
        self._tasks.add(end_orphans(serverapp, self._manager, self.orphan_grace))

    async def stop_extension(self) -> None:
        """Stop or release all pools, and end all processes of the extension."""
        if self._discovery_file:
            self._discovery_file.unlink(missing_ok=True)
        self._collector.stop()
        await self._gpus.close()
        await self._usage.close()
        self._other_nodes.close()
        await self._telemetry.close()
        await self._clients.close()
        if self.stop_pools_on_exit:
            await self._manager.stop_all()
        else:
            await self._manager.release_all()
        await self._tasks.cancel()


def _let_sigint_stop_as_sigterm() -> None:
    """Let SIGINT stop a server without a terminal as SIGTERM does; JupyterHub uses it.

    Without a terminal, Jupyter Server leaves this signal to Python, which ends the server before it
    stops its kernels and extensions. See ``init_signal`` in ``jupyter_server.serverapp``.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # Python sets handlers in the main thread only
    stop = signal.getsignal(signal.SIGTERM)
    if callable(stop) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop)
