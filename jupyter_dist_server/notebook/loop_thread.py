"""An event loop in its own thread, beside the kernel's main thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs the pool's asyncio code while a magic waits in the main thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._loop.run_forever, name="jupyter-dist", daemon=True)
        # The debugger of the kernel must not stop it: it also serves that of the ranks.
        vars(thread).update(pydev_do_not_trace=True, is_pydev_daemon_thread=True)
        thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin a coroutine."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; an interrupt of the kernel cancels it."""
        future = self.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function in the loop, without waiting for it."""
        self._loop.call_soon_threadsafe(function, *arguments)
