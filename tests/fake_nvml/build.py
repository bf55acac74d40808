"""Compile the fake NVML, and write what it tells.

For tests, benchmarks and demonstrations: a process that is started with
``LD_LIBRARY_PATH`` = the folder given to `build` and ``FAKE_NVML_STATE`` = a `State`'s path has, as
far as pynvml can tell, NVIDIA GPUs. ``fake_nvml.c`` says which keys there are.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

LIBRARY = "libnvidia-ml.so.1"
DRIVER = "libcuda.so.1"
FLAGS = ("-shared", "-fPIC", "-O1", "-Wl,-Bsymbolic", "-Wall", "-Wextra", "-Werror")


def build(folder: Path) -> None:
    """Compile the library into a folder, which is then good for ``LD_LIBRARY_PATH``."""
    sources = [str(path) for path in sorted(Path(__file__).parent.glob("*.c"))]
    folder.mkdir(parents=True, exist_ok=True)
    target = str(folder / LIBRARY)
    subprocess.run(["cc", *FLAGS, "-o", target, *sources, "-lm", "-lpthread"], check=True)
    development = folder / LIBRARY.removesuffix(".1")  # what nvml-wrapper, of Rust, opens
    development.unlink(missing_ok=True)
    development.symlink_to(LIBRARY)
    (folder / DRIVER).touch()  # hides a real driver, which does not know these GPUs


class State:
    """What the fake NVML tells, from now on, to every process that reads this file.

    Attributes
    ----------
    path : Path
        What ``FAKE_NVML_STATE`` has to name.
    log : Path
        What ``FAKE_NVML_LOG`` may name, for `calls`.
    values : dict
        What is written at the moment; `write` replaces it and `update` changes it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path.with_name(path.name + ".log")
        self.values: dict[str, object] = {}

    def write(self, **values: object) -> None:
        """Tell this, and nothing else.

        A list is a key given several times: ``write(**{"gpus": 8, "0.process": ["812,1024,50"]})``.
        """
        lines = []
        for key, value in values.items():
            several = value if isinstance(value, list | tuple) else [value]
            lines += [f"{key}={one}\n" for one in several]
        # Renamed into place: a reader sees the old file or the new one, never half of it.
        fresh = self.path.with_name(self.path.name + ".new")
        fresh.write_text("".join(lines))
        os.replace(fresh, self.path)
        self.values = values

    def update(self, **values: object) -> None:
        """Tell this beside what is told already; `None` takes a key back."""
        merged = self.values | values
        self.write(**{key: value for key, value in merged.items() if value is not None})

    def environment(self, folder: Path) -> dict[str, str]:
        """Return what a process needs in its environment to read this, with `build`'s folder."""
        return {"LD_LIBRARY_PATH": str(folder), "FAKE_NVML_STATE": str(self.path)}

    def calls(self, start: str = "") -> list[str]:
        """Return the calls in the log that start so: ``nvmlDeviceGetUUID``, or with `` 3``."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if line.startswith(start)]
