"""What is measured of one system, each with the same cells."""

from __future__ import annotations

import json
import re
import signal
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from tests.environment import tagged

from .fronts import Run
from .systems import Ours, OursServed, System

Values = dict[str, float]


@dataclass(frozen=True)
class Sizes:
    trials: int = 15
    lines: int = 20_000
    """Printed by each rank."""
    growth_lines: int = 40_000
    """Printed by all ranks together."""
    cells: int = 2_000
    """Run one after another."""
    mebibytes: int = 100
    blocked: float = 2.0
    """Seconds for which the server is held up."""


def median_ms(cell: Callable[[], Run], trials: int) -> float:
    return 1e3 * statistics.median(cell().seconds for _ in range(trials))


def start(system: System, sizes: Sizes) -> Values:
    """To the first cell done on all ranks; ours also with the zygote that the first pool left."""
    values = {"cold_s": system.seconds_to_first_cell()}
    if isinstance(system, Ours):
        system.front.run(system.shutdown_cell)
        values["warm_s"] = system.seconds_to_first_cell()
    return values


def memory(system: System, sizes: Sizes) -> Values:
    """Proportional set size of the ranks, and of everything else, idle after ``import torch``."""
    ranks = set(system.rank_pids().values())
    if len(ranks) != system.size:
        raise RuntimeError(f"{len(ranks)} of {system.size} ranks told their pid")
    others = {process.pid for process in tagged(system.environment)} - ranks

    def mebibytes(pids: set[int]) -> float:
        return sum(psutil.Process(pid).memory_full_info().pss for pid in pids) / 2**20

    return {"ranks_mib": mebibytes(ranks), "rest_mib": mebibytes(others)}


def latency(system: System, sizes: Sizes) -> Values:
    """An empty cell, a small collective, and the first printed line of a longer cell."""
    median_ms(lambda: system.run("pass"), 3)
    values = {"pass_ms": median_ms(lambda: system.run("pass"), sizes.trials)}
    if system.has_group:
        system.run("t = torch.ones(1)\ndist.all_reduce(t)")
        values["reduce_ms"] = median_ms(lambda: system.run("dist.all_reduce(t)"), sizes.trials)
    early = "import time\nprint('VIS' + 'IBLE')\ntime.sleep(1)"
    first = (system.run(early, linger=system.settle).seconds_to("VISIBLE") for _ in range(3))
    values["first_ms"] = 1e3 * statistics.median(first)
    return values


