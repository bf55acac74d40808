"""Queries to NVML, each with an answer or a `Failure`.

Only child processes call this: the driver may hang. See https://docs.nvidia.com/deploy/nvml-api/.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pynvml

NO_GPU = "No NVIDIA GPU found: ranks run on the CPU."


class Failure(str):
    """Why NVML did not answer, in words for a person."""


UNSUPPORTED = Failure("unsupported")
"""The GPU or its driver never has this."""
NO_PERMISSION = Failure("no permission")
LOST = Failure("lost")
"""The GPU has fallen off the bus."""
RESET_REQUIRED = Failure("reset required")
DRIVER_GONE = Failure("driver unloaded")
"""The driver was unloaded or replaced: `stop` and `start` again. If its version has changed, only
a new process can load its library."""
NOTHING_YET = Failure("no data yet")
"""A place without a MIG instance, or no sample so far."""
INVALID_ARGUMENT = Failure("invalid argument")
"""For MIG instances, some drivers say this instead of "unsupported"."""

# The names of pynvml's errors.
_FAILURES = {
    "NOT_SUPPORTED": UNSUPPORTED,
    "FUNCTION_NOT_FOUND": UNSUPPORTED,
    "ARGUMENT_VERSION_MISMATCH": UNSUPPORTED,
    "DEPRECATED": UNSUPPORTED,
    "NO_PERMISSION": NO_PERMISSION,
    "GPU_IS_LOST": LOST,
    "RESET_REQUIRED": RESET_REQUIRED,
    "UNINITIALIZED": DRIVER_GONE,
    "DRIVER_NOT_LOADED": DRIVER_GONE,
    "LIB_RM_VERSION_MISMATCH": DRIVER_GONE,
    "NOT_FOUND": NOTHING_YET,
    "INVALID_ARGUMENT": INVALID_ARGUMENT,
}


def failure(error: pynvml.NVMLError) -> Failure:
    """Return pynvml's error as one of the failures above, or as ``"unknown: …"``."""
    import pynvml

    for name, word in _FAILURES.items():
        if error.value == getattr(pynvml, f"NVML_ERROR_{name}"):
            return word
    return Failure(f"unknown: {str(error).rstrip('.')}")


def query(function: str, *args: Any) -> Any:
    """Call a function of pynvml, given by name; return its result, or a `Failure`. It may hang."""
    import pynvml

    asked = getattr(pynvml, function, None)
    if asked is None:  # an older pynvml
        return UNSUPPORTED
    try:
        return asked(*args)
    except pynvml.NVMLError as error:
        return failure(error)


class NvmlFailed(Exception):
    """NVML did not answer."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


def ask(function: str, *args: Any) -> Any:
    """Do the same as `query`, but raise `NvmlFailed` instead of returning a `Failure`."""
    answer = query(function, *args)
    if isinstance(answer, Failure):
        raise NvmlFailed(answer)
    return answer


def start() -> str | None:
    """Load NVML; if it cannot be used, return the reason in one sentence."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        return NO_GPU
    except pynvml.NVMLError_DriverNotLoaded:
        return "The NVIDIA driver is not loaded: ranks run on the CPU."
    except pynvml.NVMLError_LibRmVersionMismatch:
        return (
            "The loaded NVIDIA driver and its library have different versions: ranks run on the "
            "CPU. Restart the machine if the driver was updated."
        )
    except pynvml.NVMLError_NoPermission:
        return "You have no permission to use the NVIDIA driver: ranks run on the CPU."
    except pynvml.NVMLError as error:
        return f"NVML cannot be used ({str(error).rstrip('.')}): ranks run on the CPU."
    return None


def stop() -> None:
    """Unload NVML; all handles become invalid."""
    query("nvmlShutdown")


@dataclass(frozen=True)
class Device:
    """A leaf device with NVML's handle: a whole GPU, or one MIG instance of a GPU."""

    uuid: str
    index: int
    handle: Any
    whole: Any
    """The handle of the whole GPU."""
    mig: int | None = None
    """The place of a MIG instance on its GPU."""
    parent: str | None = None
    """The UUID of a MIG instance's GPU."""

    @property
    def label(self) -> str:
        """What people call it, as that of a `Gpu`."""
        return str(self.index) if self.mig is None else f"{self.index}:{self.mig}"


def devices() -> tuple[list[Device], list[str]] | Failure:
    """List GPUs in PCI bus order, or their MIG instances, and sentences about unusable GPUs."""
    count = query("nvmlDeviceGetCount")
    if isinstance(count, Failure):
        return count
    found: list[Device] = []
    problems: list[str] = []
    forbidden: list[str] = []
    for index in range(count):
        try:
            if leaves := _leaves(index):
                found += leaves
            else:
                problems.append(
                    f"GPU {index} is in MIG mode but has no MIG instance: create one (nvidia-smi "
                    "mig -cgi …), or disable MIG mode (nvidia-smi -mig 0)."
                )
        except NvmlFailed as error:
            if error.failure == DRIVER_GONE:
                return DRIVER_GONE
            if error.failure == NO_PERMISSION:
                forbidden.append(str(index))
            else:
                problems.append(trouble(f"GPU {index}", error.failure))
    if forbidden:  # in a Slurm job, all but its own
        gpus = f"GPU{'s' * (len(forbidden) > 1)} {', '.join(forbidden)}"
        problems.append(trouble(gpus, NO_PERMISSION))
    return found, problems


def trouble(gpu: str, why: Failure) -> str:
    """Say why a GPU cannot be used."""
    if why == LOST:
        return f"{gpu} has fallen off the bus. Restart the machine to use it again."
    if why == NO_PERMISSION:
        return f"You have no permission to use {gpu}."
    if why == RESET_REQUIRED:
        return f"{gpu} must be reset before it can be used (nvidia-smi --gpu-reset)."
    return f"{gpu} cannot be used: {why.removeprefix('unknown: ')}."


def _leaves(index: int) -> list[Device]:
    """Return a GPU, or its MIG instances if it is in MIG mode."""
    whole = ask("nvmlDeviceGetHandleByIndex", index)
    uuid = ask("nvmlDeviceGetUUID", whole)
    mode = query("nvmlDeviceGetMigMode", whole)
    if mode in (LOST, RESET_REQUIRED, DRIVER_GONE):
        raise NvmlFailed(mode)
    if isinstance(mode, Failure) or not mode[0]:  # most GPUs do not support MIG
        return [Device(uuid, index, whole, whole)]
    leaves = []
    for place in range(ask("nvmlDeviceGetMaxMigDeviceCount", whole)):
        handle = query("nvmlDeviceGetMigDeviceHandleByIndex", whole, place)
        if handle == NOTHING_YET:
            continue
        if isinstance(handle, Failure):
            raise NvmlFailed(handle)
        own = ask("nvmlDeviceGetUUID", handle)
        leaves.append(Device(own, index, handle, whole, place, uuid))
    return leaves
