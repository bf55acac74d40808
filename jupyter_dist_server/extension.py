"""The Jupyter Server extension: settings, wiring, start and stop."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from jupyter_server.extension.application import ExtensionApp
from jupyter_server.utils import url_path_join
from traitlets import Bool, Float

from .discovery import write_discovery_file
from .pools.manager import PoolManager
from .pools.pool import DEFAULT_TIMEOUT
from .pools.tasks import Tasks
from .web.execute import Clients
from .web.kernels import follow_kernels
from .web.routes import ROUTES


class JupyterDistApp(ExtensionApp):  # type: ignore[misc]
    """Ranks for notebooks, beside their kernels."""

    name = "jupyter_dist_server"
    extension_url = "/lab"
    load_other_extensions = True

    start_timeout = Float(
        DEFAULT_TIMEOUT,
        min=1.0,
        config=True,
        help="""Seconds that starting a pool may take before it is given up.
        Importing torch from a cold or shared disk takes most of it. A request may ask for more.""",
    )
    let_kernels_find_us = Bool(
        True,
        config=True,
        help="""Whether to write a file, readable by you only, through which the magics in a
        notebook find this server. Without it, %dist_init starts its ranks inside the notebook's
        kernel, and the panel does not show them.""",
    )

    def initialize_settings(self) -> None:
        """Make what handlers share."""
        self._secret = secrets.token_urlsafe(32)
        self._manager = PoolManager(watch=True)
        self._clients = Clients()
        self._discovery_file: Path | None = None
        tasks = Tasks()
        self.settings.update(
            jupyter_dist_manager=self._manager,
            jupyter_dist_secret=self._secret,
            jupyter_dist_clients=self._clients,
            jupyter_dist_tasks=tasks,
            jupyter_dist_start_timeout=self.start_timeout,
        )
        follow_kernels(self.serverapp, self._manager, tasks)

    def initialize_handlers(self) -> None:
        """Register the routes."""
        self.handlers.extend((url_path_join("/", route), handler) for route, handler in ROUTES)

    async def _start_jupyter_server_extension(self, serverapp: Any) -> None:
        # Only now is the port known.
        if self.let_kernels_find_us:
            self._discovery_file = write_discovery_file(serverapp, self._secret)

    async def stop_extension(self) -> None:
        """End every pool; on return none of their processes is left."""
        if self._discovery_file:
            self._discovery_file.unlink(missing_ok=True)
        await self._clients.close()
        await self._manager.stop_all()
