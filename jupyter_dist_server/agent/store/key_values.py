"""What a pool's store holds, with the semantics of torch's ``TCPStore``."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from ...common.protocol.store_messages import StoreReply, StoreRequest


class KeyValues:
    """Values by key, and who waits for a key."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._awaited: dict[str, asyncio.Event] = {}

    async def answer(self, request: StoreRequest) -> StoreReply:
        """Do what a rank asks; `get` and `wait` last until their keys are there."""
        keys, values = request.keys, request.values
        if request.do in ("get", "wait"):
            if missing := await self._missing_after(keys, request.seconds):
                waited = f"wait timeout after {request.seconds * 1000:.0f}ms"
                return StoreReply(failure=f"{waited}, keys: {', '.join(missing)}")
            return StoreReply([self._values[key] for key in keys] if request.do == "get" else [])
        if request.do == "check":
            return StoreReply(number=int(all(key in self._values for key in keys)))
        if request.do == "delete":
            return StoreReply(number=sum(self._values.pop(key, None) is not None for key in keys))
        if request.do == "list":
            return StoreReply(number=len(self._values), keys=[*self._values])
        if request.do == "add":
            total = int(self._values.get(keys[0], b"0")) + request.number
            self._set(keys[0], str(total).encode())
            return StoreReply(number=total)
        if request.do == "compare_set":
            return StoreReply([self._compare_set(keys[0], values)])
        for key, value in zip(keys, values, strict=True):
            self._set(key, self._values.get(key, b"") + value if request.do == "append" else value)
        return StoreReply()

    def _compare_set(self, key: str, values: Sequence[bytes]) -> bytes:
        expected, desired = values
        if self._values.get(key, b"") == expected:
            self._set(key, desired)
        # torch's store answers what was expected if there is nothing else.
        return self._values.get(key, expected)

    def _set(self, key: str, value: bytes) -> None:
        self._values[key] = value
        if awaited := self._awaited.pop(key, None):
            awaited.set()

    async def _missing_after(self, keys: Collection[str], seconds: float) -> list[str]:
        """Wait for keys; return those that did not come."""
        try:
            await asyncio.wait_for(self._wait(keys), seconds)
        except asyncio.TimeoutError:
            return [key for key in keys if key not in self._values]
        return []

    async def _wait(self, keys: Collection[str]) -> None:
        while missing := next((key for key in keys if key not in self._values), None):
            await self._awaited.setdefault(missing, asyncio.Event()).wait()
