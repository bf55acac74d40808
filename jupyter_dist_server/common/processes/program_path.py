"""Where the programs that this process starts find ``jdist``."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path


def let_programs_find_jdist() -> None:
    """Append this environment's folder of scripts to PATH, if PATH leads to no ``jdist``.

    A kernel or server of a service, such as JupyterHub, often runs in an environment that is not
    activated: neither ``!jdist`` nor a terminal would find it.
    """
    scripts = sysconfig.get_path("scripts")
    if not shutil.which("jdist") and Path(scripts, "jdist").exists():
        os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), scripts])
