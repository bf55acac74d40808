"""Watches what each step of a cell leaves behind, and what interrupts it."""

from __future__ import annotations

import gc
import linecache
import os
import re
import sys
import time
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from types import FrameType
from typing import Any, NamedTuple

from ...common.recorded_collectives import is_own, place_at
from ...common.time_intervals import Interval
from ..users_code import runs_users_code

_LEAST_GROWTH = 2**20
"""Bytes per step below which memory does not grow: it varies by as much on the CPU."""
_LEAST_STEPS = 4
_CONTAINERS = (list, dict, set, deque)


class _Step(NamedTuple):
    ended: float
    memory: int
    graphs: int
    lengths: dict[str, int]
    """Of the containers that the user's code has names for."""
    bytes: dict[str, int]
    """Of the last tensor in each of them."""
    files: list[str]
    """Of the user's code, in which the step was called."""


class StepWatch:
    """Notes the ends of steps, and pauses of Python's garbage collector, from `start` to `stop`."""

    def __init__(self) -> None:
        self.pauses: list[Interval] = []
        self._steps: list[_Step] = []
        self._pause_began = 0.0
        self._graphs_before = 0

    def start(self) -> None:
        """Begin."""
        self._graphs_before = _compiled_graphs()
        gc.callbacks.append(self._on_collection)

    def stop(self) -> None:
        """End."""
        gc.callbacks.remove(self._on_collection)

    def note_step(self, frame: FrameType | None) -> None:
        """Note the end of a step, which the function of a frame has called."""
        names: dict[str, Any] = {}
        files = []
        while frame is not None and not runs_users_code(frame.f_code):
            if is_own(frame.f_code.co_filename):
                names = {**frame.f_globals, **frame.f_locals, **names}
                files.append(frame.f_code.co_filename)
            frame = frame.f_back
        kept = {name: value for name, value in names.items() if type(value) in _CONTAINERS}
        lengths = {name: len(value) for name, value in kept.items()}
        sizes = {name: _last_bytes(value) for name, value in kept.items()}
        step = _Step(time.time(), _memory(), _compiled_graphs(), lengths, sizes, files)
        self._steps.append(step)

    def compiles(self, dropped: int) -> int:
        """Count the graphs that were compiled after the steps that are left out."""
        if not self._steps:
            return max(0, _compiled_graphs() - self._graphs_before)
        before = self._steps[dropped - 1].graphs if dropped else self._graphs_before
        return max(0, self._steps[-1].graphs - before)

    def growth(self) -> tuple[float, str]:
        """Return the bytes that a step leaves, and what gets longer; 0 if not each leaves some.

        On the CPU, memory that was freed before hides what a step leaves, but not what it appends.
        """
        steps = self._steps[1:]  # the first one makes what an optimizer needs
        if len(steps) < _LEAST_STEPS:
            return 0.0, ""
        more = [now.memory - before.memory for before, now in pairwise(steps)]
        name = _longer(steps)
        appended = steps[-1].bytes.get(name, 0)
        left = max(appended, median(more) if min(more) > 0 else 0)
        if left < _LEAST_GROWTH:
            return 0.0, ""
        return left, f"{name}{_line(name, steps[-1].files)}" if name else ""

    def _on_collection(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._pause_began = time.time()
        elif self._pause_began:
            self.pauses.append((self._pause_began, time.time()))


def _memory() -> int:
    """Return the bytes that torch has allocated on the GPU, or those of the process."""
    torch: Any = sys.modules["torch"]
    if torch.cuda.is_initialized():
        return int(torch.cuda.memory_allocated())
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not on Linux
        return 0


def _compiled_graphs() -> int:
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    return int(dynamo.counters["stats"]["unique_graphs"]) if dynamo else 0


def _longer(steps: Sequence[_Step]) -> str:
    """Return the name of the container that got longer in each step, with the most in it."""
    found = []
    for name, last in steps[-1].lengths.items():
        lengths = [step.lengths.get(name, last) for step in steps]
        if all(now > before for before, now in pairwise(lengths)):
            found.append(name)
    return max(found, key=lambda name: steps[-1].bytes.get(name, 0), default="")


def _last_bytes(container: Any) -> int:
    """Return the bytes of the last item, if that is a tensor."""
    if isinstance(container, set) or not container:
        return 0
    last = next(reversed(container.values() if isinstance(container, dict) else container))
    torch: Any = sys.modules["torch"]
    return int(last.nbytes) if isinstance(last, torch.Tensor) else 0


def _line(name: str, files: list[str]) -> str:
    grows = re.compile(
        rf"\b{re.escape(name)}(\.(append|extend|add|insert|update|setdefault)\(|\[.*\] *=|\s*\+=)"
    )
    for file in files:
        for number, line in enumerate(linecache.getlines(file), 1):
            if grows.search(line):
                place = place_at(file, number)
                return f", {place.file} line {place.line}"
    return ""
