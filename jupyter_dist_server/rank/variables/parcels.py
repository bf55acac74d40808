"""Large values on their way from and to other nodes, in memory that ranks here can share."""

from __future__ import annotations

import errno
import math
import mmap
import os
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...common.pickling import Packed, SharedMemory, pieces, shared_size, write_piece
from ...common.protocol.ranks.parcel_messages import (
    DropRequest,
    LoadReply,
    LoadRequest,
    StoreReply,
    StoreRequest,
)
from ..request_handlers import Asked, hears

_KEPT = 60.0
"""Seconds for which a parcel is kept without a request: its client was killed."""
_LARGEST_PIECE = 64 << 20
_COPIED_AT_ONCE = 4 << 20  # bytes that are copied before the parcel can be sent so far, or dropped


@dataclass
class _Parcel:
    memory: SharedMemory
    there: float = math.inf
    """Up to which byte it is written, while a value is copied into it."""
    waiting: list[Asked[LoadRequest]] = field(default_factory=list)
    """The requests for pieces that are not written yet."""
    touched: float = field(default_factory=time.monotonic)

    @cached_property
    def content(self) -> memoryview:
        """All of it; a view of a part keeps it mapped."""
        return memoryview(mmap.mmap(self.memory.descriptor, 0, access=mmap.ACCESS_READ))

    def refuse(self) -> None:
        """Refuse the waiting requests."""
        for asked in self.waiting:
            asked.reply(LoadReply(False))
        self.waiting.clear()


class ParcelHandlers:
    """What `RankKernel` answers on its control channel, to move values piece by piece."""

    control_stream: Any

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._parcels: dict[str, _Parcel] = {}
        self._dropped: deque[str] = deque(maxlen=64)
        """The names of parcels that were dropped before they existed."""
        self._keeping = threading.Lock()
        """Held while parcels are added or dropped, as that is done in several threads."""

    @hears(StoreRequest)
    def dist_store_request(self, asked: Asked[StoreRequest]) -> None:
        """Keep a piece."""
        piece = asked.content
        try:
            if piece.parcel not in self._parcels:
                if piece.offset:  # the first pieces are gone
                    asked.reply(StoreReply(None, "the parcel was dropped"))
                    return
                memory = _new_memory()
                self._add(piece.parcel, _Parcel(memory))
                os.ftruncate(memory.descriptor, piece.size)
            parcel = self._parcels[piece.parcel]
            parcel.touched = time.monotonic()
            for buffer in asked.message["buffers"]:
                write_piece(parcel.memory.descriptor, memoryview(buffer), piece.offset)
        except OSError as error:  # no memory is left, or no descriptor
            self._drop(piece.parcel)
            asked.reply(StoreReply(None, str(error.strerror)))
        else:
            asked.reply(StoreReply(parcel.memory.address))

    @hears(LoadRequest)
    def dist_load_request(self, asked: Asked[LoadRequest]) -> None:
        """Send a piece, as soon as it is written."""
        self._load(asked)

    def _load(self, asked: Asked[LoadRequest]) -> None:
        piece = asked.content
        if not (parcel := self._parcels.get(piece.parcel)):
            asked.reply(LoadReply(False))
            return
        parcel.touched = time.monotonic()
        size = min(piece.size, _LARGEST_PIECE)
        if parcel.there < piece.offset + size:
            parcel.waiting.append(asked)
            return
        try:
            data = parcel.content[piece.offset : piece.offset + size]
        except OSError:  # it cannot be mapped
            asked.reply(LoadReply(False))
        else:
            asked.reply(LoadReply(True), [data])

    @hears(DropRequest)
    def dist_drop_request(self, asked: Asked[DropRequest]) -> None:
        """Forget a parcel; processes that have opened or mapped its memory keep it."""
        self._drop(asked.content.parcel, or_later=True)

    def _keep(self, name: str, packed: Packed) -> bool:
        """Begin to make a parcel of a value, in another thread; false if it was dropped before."""
        parcel = _Parcel(_new_memory(), there=0)
        with self._keeping:
            if is_wanted := name not in self._dropped:
                self._add(name, parcel)
        if is_wanted:
            threading.Thread(target=self._copy, args=(name, parcel, packed), daemon=True).start()
        else:
            parcel.memory.close()
        return is_wanted

    def _copy(self, name: str, parcel: _Parcel, packed: Packed) -> None:
        """Write a value into its parcel, which only this thread closes meanwhile."""
        tell = self.control_stream.io_loop.add_callback
        try:
            os.ftruncate(parcel.memory.descriptor, shared_size(packed.sizes))
            for offset, piece in pieces(packed.buffers, _COPIED_AT_ONCE):
                write_piece(parcel.memory.descriptor, piece, offset)
                if not self._is_there(name, parcel, offset + piece.nbytes):
                    return
                tell(self._load_waiting, name)
            if self._is_there(name, parcel, math.inf):  # including the padding
                tell(self._load_waiting, name)
        except OSError:  # no memory is left
            with self._keeping:
                self._parcels.pop(name, None)
            parcel.memory.close()
            tell(parcel.refuse)

    def _is_there(self, name: str, parcel: _Parcel, end: float) -> bool:
        """Note up to where a parcel is written, or close it if it was dropped."""
        with self._keeping:
            if is_wanted := name in self._parcels:
                parcel.there = end
        if not is_wanted:
            parcel.memory.close()
        return is_wanted

    def _load_waiting(self, name: str) -> None:
        if parcel := self._parcels.get(name):
            waiting, parcel.waiting = parcel.waiting, []
            for asked in waiting:
                self._load(asked)

    def _add(self, name: str, parcel: _Parcel) -> None:
        self._parcels[name] = parcel
        loop = self.control_stream.io_loop
        loop.add_callback(loop.call_later, _KEPT, self._drop_if_left, name)

    def _drop_if_left(self, name: str) -> None:
        """Forget a parcel without requests, or look again later."""
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
            if parcel.there == math.inf:  # else the thread that writes it closes it
                parcel.memory.close()
            parcel.refuse()


def _new_memory() -> SharedMemory:
    if not SharedMemory.possible:
        raise OSError(errno.ENOTSUP, "this system has no memory that processes share")
    return SharedMemory()
