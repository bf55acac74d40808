"""The code that runs a script on ranks as ``torchrun`` does."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ...common.errors import DistError

_RUN_SCRIPT = "__import__('jupyter_dist_server.rank.run_script', fromlist=['']).run_script"


def script_code(
    script: str, arguments: Sequence[str], *, is_module: bool = False, keep: bool = False
) -> str:
    """Return the code of a cell that runs a script; with `keep`, in the ranks' namespace."""
    target = script
    if not is_module:
        target = os.path.abspath(os.path.expanduser(script))
        if not os.path.isfile(target):
            raise DistError(
                "script_missing",
                f"There is no file {target}.",
                f"Relative paths start at {os.getcwd()}.",
            )
    how = f"is_module={is_module}, keep={keep}"
    if not keep:  # the rank's working directory is that in which the pool was started
        how += f", where={os.getcwd()!r}"
    return f"{_RUN_SCRIPT}({target!r}, {[script, *arguments]!r}, {how})"
