"""Reads a trace of torch's profiler."""

from __future__ import annotations

import re
from bisect import bisect_left

import msgspec

from ...common.time_intervals import Interval

_COLLECTIVE = re.compile(r"(gloo|ucc|mpi):(\w+)")
_MESSAGES = ("send", "recv", "recvAnySource")
_KERNELS = ("kernel", "gpu_memcpy", "gpu_memset")
_BETWEEN_CPU_AND_GPU = ("Memcpy HtoD", "Memcpy DtoH")
_LAUNCHES = ("cuda_runtime", "cuda_driver")
_NCCL = re.compile(r"nccl\w*?[Kk]ernel_?(\w*?)(_|\(|$)")

_CPU = 0  # torch's number for this type of device


class _Arguments(msgspec.Struct, frozen=True):
    """The arguments of an event."""

    total: float = msgspec.field(name="Total Allocated", default=0)
    device_type: int = msgspec.field(name="Device Type", default=_CPU)
    group: str = msgspec.field(name="Process Group Name", default="")
    collective: str = msgspec.field(name="Collective name", default="")
    correlation: int = 0
    """The same for a kernel and the call that launched it."""


class Event(msgspec.Struct, frozen=True):
    """An event with a duration; times in microseconds."""

    ph: str
    name: str = ""
    cat: str = ""
    tid: int | str = ""
    ts: float = 0.0
    dur: float = 0.0
    args: _Arguments = _Arguments()


class _File(msgspec.Struct):
    traceEvents: list[Event]
    baseTimeNanoseconds: int = 0


class Communication(msgspec.Struct, frozen=True):
    """A collective or a message."""

    begin: float
    end: float
    name: str
    """torch's name, such as ``gloo:all_reduce``."""
    op: str
    group: str
    is_message: bool


class Trace:
    """A trace; times in seconds since 1970. Events count from `base`."""

    def __init__(self, events: list[Event], base: float) -> None:
        self._base = base
        self._events = [event for event in events if event.ph == "X"]
        found = [c for c in map(self._communication, self._events) if c is not None]
        self.communication = sorted(found, key=lambda c: c.begin)
        kernels = [event for event in self._events if event.cat in _KERNELS]
        self.on_gpu = any(not event.name.startswith("nccl") for event in kernels)
        """Whether a GPU computes."""
        totals = [
            event.args.total
            for event in events
            if event.name == "[memory]" and (event.args.device_type != _CPU) is self.on_gpu
        ]
        self.memory = int(max(totals, default=0))

    def time(self, event: Event) -> Interval:
        """Return when an event began and ended."""
        begin = self._base + event.ts / 1e6
        return begin, begin + event.dur / 1e6

    def inputs(self) -> list[Interval]:
        """Return when something was taken from a DataLoader."""
        name = "enumerate(DataLoader)"
        return [self.time(e) for e in self._events if e.name.startswith(name)]

    def kernels(self) -> list[Interval]:
        """Return when the GPU computed."""
        others = ("nccl", *_BETWEEN_CPU_AND_GPU)
        return [
            self.time(event)
            for event in self._events
            if event.cat in _KERNELS and not event.name.startswith(others)
        ]

    def copies(self) -> list[Interval]:
        """Return when something was copied from the CPU to the GPU, or back."""
        return [self.time(e) for e in self._events if e.name.startswith(_BETWEEN_CPU_AND_GPU)]

    def done(self, moment: float) -> float:
        """Return when the GPU had finished what was launched before a moment, or that moment."""
        launched = {
            event.args.correlation
            for event in self._events
            if event.cat in _LAUNCHES and self.time(event)[0] < moment
        }
        ends = (
            self.time(event)[1]
            for event in self._events
            if event.cat in _KERNELS and event.args.correlation in launched
        )
        return max((moment, *ends))

    def operations(self) -> list[Interval]:
        """Return when the CPU computed: torch's operations that do not wait for another rank."""
        begun: dict[int | str, list[float]] = {}
        operations = [e for e in self._events if e.cat == "cpu_op"]
        for event in operations:
            if "c10d" in event.name:
                begun.setdefault(event.tid, []).append(event.ts)
        for moments in begun.values():
            moments.sort()
        return [
            self.time(event)
            for event in operations
            if not _any_between(begun.get(event.tid, []), event.ts, event.ts + event.dur)
        ]

    def outer_operations(self) -> list[float]:
        """Return when operations began that are no part of another; on a GPU, kernels."""
        if self.on_gpu:
            return [begin for begin, _ in self.kernels()]
        begins: list[float] = []
        ends: dict[int | str, float] = {}
        operations = (e for e in self._events if e.cat == "cpu_op" and "c10d" not in e.name)
        for event in sorted(operations, key=lambda one: (one.ts, -one.dur)):
            if event.ts >= ends.get(event.tid, -1.0):
                ends[event.tid] = event.ts + event.dur
                begins.append(self.time(event)[0])
        return begins

    @property
    def has_ddp(self) -> bool:
        """Whether a model is wrapped in `DistributedDataParallel`."""
        return any(event.name.startswith("DistributedDataParallel.") for event in self._events)

    def annotations(self) -> list[tuple[Interval, str]]:
        """Return the user's `record_function` blocks: on the GPU, if it computes."""
        category = "gpu_user_annotation" if self.on_gpu else "user_annotation"
        theirs = ("enumerate(", "Optimizer.", "DistributedDataParallel.", "ProfilerStep#", "nccl:")
        return [
            (self.time(event), event.name)
            for event in self._events
            if event.cat == category
            and not event.name.startswith(theirs)
            and not _COLLECTIVE.fullmatch(event.name)
        ]

    def _communication(self, event: Event) -> Communication | None:
        if event.cat == "kernel" and (found := _NCCL.match(event.name)):
            op, group = event.args.collective or found[1], event.args.group
            is_message = "send" in op.lower() or "recv" in op.lower()
        elif event.cat == "user_annotation" and (found := _COLLECTIVE.fullmatch(event.name)):
            op, group, is_message = found[2], "", found[2] in _MESSAGES
        else:
            return None
        return Communication(*self.time(event), event.name, op, group, is_message)


def _any_between(moments: list[float], begin: float, end: float) -> bool:
    place = bisect_left(moments, begin)
    return place < len(moments) and moments[place] <= end


def read_trace(text: bytes) -> Trace:
    """Read a trace of `export_chrome_trace`; raises `ValueError` if it is none."""
    file = msgspec.json.decode(text, type=_File, strict=False)
    return Trace(file.traceEvents, file.baseTimeNanoseconds / 1e9)
