"""The lease that an agent holds for its pool; a parked pool gives it back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from ..common.files.hand_over import take_over
from ..common.files.inherited_lease import InheritedLease
from ..common.protocol.agents.agent_messages import (
    DescribeLease,
    GiveBack,
    NoteParked,
    Parked,
    TakeBack,
)

_LOG = logging.getLogger(__name__)


class HeldLease:
    """The pool's lease, if it has one, and whether its ranks are parked.

    `folder` is the pool's. Calls `changed` when clients should be told.
    """

    def __init__(
        self, folder: Path, lease: InheritedLease | None, changed: Callable[[], None]
    ) -> None:
        self._folder = folder
        self._lease = lease
        self._changed = changed
        self._said = DescribeLease("", None, None)
        self.parked: Parked | None = None

    def open(self) -> None:
        """Follow the lease's files; called in the event loop, or before it runs."""
        if self._lease and (events := self._lease.fileno()) is not None:
            asyncio.get_event_loop().add_reader(events, self._lease.mend)

    def describe(self, said: DescribeLease) -> None:
        """Write the pool's name and end into the lease, for other users."""
        self._said = said
        try:
            if self._lease:
                self._lease.tell(**msgspec.structs.asdict(said))
        except OSError as error:  # no reason to end the pool
            what = "The lease does not say what the pool is called and when it ends"
            _LOG.warning("%s: %s", what, error)

    def absorb(self, more: InheritedLease) -> None:
        """Hold the GPUs of another lease of this pool too."""
        if self._lease:
            self._lease.absorb(more)

    def keep_only(self, uuids: set[str]) -> None:
        """Release the other GPUs."""
        if self._lease:
            self._lease.keep_only(uuids)

    async def obey(self, command: NoteParked | GiveBack | TakeBack) -> None:
        """Note that ranks are parked, or give the lease back and take a new one."""
        if isinstance(command, NoteParked):
            self.parked = command.parked
        elif isinstance(command, GiveBack):
            self.close()
        else:
            try:
                self._lease = InheritedLease(await take_over(self._folder))
            except OSError as error:
                _LOG.error("The pool cannot resume: its lease did not come: %s", error)
                return
            self.describe(self._said)
            self.open()
        if self.parked:
            self.parked = msgspec.structs.replace(self.parked, leased=self._lease is not None)
        self._changed()

    def close(self) -> None:
        """Release the lease, and note for how long the pool had its GPUs."""
        if self._lease:
            if (events := self._lease.fileno()) is not None:
                asyncio.get_event_loop().remove_reader(events)
            self._lease.note_use()
            self._lease.release()
            self._lease = None
