"""Signals that stop the server."""

from __future__ import annotations

import signal
import threading


def let_sigint_stop_as_sigterm() -> None:
    """Let SIGINT do what SIGTERM does, where the server has no terminal.

    JupyterHub stops servers with SIGINT. Without a terminal, Jupyter Server leaves this signal to
    Python, which ends the server before it stops its kernels and extensions: pools would keep their
    GPUs until they count as orphaned. See ``init_signal`` in ``jupyter_server.serverapp``.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # Python sets handlers in the main thread only
    stop = signal.getsignal(signal.SIGTERM)
    if callable(stop) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop)
