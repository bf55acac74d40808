"""``make demo-queue``: a minute of the queue on four pretend GPUs.

A sweep of 12 jobs, a job for all four GPUs that is not starved, a notebook as a job, a pool that
waits its turn, and a dispatcher that is killed in between.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import nbformat
import psutil

from tests.environment import environment
from tests.fake_nvml.build import State, build
from tests.notebook_driver import plain_notebook

JDIST = "from jupyter_dist_server.cli.main import script; script()"
CELLS = ["%load_ext jupyter_dist_server", "%dist_init", "%%distributed\nprint('on GPU', gpu_id)"]
WORK = "sleep 2"
"""What a job does."""
PATIENCE = 180.0


class Demo:
    """A queue of its own.

    Parameters
    ----------
    folder : Path
        For all of its files.
    """

    def __init__(self, folder: Path) -> None:
        build(folder / "nvml")
        state = State(folder / "state")
        state.write(gpus=4, name="NVIDIA H100 80GB HBM3", memory=80 << 30)
        self.folder = folder
        self.env = environment(folder / "home", **state.environment(folder / "nvml"))
        self.env["JUPYTER_DIST_LEASES"] = str(folder / "leases")

    def run(self, command: str, shown: bool = True) -> str:
        """Run a command of ``jdist``; show it and what it prints."""
        done = subprocess.run(
            [sys.executable, "-c", JDIST, *shlex.split(command)],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        if shown:
            print(f"$ jdist {command}\n{done.stdout}{done.stderr}", flush=True)
        return done.stdout

    def jobs(self, names: str) -> list[dict[str, Any]]:
        """Return all about some jobs."""
        found: list[dict[str, Any]] = json.loads(self.run(f"show --json {names}", shown=False))
        return found

    def kill_dispatcher(self) -> None:
        """Kill it as nobody should."""
        for process in psutil.process_iter():
            try:
                ours = process.environ().get("XDG_STATE_HOME") == self.env["XDG_STATE_HOME"]
                if ours and process.name() == "dist-dispatcher":
                    print(f"$ kill -KILL {process.pid}    # the dispatcher\n", flush=True)
                    process.kill()
            except psutil.Error:
                continue


def play(demo: Demo) -> bool:
    """Show all; tell whether everything went as it should."""
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]  # type: ignore[no-untyped-call]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})  # type: ignore[no-untyped-call]
    nbformat.write(notebook, demo.folder / "train.ipynb")  # type: ignore[no-untyped-call]
    demo.run("info")
    demo.run(
        f"submit -t 1 -G 1 -J sweep --param lr=1,2,3,4,5,6,7,8,9,10,11,12 sh -c '{WORK}; : {{lr}}'"
    )
    demo.run(f"submit -t 1 -G 4 -J large sh -c '{WORK}'")
    for _ in range(2):
        demo.run(f"submit -t 1 -G 1 -J later sh -c '{WORK}'")
    demo.run("notebook -t 5 -G 2 train.ipynb")
    waiting = plain_notebook(demo.env, demo.folder)
    said: list[str] = []

    def pool() -> None:
        waiting.run(CELLS[0])
        for cell in ("%dist_init -n 3 --wait", CELLS[2], "%dist_shutdown"):
            said.append(waiting.run(cell, timeout=PATIENCE).text)

    thread = threading.Thread(target=pool)
    thread.start()
    time.sleep(2.0)
    demo.run("queue -u all --start")
    demo.kill_dispatcher()
    demo.run("queue")
    demo.run("wait sweep large later train.ipynb")
    thread.join(PATIENCE)
    waiting.close()
    print("In the notebook, with %dist_init -n 3 --wait:\n" + "".join(said), flush=True)
    demo.run("history")
    (large,), later = demo.jobs("large"), demo.jobs("later")
    ended = demo.jobs("sweep large later train.ipynb")
    checks = {
        "Every job is COMPLETED, in one attempt": all(
            (job["state"], job["attempt"]) == ("COMPLETED", 1) for job in ended
        ),
        "No smaller job that came later overtook the one for 4 GPUs": all(
            large["started"] <= job["started"] for job in later
        ),
        "The pool got its 3 GPUs": len(set(re.findall(r"on GPU (\d+)", "".join(said)))) == 3,
    }
    for sentence, holds in checks.items():
        print(f"{'ok' if holds else 'NO'}  {sentence}.")
    return all(checks.values())


def main() -> int:
    """Run the demonstration; 1 if anything was not as it should be."""
    with tempfile.TemporaryDirectory(prefix="jq-", dir="/tmp", ignore_cleanup_errors=True) as name:
        os.environ["TMPDIR"] = tempfile.tempdir = name
        started = time.monotonic()
        went_well = play(Demo(Path(name)))
        print(f"{time.monotonic() - started:.0f} s")
        return 0 if went_well else 1


if __name__ == "__main__":
    sys.exit(main())
