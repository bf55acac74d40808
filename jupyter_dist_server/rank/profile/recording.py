"""The recording of one cell, by torch's profiler; no rank waits for another one in it."""

from __future__ import annotations

import logging
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from ...common.protocol.ranks.rank_messages import ProfileOptions
from ..torch_internals import profiler_runs
from ..waits.flight_recorder import quiet_stderr
from .line_sampler import Sampler

_LOG = logging.getLogger(__name__)


class Recording:
    """Records from `start` to `stop`, both called by the main thread.

    Parameters
    ----------
    options : ProfileOptions
        What is recorded.

    Attributes
    ----------
    started, ended : float
        When the cell began, and when it ended or enough steps were recorded.
    steps : list of float
        When each step of the optimizer ended.
    """

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
        self.started = self.ended = 0.0
        self.steps: list[float] = []

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
        self.sampler.start()

    def wait_for_gpu(self) -> None:
        """Wait until the GPU has done what the cell has launched, as that is a part of it."""
        import torch

        if self._is_on and torch.cuda.is_initialized():
            try:
                torch.cuda.synchronize()
            except RuntimeError:  # the profiler's end says so
                _LOG.info("The GPU has failed.", exc_info=True)

    def stop(self) -> None:
        """End; whatever was recorded stays.

        Raises
        ------
        Exception
            What torch's profiler raised, now or when enough steps were recorded.
        """
        if self._failure:
            raise self._failure
        if not self._is_on:
            return
        self._is_on = False
        self.ended = time.time()
        self._hook.remove()
        self._optimizer = None
        self.sampler.stop()
        if not profiler_runs():  # to export what torch has then ends the process
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
        """Note the end of a step: that of the first optimizer, if there are several."""
        self._optimizer = self._optimizer or optimizer
        if not self._is_on or optimizer is not self._optimizer:
            return
        self.steps.append(time.time())
        if len(self.steps) == self._most_steps:
            try:
                self.wait_for_gpu()
                self.stop()
            except Exception as error:  # the user's `optimizer.step()` has no part in it
                self._failure = error
