"""What faults happen to: a server, a notebook, a pool, and a pretend machine with GPUs."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil

from ..environment import tagged
from ..fake_nvml.build import State, build
from ..notebook_driver import wait_until_ready
from ..result import Result
from ..server_driver import Server
from ..waiting import PATIENCE, wait_for

RANKS = 2
CELL = """%%distributed
import time
steps = globals().get("steps", 0) + 1
for _ in range(40):
    time.sleep(0.01)
t = torch.ones(1)
dist.all_reduce(t)
print("sum", int(t), "step", steps)
"""
_PRESS_AFTER = 3.0
"""Seconds after which a person stops a cell that does not end."""
_MOST = 2 + 1 + RANKS + 1 + 1
"""Server and kernel; agent and ranks; a warm zygote; the sampler."""


class World:
    """Everything, below one folder, with a temporary folder on a small disk where we may mount one.

    Parameters
    ----------
    home : Path
        An empty folder that others may enter.
    """

    def __init__(self, home: Path) -> None:
        self.disk = home / "tmp"
        self.leases = home / "leases"
        for folder in (self.disk, self.leases, home / "root"):
            folder.mkdir()
            folder.chmod(0o1777)
        mount = ["mount", "-t", "tmpfs", "-o", "size=64m,mode=1777", "tmpfs", str(self.disk)]
        self.mounted = (
            os.geteuid() == 0 and not subprocess.run(mount, capture_output=True).returncode
        )
        self._usual = tempfile.gettempdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(self.disk)
        build(home / "nvml")
        self.gpus = State(home / "nvml-state")
        self.gpus.write(gpus=4, name="NVIDIA H100 80GB HBM3", memory=80 * 2**30)
        self._variables = self.gpus.environment(home / "nvml")
        self._variables["JUPYTER_DIST_LEASES"] = str(self.leases)
        self._home = home
        try:
            self.begin()
        except BaseException:
            self._leave_disk()
            raise

    def begin(self) -> None:
        """Start a server and a notebook with a pool."""
        grace = "--JupyterDistApp.orphan_grace=1"
        # A home of its own: a killed server leaves files, which the next must not mind.
        self.server = Server(self._home / "home", self._home / "root", grace, **self._variables)
        self.notebook = self.server.notebook()
        self.load()

    def load(self) -> None:
        """Load the extension, and attach to the pool or start one."""
        if "Attached" not in self.notebook.ok("%load_ext jupyter_dist_server").text:
            self.notebook.ok(f"%dist_init -n {RANKS}")
        self.kernel = int(self.notebook.ok("import os\nprint(os.getpid())").text)

    def processes(self) -> dict[str, list[psutil.Process]]:
        """Return whom something could happen to."""
        pools = self.server.pools()
        ranks = [psutil.Process(rank["pid"]) for rank in pools[0]["ranks"]]
        found = {
            "rank": ranks,
            "agent": [agent for agent in (ranks[0].parent(),) if agent],
            "kernel": [psutil.Process(self.kernel)],
            "server": [psutil.Process(self.server.process.pid)],
            "zygote": [],
            "sampler": [],
        }
        for process in tagged(self.server.env):
            with suppress(psutil.Error):
                if process.name() == "dist-zygote":
                    found["zygote"].append(process)
                elif any("gpus.sampler.sampler_process" in word for word in process.cmdline()):
                    found["sampler"].append(process)
        return found

    def run_cell(self) -> Result | None:
        """Run the cell, and stop it when it takes too long; `None` if the kernel died with it."""
        kernel, client = psutil.Process(self.kernel), self.notebook.client
        stop = threading.Timer(_PRESS_AFTER, os.kill, (self.kernel, signal.SIGINT))
        stop.start()
        deadline = time.monotonic() + PATIENCE
        message_id, result = self.notebook.send(CELL), Result()
        try:
            while kernel.is_running() and kernel.status() != psutil.STATUS_ZOMBIE:
                assert time.monotonic() < deadline, f"stopped, it does not end: {result.shown}"
                with suppress(queue.Empty):
                    message = client.get_iopub_msg(timeout=0.1)
                    if message["parent_header"].get("msg_id") == message_id:
                        result.add(message["msg_type"], message["content"])
                        if message["content"].get("execution_state") == "idle":
                            return result
        finally:
            stop.cancel()
        return None

    def recover(self) -> str:
        """Do what a person would, one after the other, until the cell runs; tell what did it."""
        notebook = self.notebook
        if self.server.process.poll() is not None:
            notebook.client.stop_channels()
            wait_for(lambda: not tagged(self.server.env), "the end of what the server had started")
            self.begin()
            return "another server"
        wait_until_ready(notebook.client)
        if notebook.run("%dist_status").status == "error":  # the kernel is another one
            self.load()
        for remedy in ("", "%dist_restart", f"%dist_init -n {RANKS}", "%dist_reset"):
            if remedy and notebook.run(remedy).status == "error":
                continue
            if remedy == "%dist_reset":
                notebook.ok(f"%dist_init -n {RANKS}")
            result = self.run_cell()
            if result and not result.error:
                return remedy or "nothing"
        raise AssertionError("nothing makes the cell run again")

    def check_that_nothing_is_left(self) -> None:
        """Check that there is one pool, and nothing of the ones before."""

        def is_tidy() -> bool:
            return len(self.pool_folders()) == 1 and len(tagged(self.server.env)) <= _MOST

        wait_for(is_tidy, "the end of all that belonged to what was killed")

    def pool_folders(self) -> list[Path]:
        """Return the private folders of our pools."""
        folders = self.disk.glob("jdist-*")
        return [folder for folder in folders if folder.stat().st_uid == os.getuid()]

    def end(self) -> None:
        """Shut everything down; `Server.close` checks that no process is left."""
        try:
            self.notebook.client.stop_channels()
            self.server.close()
            wait_for(lambda: not self.pool_folders(), "the end of the pools' folders")
        finally:
            self._leave_disk()

    def _leave_disk(self) -> None:
        os.environ["TMPDIR"] = tempfile.tempdir = self._usual
        if self.mounted:  # also where a process of a test that failed still has a file on it
            subprocess.run(["umount", "--lazy", str(self.disk)], check=True)
