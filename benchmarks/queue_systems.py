"""Our queue and its peers, each driven by its own commands, on one simulated GPU.

docs/benchmarks.md says how peers are installed; those that are not there are left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.network import free_port
from tests.waiting import wait_for

JDIST = "from jupyter_dist_server.cli.main import script; script()"
TAKES = 60.0
"""Seconds that a command may take."""


class System:
    """A queue; all commands run in `env`."""

    name = ""
    program = ""
    """What must be on the PATH."""
    repeats = 1000
    """Repetitions at most, where each takes many seconds."""

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env

    def start(self) -> None:
        """Start its daemon, if it has one."""

    def submit(self, script: str) -> None:
        """Submit a line of shell that needs one GPU, or one slot."""
        raise NotImplementedError

    def wait_until_free(self) -> None:
        """Wait until it can start a job at once; most can as soon as the one before has ended."""

    def list(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        """End its daemon."""

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command,
            env=self.env,
            cwd=self.env["HOME"],
            capture_output=True,
            text=True,
            timeout=TAKES,
        )
        if done.returncode:
            raise RuntimeError(f"{command[0]}: {done.stdout}{done.stderr}")
        return done.stdout


class Ours(System):
    name = "jdist"

    def jdist(self, *args: str) -> str:
        return self.run(sys.executable, "-c", JDIST, *args)

    def submit(self, script: str) -> None:
        self.jdist("submit", "--gpu-ids", "0", "-o", "/dev/null", "sh", "-c", script)

    def list(self) -> None:
        self.jdist("queue")

    def stop(self) -> None:
        self.jdist("cancel", "--all", "--now")


class TaskSpooler(System):
    name, program = "task-spooler", "tsp"

    def start(self) -> None:
        self.env["TS_SOCKET"] = str(Path(self.env["HOME"], "tsp.sock"))
        self.run("tsp", "-S", "1")

    def submit(self, script: str) -> None:
        self.run("tsp", "-n", "sh", "-c", script)

    def list(self) -> None:
        self.run("tsp")

    def stop(self) -> None:
        self.run("tsp", "-K")


class GqLocal(System):
    name, program = "gq-local", "gq"

    def start(self) -> None:
        self.run("gq", "daemon", "start")

    def submit(self, script: str) -> None:
        self.run("gq", "run", "--gpus", "1", "--", "sh", "-c", script)

    def list(self) -> None:
        self.run("gq", "ps")

    def stop(self) -> None:
        with suppress(RuntimeError):
            self.run("gq", "daemon", "stop")


class Gflow(System):
    """gflow, of PyPI's runqd, with its quicker executor.

    It notices the end of a job after up to 20 s, and starts jobs in a login shell.
    """

    name, program, repeats = "gflow", "gflowd", 3

    def start(self) -> None:
        home = Path(self.env["HOME"])
        programs = shutil.which("gflowd", path=self.env["PATH"]) or ""
        (home / ".profile").write_text(f'PATH="{os.path.dirname(programs)}:$PATH"\n')
        for name in ("CONFIG", "DATA", "STATE", "RUNTIME"):
            self.env.pop(f"XDG_{name}_{'DIR' if name == 'RUNTIME' else 'HOME'}", None)
        self.run("gflowd", "init", "--yes", "--port", str(free_port()))
        config = home / ".config" / "gflow" / "gflow.toml"
        config.write_text(config.read_text() + '\n[executor]\ntype = "process"\n')
        self._daemon = subprocess.Popen(
            ["gflowd", "-v"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._until(lambda: "gpu" in self.run("ginfo"))

    def submit(self, script: str) -> None:
        self.run("gbatch", "--gpus", "1", "sh", "-c", script)

    def wait_until_free(self) -> None:
        self._until(lambda: "No jobs" in self.run("gqueue"))

    def list(self) -> None:
        self.run("gqueue")

    def stop(self) -> None:
        self._daemon.terminate()
        self._daemon.wait(TAKES)

    def _until(self, is_so: Callable[[], bool]) -> None:
        def answers() -> bool:
            with suppress(RuntimeError):  # it does not listen yet
                return is_so()
            return False

        wait_for(answers, "gflow's being free", TAKES)


class Slurm(System):
    """Slurm, where its daemons run already and SLURM_CONF is set."""

    name, program = "Slurm", "sbatch"
    _job = f"jdist-bench-{os.getpid()}"

    def submit(self, script: str) -> None:
        self.run(
            "sbatch", "-G", "1", "-o", "/dev/null", f"--job-name={self._job}", "--wrap", script
        )

    def list(self) -> None:
        self.run("squeue")

    def stop(self) -> None:
        self.run("scancel", "--name", self._job)  # other jobs of the user stay


def peers(env: dict[str, str]) -> list[System]:
    """Return the peers that are installed."""
    return [
        kind(dict(env))
        for kind in (TaskSpooler, GqLocal, Gflow, Slurm)
        if shutil.which(kind.program, path=env["PATH"])
        and (kind is not Slurm or "SLURM_CONF" in os.environ)
    ]
