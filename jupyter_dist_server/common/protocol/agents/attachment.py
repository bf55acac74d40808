"""The message with which a process attaches to a pool."""

from __future__ import annotations

import os
from dataclasses import dataclass

import msgspec

from ...processes.process_ref import ProcessRef

SERVER, KERNEL = "server", "kernel"
"""What kind of process is attached."""


@dataclass(frozen=True)
class Owner:
    """The process that starts pools, adopts them and is attached to them: the present one.

    Its pools outlive it by `grace` seconds.
    """

    kind: str = KERNEL
    grace: float = 0.0


class Attachment(msgspec.Struct, frozen=True):
    """A process that keeps a pool alive."""

    kind: str = msgspec.field(name="as")
    pid: int
    start_ticks: int
    boot: str
    kernel_id: str | None = None
    name: str = ""
    mode: bool = False
    """Whether all its cells go to the pool."""

    @property
    def process(self) -> ProcessRef:
        """Which process it is."""
        return ProcessRef(self.pid, self.start_ticks, self.boot)

    @classmethod
    def of_this_process(
        cls, kind: str, kernel_id: str | None = None, name: str = "", mode: bool = False
    ) -> Attachment:
        """Return the attachment of this process."""
        process = ProcessRef.of(os.getpid())
        return cls(kind, process.pid, process.start_ticks, process.boot, kernel_id, name, mode)
