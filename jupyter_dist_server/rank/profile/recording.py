"""The recording of one cell by torch's profiler; ranks do not wait for each other in it."""

from __future__ import annotations

import logging
import sys
import tempfile
import threading
import time
import warnings
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ...common.protocol.ranks.rank_messages import ProfileOptions
from ...common.recorded_collectives import is_cell, is_own, place_at
from ..torch_internals import profiler_runs
from ..users_code import runs_users_code
from ..waits.flight_recorder import quiet_stderr
from ..waits.own_evidence import called_at
from .step_watch import StepWatch

_LOADERS = "torch.utils.data.dataloader"


class Sample(NamedTuple):
    """What the main thread did between two looks."""

    begin: float
    end: float
    place: str
    """Such as ``time.sleep, In[4] line 7``."""


class Sampler:
    """Looks at the main thread from another thread."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, CodeType | None, int, int]] = []
        self.workers: set[int] = set()
        """Of the DataLoaders that the main thread was seen to wait for."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="dist profile", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join()

    def samples(self) -> list[Sample]:
        """Return what was seen; a late look counts for all the time before it."""
        name = cache(_name)
        return [
            Sample(before[0], moment, name(code, line, at))
            for before, (moment, code, line, at) in zip(self._seen, self._seen[1:], strict=False)
            if code is not None
        ]

    def _look(self) -> None:
        main = threading.main_thread().ident or 0
        self._seen.append((time.time(), None, 0, 0))
        while not self._ended.wait(0.005):
            innermost = sys._current_frames().get(main)
            frame = _users_frame(innermost)
            self.workers |= _workers(innermost)
            at = (frame.f_code, frame.f_lineno, frame.f_lasti) if frame else (None, 0, 0)
            self._seen.append((time.time(), *at))
            del frame, innermost  # they hold all variables of the cell's functions


def _users_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of a cell's code, or of a script and its modules."""
    own = None
    while frame is not None and not runs_users_code(frame.f_code):
        if is_cell(frame.f_code.co_filename):
            return frame
        if own is None and is_own(frame.f_code.co_filename):
            own = frame
        frame = frame.f_back
    return own if frame is not None else None


def _workers(frame: FrameType | None) -> set[int]:
    """Return the number of workers of the DataLoader that is asked for a batch, if one is.

    Without workers, it calls the user's dataset: its frame may be above the user's innermost one.
    """
    while frame is not None:
        if frame.f_code.co_name == "__next__" and frame.f_globals.get("__name__") == _LOADERS:
            number = getattr(frame.f_locals.get("self"), "_num_workers", None)
            return set() if number is None else {number}
        frame = frame.f_back
    return set()


def _name(code: CodeType, line: int, at: int) -> str:
    place = place_at(code.co_filename, line)
    where = f"{place.file} line {place.line}"
    call = called_at(code, at)
    return f"`{call}`, {where}" if call else where


_LOG = logging.getLogger(__name__)


class Recording:
    """Records from `start` to `stop`, both called by the main thread."""

    def __init__(self, options: ProfileOptions) -> None:
        import torch

        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        self._profiler = torch.profiler.profile(
            activities=activities, profile_memory=options.memory
        )
        self._most_steps = options.steps
        self._optimizer: Any = None
        self._hook: Any = None
        self._is_on = False
        self._failure: Exception | None = None
        self.sampler = Sampler()
        self.watch = StepWatch()
        self.started = self.ended = 0.0
        """When the cell began, and when it ended or enough steps were recorded."""
        self.steps: list[float] = []
        """When each step of the optimizer ended."""

    def start(self) -> None:
        """Begin."""
        from torch.optim.optimizer import register_optimizer_step_post_hook

        if profiler_runs():
            raise RuntimeError("a profiler of torch was running before the cell")
        with quiet_stderr(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some versions of torch recommend options
            self._profiler.start()
        self._is_on = True
        self._hook = register_optimizer_step_post_hook(self._note_step)
        self.started = time.time()
        self.watch.start()
        self.sampler.start()

    def wait_for_gpu(self) -> None:
        """Wait until the GPU has done the work of the cell."""
        import torch

        if self._is_on and torch.cuda.is_initialized():
            try:
                torch.cuda.synchronize()
            except RuntimeError:  # the profiler's end says so
                _LOG.info("The GPU has failed.", exc_info=True)

    def stop(self) -> None:
        """End, and keep the recording; raises what torch's profiler raised, also earlier."""
        if self._failure:
            raise self._failure
        if not self._is_on:
            return
        self._is_on = False
        self.ended = time.time()
        self._hook.remove()
        self._optimizer = None
        self.sampler.stop()
        self.watch.stop()
        if not profiler_runs():  # then torch's export would end the process
            raise RuntimeError("the cell used a profiler of torch itself, which ended this one")
        with quiet_stderr():
            self._profiler.stop()

    def export(self) -> bytes:
        """Return the trace, as JSON."""
        with tempfile.TemporaryDirectory(prefix="jdist-profile-") as folder:
            file = Path(folder) / "trace.json"
            self._profiler.export_chrome_trace(str(file))
            return file.read_bytes()

    def _note_step(self, optimizer: Any, arguments: Any, options: Any) -> None:
        self._optimizer = self._optimizer or optimizer
        if not self._is_on or optimizer is not self._optimizer:
            return
        self.steps.append(time.time())
        self.watch.note_step(sys._getframe())
        if len(self.steps) == self._most_steps:
            try:
                self.wait_for_gpu()
                self.stop()
            except Exception as error:  # must not fail the user's `optimizer.step()`
                self._failure = error
