"""The GPUs of this machine, read through NVML.

NVML can hang inside a sick driver, so only a short-lived child process calls it, which prints one
JSON document.
See https://docs.nvidia.com/deploy/nvml-api/.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict, dataclass
from typing import Any

from ..interpreter import python_command

NO_GPU = "No NVIDIA GPU found: ranks run on the CPU."


@dataclass(frozen=True)
class Gpu:
    """One GPU; `uuid` is its identity, `index` only its place in PCI bus order."""

    index: int
    uuid: str
    name: str
    memory_total: int
    """Bytes."""
    pci_bus_id: str
    compute_capability: str


@dataclass(frozen=True)
class Inventory:
    """All GPUs, or the `reason` in one sentence why there are none."""

    gpus: tuple[Gpu, ...] = ()
    driver: str | None = None
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the body of ``GET /gpus``."""
        return asdict(self)

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Inventory:
        """Read what `to_json` wrote."""
        return cls(tuple(Gpu(**gpu) for gpu in body["gpus"]), body["driver"], body["reason"])


def read_nvml() -> Inventory:
    """Read NVML in this process. May block for as long as the driver does."""
    import pynvml as nvml

    try:
        nvml.nvmlInit()
    except nvml.NVMLError_LibraryNotFound:
        return Inventory(reason=NO_GPU)
    except nvml.NVMLError_DriverNotLoaded:
        return Inventory(reason="The NVIDIA driver is not loaded: ranks run on the CPU.")
    except nvml.NVMLError_LibRmVersionMismatch:
        return Inventory(
            reason="The NVIDIA driver that is loaded and its library have different versions, as "
            "after an update without a restart: ranks run on the CPU."
        )
    except nvml.NVMLError as error:
        cause = str(error).rstrip(".")
        return Inventory(reason=f"NVML cannot be used ({cause}): ranks run on the CPU.")
    try:
        gpus = []
        for position in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(position)
            major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
            gpus.append(
                Gpu(
                    index=position,
                    uuid=nvml.nvmlDeviceGetUUID(handle),
                    name=nvml.nvmlDeviceGetName(handle),
                    memory_total=nvml.nvmlDeviceGetMemoryInfo(handle).total,
                    pci_bus_id=nvml.nvmlDeviceGetPciInfo(handle).busId,
                    compute_capability=f"{major}.{minor}",
                )
            )
        driver = nvml.nvmlSystemGetDriverVersion()
    except nvml.NVMLError as error:
        cause = str(error).rstrip(".")
        return Inventory(reason=f"NVML failed while listing the GPUs: {cause}.")
    finally:
        nvml.nvmlShutdown()
    return Inventory(tuple(gpus), driver, None if gpus else NO_GPU)


async def inventory(timeout: float = 15.0) -> Inventory:
    """List the GPUs without ever blocking the event loop.

    Parameters
    ----------
    timeout : float
        Seconds after which a hanging driver is given up on, and said to hang.
    """
    child = await asyncio.create_subprocess_exec(
        *python_command(sys.executable, __name__),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(child.communicate(), timeout)
    except asyncio.TimeoutError:
        child.kill()
        return Inventory(reason=f"The NVIDIA driver did not answer within {timeout:g} s.")
    if child.returncode:
        last = err.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
        return Inventory(reason=f"Listing the GPUs failed: {last[0]}")
    try:
        return Inventory.from_json(json.loads(out))
    except ValueError:
        return Inventory(reason="Listing the GPUs failed: its process said nothing that we know.")


def main() -> None:
    """Print the inventory as JSON: what the child process does."""
    json.dump(read_nvml().to_json(), sys.stdout)
