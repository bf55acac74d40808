"""What the checks run on."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from jupyter_dist_server.common.units import format_bytes
from jupyter_dist_server.gpus.inventory import Gpu, Inventory
from jupyter_dist_server.gpus.readers.read_gpu_state import read_gpu_state
from tests.environment import environment
from tests.notebook_driver import Notebook, plain_notebook

ROOT = Path(__file__).resolve().parents[2]
_ASK_TORCH = """
import json, torch
gpu = torch.cuda.is_available()
nccl = ".".join(map(str, torch.cuda.nccl.version())) if gpu else ""
print(json.dumps([torch.__version__, gpu, torch.version.cuda or "", nccl]))
"""
_LEASES = "JUPYTER_DIST_LEASES"


@dataclass
class Machine:
    """What the checks run on, and where they put their files."""

    folder: Path
    end: float
    """When the checks should have ended, by `time.monotonic`."""
    inventory: Inventory
    torch: str
    has_cuda: bool
    cuda: str
    nccl: str

    @property
    def gpus(self) -> list[Gpu]:
        """Whole GPUs."""
        return [gpu for gpu in self.inventory.gpus if gpu.mig is None]

    def seconds_left(self) -> float:
        """Return how long checks may still take."""
        return self.end - time.monotonic()

    def environment(self, **variables: str) -> dict[str, str]:
        """Return an environment for one server or kernel; leases are those of the machine."""
        home = self.folder / str(len(list(self.folder.iterdir())))
        kept = {_LEASES: os.environ[_LEASES]} if _LEASES in os.environ else {}
        return environment(home, **kept, **variables)

    @contextmanager
    def notebook(self, **variables: str) -> Iterator[Notebook]:
        """Run a kernel that has our magics."""
        notebook = plain_notebook(self.environment(**variables), self.folder)
        try:
            notebook.ok("%load_ext jupyter_dist_server")
            yield notebook
        finally:
            notebook.close()

    def told(self) -> str:
        """Return what ran where, in one line, without names that are this machine's alone."""
        kinds = Counter(f"{gpu.name} ({format_bytes(gpu.memory_total)})" for gpu in self.gpus)
        named = " and ".join(f"{count} {kind}" for kind, count in kinds.items()) or "no GPU"
        if self.gpus and not self.has_cuda:
            named = f"no GPU for torch (NVML names {named})"
        software = [
            f"driver {self.inventory.driver}" if self.inventory.driver else "no driver",
            f"CUDA {self.cuda} in torch" if self.cuda else "no CUDA in torch",
            f"NCCL {self.nccl}" if self.nccl else "",
            f"torch {self.torch}",
            f"Python {platform.python_version()}",
            platform.system(),
        ]
        return f"{date.today()}, {_commit()}: {named}, {', '.join(filter(None, software))}."


def find_machine(folder: Path, end: float) -> Machine:
    """Ask the driver and torch."""
    found = asyncio.run(read_gpu_state()).inventory
    ask = [sys.executable, "-c", _ASK_TORCH]
    said = subprocess.run(ask, capture_output=True, text=True, check=True, timeout=120)
    return Machine(folder, end, found, *json.loads(said.stdout))


def _commit() -> str:
    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    commit = git("rev-parse", "--short=10", "HEAD")
    if not commit:
        return "commit unknown"
    return f"commit {commit}" + (" with changes" if git("status", "--porcelain") else "")
