"""The queue's speed, beside its peers': ``make bench-queue`` prints tables.

Jobs write the time at which their first instruction runs, and at which their last one does.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from jupyter_dist_server.jobs.schedule.plan import plan
from jupyter_dist_server.jobs.schedule.wants import InUse, Machine, Want
from tests.environment import environment, tagged
from tests.fake_nvml.build import State, build
from tests.waiting import wait_for

from .queue_simulation import tables
from .queue_systems import Ours, System, peers

NOW = "date +%s.%N >> {file}"
MANY = 10_000
START, NEXT, LIST = "submit → first instruction", "exit → next start", "list the queue"


def wait_for_lines(file: Path, count: int) -> list[float]:
    """Return the times in a file, once there are so many."""

    def lines() -> list[str]:
        found = file.read_text().splitlines() if file.exists() else []
        return found if len(found) >= count else []

    return [float(line) for line in wait_for(lines, f"line {count} of {file}")]


def started_after(
    system: System, folder: Path, times: int, between: Callable[[], None]
) -> list[float]:
    """Return the seconds between the call that submits a job and the job's first instruction."""
    found = []
    for turn in range(times):
        between()
        file = folder / f"{system.name}-{between.__name__}-{turn}"
        begun = time.time()
        system.submit(NOW.format(file=file))
        found.append(wait_for_lines(file, 1)[0] - begun)
        time.sleep(0.05)
    return found


def next_after(system: System, folder: Path, times: int) -> list[float]:
    """Return the seconds between the end of a job and the start of the next one."""
    file, all_wait = folder / f"{system.name}-chain", folder / f"{system.name}-all-wait"
    line = NOW.format(file=file)
    until_all_wait = f"until [ -e {all_wait} ]; do sleep 0.1; done"
    for _ in range(times + 1):
        system.submit(f"{until_all_wait}; {line}; sleep 0.3; {line}")
    all_wait.touch()  # or the time that a submission takes would be measured
    stamps = sorted(wait_for_lines(file, 2 * (times + 1)))
    return [start - end for end, start in zip(stamps[1::2], stamps[2::2], strict=False)]


def overshoot(ours: Ours, folder: Path, times: int) -> list[float]:
    """Return by how many seconds SIGTERM comes after the limit."""
    found = []
    for turn in range(times):
        file = folder / f"limit-{turn}"
        line = NOW.format(file=file)
        script = f"trap '{line}; exit' TERM; while :; do sleep 0.01; done"
        options = ["--parsable", "-t", "0:01", "-c", "0", "-o", "/dev/null"]
        job = ours.jdist("submit", *options, "sh", "-c", script).strip()
        (ended,) = wait_for_lines(file, 1)
        found.append(ended - json.loads(ours.jdist("show", "--json", job))[0]["started"] - 1.0)
    return found


def seconds(work: Callable[[], object], times: int) -> list[float]:
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return found


def pass_over(count: int, times: int) -> list[float]:
    """Return how long `plan` takes with so many entries, of which each has another limit."""
    machine = Machine({f"gpu{index}": 80 << 30 for index in range(8)}, cpus=64, memory=1 << 40)
    held = [InUse(f"h{uuid}", "ann", frozenset([uuid]), 0.0, 3600.0) for uuid in machine.gpus]
    wants = [Want(str(id), "ann", id, gpus=1 + id % 4, limit=60.0 + id) for id in range(count)]
    return seconds(lambda: plan(machine, held, wants, 1.0), times)


def runner_memory(ours: Ours, env: dict[str, str]) -> float:
    ours.jdist("submit", "-c", "0", "-o", "/dev/null", "sleep", "30")

    def size() -> int:
        for process in tagged(env):
            with suppress(psutil.Error):
                if process.name() == "dist-runner" and process.children():
                    return int(process.memory_full_info().pss)
        return 0

    found: int = wait_for(size, "the start of a runner")
    ours.stop()
    return found / 2**20


def told(values: list[float], unit: float = 1e3) -> str:
    """Return the median and the greatest value, by default in milliseconds."""
    return f"{statistics.median(values) * unit:.1f} / {max(values) * unit:.1f}"


def told_p99(values: list[float]) -> str:
    """Return the median, the 99th percentile and the greatest value in milliseconds."""
    p99 = sorted(values)[math.ceil(0.99 * len(values)) - 1]
    return f"{statistics.median(values) * 1e3:.1f} / {p99 * 1e3:.1f} / {max(values) * 1e3:.1f}"


