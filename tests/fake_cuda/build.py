"""Compile the fake CUDA driver, and write what goes wrong in it; see ``fake_cuda.c``."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ..fake_nvml.build import DRIVER, FLAGS

SOURCE = Path(__file__).with_name("fake_cuda.c")


class FakeCuda:
    """A driver in a folder, which is then good for ``LD_LIBRARY_PATH``.

    An `old` one cannot park processes.
    """

    def __init__(self, folder: Path, *, old: bool = False) -> None:
        self.folder = folder
        self._script, self._log = folder / "script", folder / "log"
        self._read = 0
        options = ["-DOLD"] if old else []
        command = ["cc", *FLAGS, *options, "-o", str(folder / DRIVER), str(SOURCE)]
        subprocess.run(command, check=True)

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to use it."""
        return {
            "LD_LIBRARY_PATH": os.pathsep.join(
                filter(None, [str(self.folder), os.environ.get("LD_LIBRARY_PATH", "")])
            ),
            "FAKE_CUDA_SCRIPT": str(self._script),
            "FAKE_CUDA_LOG": str(self._log),
        }

    def script(self, *lines: str) -> None:
        """Let these things go wrong from now on, and nothing else."""
        fresh = self._script.with_suffix(".new")
        fresh.write_text("".join(f"{line}\n" for line in lines))
        fresh.rename(self._script)

    def calls(self) -> list[str]:
        """Return the calls since the last time, as ``RANK CALL RESULT STATE``, sorted by rank."""
        log = self._log.read_bytes() if self._log.exists() else b""
        whole = log.rfind(b"\n") + 1  # others may just write
        lines = log[self._read : whole].decode().splitlines()
        self._read = whole
        return sorted(lines, key=lambda line: line.split()[0])
