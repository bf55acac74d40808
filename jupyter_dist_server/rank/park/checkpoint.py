"""The driver's checkpoint of this process: all that it has on GPUs moves to the host's memory.

See https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__CHECKPOINT.html and, for what the
driver refuses, https://github.com/NVIDIA/cuda-checkpoint. Any thread may call it; CUDA calls of
other threads wait from `lock` until `unlock`.
"""

from __future__ import annotations

import ctypes
import os
from enum import IntEnum

from ...common.patience import patience
from ...common.protocol.ranks.park_messages import ParkReply, Step

_LIBRARY = "libcuda.so.1"
_NOT_INITIALIZED = 3
_NOT_READY = 600
_TOO_OLD = "The NVIDIA driver cannot park processes: that needs release 570 or newer."


class State(IntEnum):
    """``CUprocessState``."""

    RUNNING = 0
    LOCKED = 1
    CHECKPOINTED = 2
    FAILED = 3


_FROM: dict[Step, State] = {
    "lock": State.RUNNING,
    "checkpoint": State.LOCKED,
    "restore": State.CHECKPOINTED,
    "unlock": State.LOCKED,
}
"""The state in which there is something to do for a step."""
_OUT_OF_ORDER = {("checkpoint", State.RUNNING), ("unlock", State.CHECKPOINTED)}
"""In all other states, what the step is for has been reached."""


class DriverError(Exception):
    """What the driver said, as a sentence."""


class _Arguments(ctypes.Structure):
    """The arguments of all calls: 64 bytes, of which only `lock` uses some."""

    _fields_ = (("timeout_ms", ctypes.c_uint), ("reserved", ctypes.c_uint * 15))


class Checkpoint:
    """Takes the steps; raises `DriverError` if there is no driver that could."""

    def __init__(self) -> None:
        try:
            self._driver = ctypes.CDLL(_LIBRARY)
        except OSError as error:
            raise DriverError(f"The NVIDIA driver cannot be loaded: {error}.") from error
        if not hasattr(self._driver, "cuCheckpointProcessGetState"):
            raise DriverError(_TOO_OLD)

    def state(self) -> State | None:
        """Return the state of this process; `None` if it has not used CUDA."""
        state = ctypes.c_int()
        code = self._driver.cuCheckpointProcessGetState(os.getpid(), ctypes.byref(state))
        if code == _NOT_INITIALIZED:
            return None
        self._check("cuCheckpointProcessGetState", code)
        try:
            return State(state.value)
        except ValueError as error:  # of a newer driver
            raise DriverError(f"The driver is in the middle of a step ({state.value}).") from error

    def take(self, step: Step) -> ParkReply:
        """Take a step, unless there is nothing to do; return how it ended."""
        try:
            before = self.state()
            if before is State.FAILED:
                return ParkReply("The driver has lost what was on its GPU.", is_lost=True)
            if before is not None and (step, before) in _OUT_OF_ORDER:
                return ParkReply(f"The driver cannot {step} a process that is {before.name}.")
            if before is _FROM[step]:
                name = f"cuCheckpointProcess{step.capitalize()}"
                limit = round(patience.node * 1000) if step == "lock" else 0
                call = getattr(self._driver, name)
                self._check(name, call(os.getpid(), ctypes.byref(_Arguments(limit))))
        except DriverError as error:
            return ParkReply(str(error), is_lost=self._is_lost())
        return ParkReply()

    def _is_lost(self) -> bool:
        try:
            return self.state() is State.FAILED
        except DriverError:  # it is said already
            return False

    def _check(self, name: str, code: int) -> None:
        if code == _NOT_READY:  # of `lock`, which waits for kernels
            raise DriverError("Its GPU still runs what was launched on it.")
        if code:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorName(code, ctypes.byref(text))
            known = (text.value or b"").decode()
            raise DriverError(f"The driver's {name} failed with {known or f'error {code}'}.")