def _is_of_a_job(process: psutil.Process) -> bool:
    """Tell whether a process is there for a job that runs, or has just ended."""
    try:
        command = process.cmdline()
        return process.name() == "dist-runner" or any("usage_reader" in one for one in command)
    except psutil.Error:
        return False


def measure_ours(
    ours: Ours, env: dict[str, str], folder: Path, times: int, starts: int, many: int
) -> dict[str, str]:
    """Return what was measured, by name; it is printed as it comes."""
    found: dict[str, str] = {}

    def row(name: str, most: str, value: str) -> None:
        found[name] = value
        print(f"| {name} | {value} | {most} |", flush=True)

    def nothing_runs() -> None:
        while tagged(env):
            time.sleep(0.02)

    def dispatcher_waits() -> None:
        while any(_is_of_a_job(process) for process in tagged(env)):
            time.sleep(0.02)

    print("\n| jdist, ms | median / max | must |\n| --- | --- | --- |")
    cold = started_after(ours, folder, starts, nothing_runs)
    row(f"{START}, cold: median / p99 / max of {starts}", "p99 500", told_p99(cold))
    ours.jdist("submit", "--begin", "now+1hour", "-c", "0", "true")  # keeps a dispatcher
    warm = started_after(ours, folder, starts, dispatcher_waits)
    row(f"{START}, warm: median / p99 / max of {starts}", "p99 200", told_p99(warm))
    found[START] = told(warm)
    row(NEXT, "median 100", told(next_after(ours, folder, times)))
    row("limit overshoot", "max 200", told(overshoot(ours, folder, max(1, times // 4))))
    row("runner, PSS in MiB", "8", f"{runner_memory(ours, env):.1f}")
    row("`jdist --help`", "", told(seconds(lambda: ours.jdist("--help"), times)))
    row(LIST, "", told(seconds(ours.list, times)))
    row(f"a pass over {many:,}", "5", told(pass_over(many, times)))
    numbers = ",".join(map(str, range(many)))
    sweep = ["--hold", "--param", f"n={numbers}", "true", "{n}"]
    row(f"a sweep of {many:,}", "1000", told(seconds(lambda: ours.jdist("submit", *sweep), 1)))
    row(f"{LIST} with {many:,}", "300", told(seconds(ours.list, max(1, times // 4))))
    return found


def measure_peer(system: System, folder: Path, times: int) -> list[str]:
    times = min(times, system.repeats)
    cells = [system.name]
    try:
        system.start()
        cells.append(told(started_after(system, folder, times, system.wait_until_free)))
        system.wait_until_free()
        cells.append(told(next_after(system, folder, max(2, times // 2))))
        cells.append(told(seconds(system.list, times)))
    except (AssertionError, RuntimeError, OSError, subprocess.SubprocessError) as error:
        cells.append(f"failed: {(str(error).splitlines() or [type(error).__name__])[0]}")
    finally:
        with suppress(RuntimeError, OSError, subprocess.SubprocessError, AttributeError):
            system.stop()
    return cells + ["–"] * (4 - len(cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=30, help="repetitions")
    parser.add_argument("--starts", type=int, default=100, help="submissions, cold and warm each")
    parser.add_argument("--many", type=int, default=MANY, help="jobs of the large sweep")
    parser.add_argument("--simulated", type=int, default=2000, help="jobs of the simulation")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(tables(options.simulated, options.seed))
    with tempfile.TemporaryDirectory(prefix="bq-", dir="/tmp", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        build(folder / "nvml")
        state = State(folder / "state")
        state.write(gpus=1, memory=80 << 30)
        env = environment(folder / "home", **state.environment(folder / "nvml"))
        env |= {"HOME": str(folder / "home"), "JUPYTER_DIST_LEASES": str(folder / "leases")}
        env["XDG_STATE_HOME"] = str(folder / "state-home")
        ours = Ours(env)
        found = measure_ours(ours, env, folder, options.times, options.starts, options.many)
        ours.stop()
        print(f"\n| ms, median / max | {START} | {NEXT} | {LIST} |\n| --- | --- | --- | --- |")
        print(f"| jdist | {found[START]} | {found[NEXT]} | {found[LIST]} |", flush=True)
        for system in peers(env):
            print("| " + " | ".join(measure_peer(system, folder, options.times)) + " |", flush=True)
        for process in tagged(env):
            process.kill()


if __name__ == "__main__":
    main()
