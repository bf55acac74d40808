"""Large values on their way from and to other nodes, in memory that ranks here can share."""

from __future__ import annotations

import errno
import mmap
import os
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...common.pickling import SharedMemory, write_piece, write_shared
from ...common.protocol.ranks.parcel_messages import (
    DropRequest,
    LoadReply,
    LoadRequest,
    StoreReply,
    StoreRequest,
)
from ..request_handlers import Asked, hears

_KEPT = 60.0
"""Seconds for which a parcel is kept that nobody moves: whoever did was killed."""
_LARGEST_PIECE = 64 << 20
_REMEMBERED = 64
"""Names of parcels that were dropped before they were there."""


@dataclass
class _Parcel:
    memory: SharedMemory
    touched: float = field(default_factory=time.monotonic)

    @cached_property
    def content(self) -> memoryview:
        """All of it; what refers to a part of it keeps it."""
        return memoryview(mmap.mmap(self.memory.descriptor, 0, access=mmap.ACCESS_READ))


class ParcelHandlers:
    """What `RankKernel` answers on its control channel, to move values piece by piece."""

    control_stream: Any

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._parcels: dict[str, _Parcel] = {}
        self._dropped: deque[str] = deque(maxlen=_REMEMBERED)
        self._keeping = threading.Lock()
        """Held for a moment by who adds a parcel or drops one: threads add them."""

    @hears(StoreRequest)
    def dist_store_request(self, asked: Asked[StoreRequest]) -> None:
        """Keep a piece."""
        piece = asked.content
        try:
            if piece.parcel not in self._parcels:
                if piece.offset:  # what came before it is gone
                    asked.reply(StoreReply(None, "the parcel was dropped"))
                    return
                memory = _new_memory()
                self._add(piece.parcel, memory)
                os.ftruncate(memory.descriptor, piece.size)
            parcel = self._parcels[piece.parcel]
            parcel.touched = time.monotonic()
            for buffer in asked.buffers:
                write_piece(parcel.memory.descriptor, memoryview(buffer), piece.offset)
        except OSError as error:  # no memory is left, or no descriptor
            self._drop(piece.parcel)
            asked.reply(StoreReply(None, str(error.strerror)))
        else:
            asked.reply(StoreReply(parcel.memory.address))

    @hears(LoadRequest)
    def dist_load_request(self, asked: Asked[LoadRequest]) -> None:
        """Send a piece."""
        piece = asked.content
        if not (parcel := self._parcels.get(piece.parcel)):
            asked.reply(LoadReply(False))
            return
        parcel.touched = time.monotonic()
        size = min(piece.size, _LARGEST_PIECE)
        try:
            data = parcel.content[piece.offset : piece.offset + size]
        except OSError:  # it cannot be mapped
            asked.reply(LoadReply(False))
        else:
            asked.reply(LoadReply(True), [data])

    @hears(DropRequest)
    def dist_drop_request(self, asked: Asked[DropRequest]) -> None:
        """Forget a parcel; who has opened or mapped its memory still has it."""
        self._drop(asked.content.parcel, or_later=True)

    def _keep(self, name: str, buffers: Iterable[memoryview]) -> bool:
        """Make a parcel of a value, in another thread; false if it was dropped before that.

        Raises
        ------
        OSError
            If there is no memory for it.
        """
        # Nobody else has the memory while it is written: if it was closed meanwhile, its descriptor
        # could be that of another file.
        memory = _new_memory()
        try:
            write_shared(memory.descriptor, buffers)
        except BaseException:
            memory.close()
            raise
        with self._keeping:
            if is_wanted := name not in self._dropped:
                self._add(name, memory)
        if not is_wanted:
            memory.close()
        return is_wanted

    def _add(self, name: str, memory: SharedMemory) -> None:
        self._parcels[name] = _Parcel(memory)
        loop = self.control_stream.io_loop
        loop.add_callback(loop.call_later, _KEPT, self._drop_if_left, name)

    def _drop_if_left(self, name: str) -> None:
        """Forget a parcel that nobody moves any more, or look again later."""
        if parcel := self._parcels.get(name):
            left = parcel.touched + _KEPT - time.monotonic()
            if left <= 0:
                self._drop(name)
            else:
                self.control_stream.io_loop.call_later(left, self._drop_if_left, name)

    def _drop(self, name: str, or_later: bool = False) -> None:
        with self._keeping:
            parcel = self._parcels.pop(name, None)
            if not parcel and or_later:
                self._dropped.append(name)
        if parcel:
            parcel.memory.close()


def _new_memory() -> SharedMemory:
    if not SharedMemory.possible:
        raise OSError(errno.ENOTSUP, "this system has no memory that processes share")
    return SharedMemory()
