"""Waits until files in folders change; without inotify, by looking every second."""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Iterable
from pathlib import Path

from ..common.background_tasks import within
from ..common.files import inotify
from ..common.files.shared_folder import HIDDEN

_EVENTS = inotify.MODIFY | inotify.ATTRIB | inotify.CLOSE_WRITE | inotify.MOVED_TO
_EVENTS |= inotify.DELETE | inotify.DELETE_SELF


class Wake:
    """Waits for changes in folders, and for other descriptors."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._poll = select.poll()
        self._folders = dict.fromkeys(folders)
        self._watches: dict[Path, int] = {}
        self.watches = False
        """Whether changes wake us, or only time does."""
        self._events: inotify.Inotify | None = None
        with contextlib.suppress(OSError):
            self._events = inotify.Inotify()
            self._poll.register(self._events, select.POLLIN)
        self._watch()

    def watch(self, folder: Path | str) -> bool:
        """Watch another folder too; return whether that is possible."""
        self._folders[Path(folder)] = None
        self._watch()
        if Path(folder) not in self._watches:
            self.unwatch(folder)
            return False
        return True

    def unwatch(self, folder: Path | str) -> None:
        """Stop watching a folder."""
        self._folders.pop(Path(folder), None)
        watch = self._watches.pop(Path(folder), None)
        if self._events and watch is not None:
            self._events.unwatch(watch)
        self._watch()

    @property
    def descriptor(self) -> int | None:
        """What becomes readable after a change, for an event loop; `None` without inotify."""
        return self._events.fileno() if self._events else None

    def drain(self) -> None:
        """Forget all changes so far."""
        self._has_news()

    def _watch(self) -> bool:
        """Watch all folders as they are now; return whether one is another than before."""
        before = dict(self._watches)
        self._watches.clear()
        if self._events:
            for folder in self._folders:
                with contextlib.suppress(OSError):
                    self._watches[folder] = self._events.watch(folder, _EVENTS)
        self.watches = self._watches.keys() == self._folders.keys()
        return bool(self._watches.items() - before.items())

    def add(self, descriptor: int) -> None:
        """Wake when a descriptor becomes readable, too."""
        self._poll.register(descriptor, select.POLLIN)

    def remove(self, descriptor: int) -> None:
        """Stop waiting for a descriptor."""
        self._poll.unregister(descriptor)

    def wait(self, seconds: float | None) -> set[int]:
        """Wait for a change; return the descriptors that are readable."""
        deadline = None if seconds is None else time.monotonic() + seconds
        events = self._events.fileno() if self._events else -1
        while not self._watch():
            left = self._left(deadline)
            timeout = None if left is None else max(0, round(left * 1000) + 1)
            ready = {descriptor for descriptor, _ in self._poll.poll(timeout)}
            if ready - {events} or not ready or self._has_news():
                return ready - {events}
        return set()

    async def changed(self, seconds: float | None) -> None:
        """Wait for a change in an event loop."""
        import asyncio  # not above: commands in a terminal do without

        deadline = None if seconds is None else time.monotonic() + seconds
        loop, readable = asyncio.get_running_loop(), asyncio.Event()
        if self._events:
            loop.add_reader(self._events, readable.set)
        try:
            while not self._watch() and not self._has_news():
                readable.clear()
                await within(readable.wait(), self._left(deadline))
        except asyncio.TimeoutError:
            return
        finally:
            if self._events:
                loop.remove_reader(self._events)

    def _left(self, deadline: float | None) -> float | None:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        left = left and min(left, 86_400.0)  # `poll` cannot wait for more than 24 days
        if self.watches:
            return left
        return 1.0 if left is None else min(left, 1.0)

    def _has_news(self) -> bool:
        """Read what has changed; files without a name yet are no news."""
        events = self._events.read() if self._events else []
        return any(not name.startswith(HIDDEN) for _, _, name in events)

    def close(self) -> None:
        """Stop watching."""
        if self._events:
            self._events.close()