def lasting(system: System, sizes: Sizes) -> Values:
    """The processor time that an empty cell takes of a rank, and empty cells after many others."""
    ranks = [psutil.Process(pid) for pid in system.rank_pids().values()]

    def used() -> float:
        return sum(sum(rank.cpu_times()[:2]) for rank in ranks)

    few = max(2, sizes.cells // 20)
    before = used()
    first = median_ms(lambda: system.run("pass"), few)
    values = {"cpu_ms": 1e3 * (used() - before) / few / len(ranks)}
    if isinstance(system, Ours):
        for _ in range(sizes.cells - 2 * few):
            system.run("pass")
        values["lasting_ratio"] = median_ms(lambda: system.run("pass"), few) / first
    return values


def blocked(system: System, sizes: Sizes) -> Values:
    """Empty cells while the server is stopped, over empty cells before, past the server."""
    if not isinstance(system, OursServed):
        return {}
    front, server = system.front.direct(), system.front.process
    cell = system.wrap("pass")
    before = median_ms(lambda: front.run(cell), sizes.trials)
    server.send_signal(signal.SIGSTOP)
    try:
        begun = front.run(cell).sent
        times = [1e3 * front.run(cell).seconds]
        while (run := front.run(cell)).idle < begun + sizes.blocked:
            times.append(1e3 * run.seconds)
    finally:
        server.send_signal(signal.SIGCONT)
        front.close()
    return {"blocked_ratio": statistics.median(times) / before, "blocked_worst_ms": max(times)}


def moving(system: System, sizes: Sizes) -> Values:
    """An array from rank 0 to the notebook, and from there to all ranks; in MiB a second."""
    if not system.pull_cell:
        return {}
    length = sizes.mebibytes * 2**18
    system.run(f"import numpy as np\nbig = np.ones({length}, dtype='float32')")
    pull = system.front.run(system.pull_cell, 120)
    push = system.front.run(system.push_cell, 120)
    said = system.run(
        f"print(f'BIG{{rank}}={{big.sum() == {length}}}.')", linger=system.settle + 0.5
    )
    if said.ranks_that_said("BIG") != dict.fromkeys(range(system.size), "True"):
        raise RuntimeError(f"the array did not arrive: {pull.errors} {push.errors}")
    return {
        "pull_mib_s": sizes.mebibytes / pull.seconds,
        "push_mib_s": sizes.mebibytes * system.size / push.seconds,
    }


def growth(system: System, sizes: Sizes) -> Values:
    """An empty cell after many printed lines, over the same before them."""
    before = median_ms(lambda: system.run("pass"), sizes.trials)
    each = sizes.growth_lines // system.size
    system.run(f"for i in range({each}):\n    print(i)", 150, linger=max(0.5, system.settle))
    after = median_ms(lambda: system.run("pass"), sizes.trials)
    return {"growth_ratio": after / before}


def printing(system: System, sizes: Sizes) -> Values:
    """Many lines from each rank: how fast they come, and whether all do, once, in order."""
    code = f"for i in range({sizes.lines}):\n    print(f'<{{rank}}:{{i}}>')"
    run = system.run(code, 150, linger=max(1.0, system.settle))
    expected = [f"<{r}:{i}>" for r in range(system.size) for i in range(sizes.lines)]
    characters = sum(map(len, expected))
    sent = sum(len(json.dumps(message["content"], default=str)) for _, _, message in run.messages)
    return {
        "lines_s": len(expected) / run.seconds_to_last_output,
        "wrong_lines": wrong_lines(run.text, system.size, sizes.lines),
        "wire": sent / characters,
    }


def dying(system: System, sizes: Sizes) -> Values:
    """From a rank's ``kill -9`` to the notebook saying so, and replacing that rank."""
    if not isinstance(system, Ours):
        return {}
    clock = system.home / "killed"
    system.run("import os, time")
    run = system.front.run(
        system.wrap(
            f"if rank == 1:\n    open({str(clock)!r}, 'w').write(str(time.perf_counter()))\n"
            "    os.kill(os.getpid(), 9)\ntime.sleep(1)"
        )
    )
    said = run.sent + run.seconds_to("killed by signal 9")
    return {
        "death_ms": 1e3 * (said - float(clock.read_text())),
        "replace_s": system.front.run("%dist_restart --ranks 1").seconds,
    }


SLEEPING = "import time\nprint('VIS' + 'IBLE')\ntime.sleep(60)"
IN_COLLECTIVE = "print('VIS' + 'IBLE')\nif rank:\n    dist.barrier()"
STUCK = (
    "import ctypes\nprint('VIS' + 'IBLE')\nmutex = ctypes.create_string_buffer(64)\n"
    "if rank == 1:\n    [ctypes.PyDLL(None).pthread_mutex_lock(mutex) for _ in '12']"
)
"""Rank 1 waits in C and holds the GIL."""


def stopping(system: System, sizes: Sizes) -> Values:
    """From Stop to the end of the cell: in Python code, in a collective, in C with the GIL held."""
    if not system.stops:
        return {}

    def seconds(code: str) -> float:
        for _ in range(3):  # ipyparallel may drop the cell that comes right after a Stop
            run = system.front.run(system.wrap(code), stop_after="VISIBLE")
            if run.pressed:
                return run.idle - run.pressed
        raise RuntimeError(f"the cell ended before Stop: {run.errors} {run.text[-300:]}")

    values = {"stop_first_ms": 1e3 * seconds(SLEEPING)}
    values["stop_ms"] = 1e3 * statistics.median(seconds(SLEEPING) for _ in range(3))
    if isinstance(system, Ours):
        values["stop_collective_ms"] = 1e3 * seconds(IN_COLLECTIVE)
        values["stop_stuck_s"] = seconds(STUCK)
        system.front.run("%dist_restart --ranks 1")
    return values


def explaining(system: System, sizes: Sizes) -> Values:
    if not isinstance(system, Ours):
        return {}
    system.run("if rank == 0:\n    work = dist.barrier(async_op=True)")
    return {"why_ms": median_ms(lambda: system.front.run("%dist_why"), 3)}


def wrong_lines(text: str, ranks: int, lines: int) -> int:
    """Count the lines ``<rank:number>`` that are lost, doubled, broken or out of order.

    A line may be introduced by whose it is, such as ``[stdout:3]`` or ``(Rank pid=17)``.
    """
    seen: set[tuple[int, int]] = set()
    last: dict[int, int] = {}
    wrong = 0
    for line in text.splitlines():
        bare = re.sub(r"^\s*(\([^()]*pid=\d+[^()]*\)|\[[^\[\]]*\])\s*", "", line).strip()
        found = [(int(rank), int(number)) for rank, number in re.findall(r"<(\d+):(\d+)>", bare)]
        whole = len(found) == 1 and re.fullmatch(r"<\d+:\d+>", bare)
        if found and not whole:
            wrong += 1
        for rank, number in found:
            wrong += (rank, number) in seen
            wrong += number < last.get(rank, -1)
            last[rank] = number
            seen.add((rank, number))
    return wrong + ranks * lines - len(seen)


MEASURES = (
    start,
    memory,
    latency,
    lasting,
    blocked,
    moving,
    growth,
    printing,
    dying,
    stopping,
    explaining,
)


def measure(system: System, sizes: Sizes) -> tuple[Values, dict[str, str]]:
    """Take all measures of an open system; return values, and why measures failed, by name."""
    values: Values = {}
    failures: dict[str, str] = {}
    for take in MEASURES:
        try:
            values |= take(system, sizes)
        except (AssertionError, OSError, RuntimeError, TimeoutError, ValueError) as error:
            failures[take.__name__] = f"{type(error).__name__}: {error}"
            if take is start:
                break
    return values, failures
