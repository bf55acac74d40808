"""Large values on their way from and to other nodes, in memory that ranks here can share."""

from __future__ import annotations

import errno
import os
import time
from dataclasses import dataclass, field
from typing import Any

from ...common.pickling import SharedMemory, write_piece
from ...common.protocol.ranks.parcel_messages import (
    DropRequest,
    LoadReply,
    LoadRequest,
    StoreReply,
    StoreRequest,
)
from ..requests import Asked, hears

_KEPT = 60.0
"""Seconds for which a parcel is kept that nobody moves: whoever did was killed."""
_LARGEST_PIECE = 64 << 20


@dataclass
class _Parcel:
    memory: SharedMemory = field(default_factory=SharedMemory)
    touched: float = field(default_factory=time.monotonic)


class ParcelHandlers:
    """What `RankKernel` answers on its control channel, to move values piece by piece."""

    control_stream: Any

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._parcels: dict[str, _Parcel] = {}

    @hears(StoreRequest)
    def dist_store_request(self, asked: Asked[StoreRequest]) -> None:
        """Keep a piece."""
        piece = asked.content
        try:
            if piece.parcel not in self._parcels:
                os.ftruncate(self._begin_parcel(piece.parcel).descriptor, piece.size)
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
        data = os.pread(parcel.memory.descriptor, size, piece.offset)
        asked.reply(LoadReply(True), [memoryview(data)])

    @hears(DropRequest)
    def dist_drop_request(self, asked: Asked[DropRequest]) -> None:
        """Forget a parcel; who has opened or mapped its memory still has it."""
        self._drop(asked.content.parcel)

    def _begin_parcel(self, name: str) -> SharedMemory:
        """Make room for a value; also called by the threads that pickle values."""
        if not SharedMemory.possible:
            raise OSError(errno.ENOTSUP, "this system has no memory that processes share")
        parcel = self._parcels[name] = _Parcel()
        loop = self.control_stream.io_loop
        loop.add_callback(loop.call_later, _KEPT, self._drop_if_left, name)
        return parcel.memory

    def _drop_if_left(self, name: str) -> None:
        """Forget a parcel that nobody moves any more, or look again later."""
        if parcel := self._parcels.get(name):
            left = parcel.touched + _KEPT - time.monotonic()
            if left <= 0:
                self._drop(name)
            else:
                self.control_stream.io_loop.call_later(left, self._drop_if_left, name)

    def _drop(self, name: str) -> None:
        if parcel := self._parcels.pop(name, None):
            parcel.memory.close()
