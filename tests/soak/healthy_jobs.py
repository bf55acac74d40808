"""Healthy scripts in a queue while faults happen beside them: none is told that it hangs.

``python -m tests.soak.healthy_jobs FOLDER`` keeps jobs in a queue of its own until its standard
input ends. It fails when ``jdist why``, or a job's own log, calls a rank stuck, and when a job does
not complete.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType

from ..fake_nvml.build import State, build
from ..jobs.queue_driver import Queue
from ..waiting import PATIENCE

RANKS = 2
AT_ONCE = 2
STEPS = 1200
"""Longer than the 60 s after which a job's log says why its ranks wait."""
SCRIPT = f"""
import random, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("gloo")
rank = dist.get_rank()
model = DDP(torch.nn.Linear(8, 8))
for step in range({STEPS}):
    time.sleep(random.random() * 0.05 * (1 + rank))
    work = dist.all_reduce(torch.ones(64), async_op=True)
    model(torch.ones(4, 8)).sum().backward()
    work.wait()
    if step % 100 == 0:
        print("step", step, flush=True)
        sum(range(3_000_000 * rank))
dist.destroy_process_group()
"""


def check_log(text: str) -> None:
    """Check that nobody has explained a wait."""
    told = [line for line in text.splitlines() if " wait" in line or "has not begun" in line]
    assert not told, f"not true: {told}"


def go_on(queue: Queue, ended: threading.Event) -> None:
    """Run jobs until told to end, and ask about them all the time."""
    (queue.folder / "healthy.py").write_text(SCRIPT)
    path = f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}"
    options = ("--torchrun", "-c", "0", "-G", str(RANKS), "--env", path, "healthy.py")
    jobs: list[str] = []
    done = asked = 0
    while jobs or not ended.is_set():
        while len(jobs) < AT_ONCE and not ended.is_set():
            jobs.append(queue.submit(*options))
        for job in [*jobs]:
            state = queue.show(job)["state"]
            if state == "PENDING":
                continue
            check_log(queue.output(job))
            if state == "RUNNING":
                continue
            assert state == "COMPLETED", f"{queue.show(job)}\n{queue.output(job)}"
            jobs.remove(job)
            done += 1
        if jobs and queue.show(jobs[0])["state"] == "RUNNING":
            asked += ask(queue, jobs[0])
        ended.wait(2)
    print(f"{done} healthy jobs; asked {asked} times, none was called stuck", flush=True)


def ask(queue: Queue, job: str) -> int:
    """Ask why a job's ranks wait; return how many groups of ranks could be asked."""
    command = ["sh", str(queue.program()), "why", "--json", job]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode != 1, f"not true: {done.stdout}"
    return len(json.loads(done.stdout or "[]"))


class HealthyJobs:
    """That program, as long as a soak runs."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "tests.soak.healthy_jobs", str(folder)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE)

    def check(self) -> None:
        """Check that nothing was wrong so far."""
        assert self._process.poll() is None, "a healthy job was told something untrue"

    def __enter__(self) -> HealthyJobs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._process.communicate()
        assert self._process.returncode == 0 or kind, "a healthy job was told something untrue"


def main(folder: Path) -> None:
    """Run until standard input ends."""
    folder.mkdir(exist_ok=True)
    os.chdir(folder)
    os.environ |= {"XDG_STATE_HOME": str(folder), "TMPDIR": str(folder)}
    os.environ["JUPYTER_DIST_LEASES"] = str(folder / "leases")
    build(folder / "nvml")
    gpus = State(folder / "nvml-state")
    gpus.write(gpus=RANKS * AT_ONCE)
    os.environ |= gpus.environment(folder / "nvml")
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    queue = Queue(folder)
    try:
        go_on(queue, ended)
    finally:
        queue.end()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
