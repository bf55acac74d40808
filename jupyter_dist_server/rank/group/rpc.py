"""Ending what waits in `torch.distributed.rpc`: it hears no interrupt, and has no group to break.

When torch's agent for it is shut down, whatever waits for an answer fails.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Any

_API = "torch.distributed.rpc.api"


def end_rpc() -> None:
    """Shut this rank's agent down, if the user has started one; `init_rpc` starts another then.

    That waits for the calls that this rank serves, so it has a thread, which ends with them.
    """
    api = sys.modules.get(_API)
    if api and api._is_current_rpc_agent_set():
        threading.Thread(target=_end, args=(api,), name="rpc's end", daemon=True).start()


def _end(api: Any) -> None:
    # As `rpc.shutdown(graceful=False)` does.
    api._get_current_rpc_agent().shutdown()
    with contextlib.suppress(RuntimeError):  # references that nobody will ever ask for
        api._destroy_rref_context(True)
    api._cleanup_python_rpc_handler()
    api._reset_current_rpc_agent()
