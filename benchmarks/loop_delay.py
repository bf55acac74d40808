"""How late a Jupyter server's event loop is: a handler, loaded into a server that is measured.

``GET /loop-delay?seconds=10`` watches for so long, and answers with the delays in milliseconds.
"""

from __future__ import annotations

import asyncio
import json

from jupyter_server.base.handlers import JupyterHandler
from tornado import web

PAUSE = 0.002
"""Seconds between two looks, at least."""


class LoopDelayHandler(JupyterHandler):
    """Sleeps again and again, and notes how much too late it wakes up."""

    @web.authenticated
    async def get(self) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + float(self.get_argument("seconds"))
        delays = []
        while (due := loop.time() + PAUSE) < end:
            await asyncio.sleep(PAUSE)
            delays.append(1e3 * (loop.time() - due))
        self.finish(json.dumps(delays))


default_handlers = [(r"/loop-delay", LoopDelayHandler)]
