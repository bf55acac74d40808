"""Everything a rank prints, also from C and from subprocesses, in order, without ever blocking.

A pipe would do, were it not that somebody has to read it: C code that holds Python's lock while it
writes more than 64 KiB would wait for a reader that waits for the lock. So file descriptors 1 and 2
point to files in memory, which take any amount; what was read is punched out of them again, but
for the last of it.
"""

from __future__ import annotations

import codecs
import ctypes
import os
import tempfile
import threading
import time
from typing import Any

from ...common.protocol.agents.rank_start import STDERR_KEPT, STDERR_START_BYTES
from ...common.protocol.jupyter_messages import Content
from ..ipykernel_internals import BaseStream
from .outbox import Outbox

_LIBC = ctypes.CDLL(None, use_errno=True)
_IN_MODIFY = 0x2
_PUNCH_HOLE = 0x1 | 0x2  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
_FREE_EVERY = 1 << 20
_POLL = 0.05
_WATCHED = 16
"""Up to how many ranks of a pool learn of each write at once, by inotify; of more, each looks 20
times a second. By default a user may have 128 instances, for all programs together."""
_seek = os.lseek
_PAUSE = 0.005
_WAS_READ = b"\0"


class MemoryFile:
    """An append-only file without a name: writers never block, readers follow the end.

    `descriptor` is for writing; it may be duplicated onto 1 or 2 and inherited by subprocesses.
    `content` is for reading, by the agent too; what lies before `offset` was read here.
    A program that truncates it (``> /dev/stdout`` in a shell) loses what was not read yet. That it
    did so the first byte tells, which is zero where the file was read before: its size may be any.
    """

    def __init__(self, name: str) -> None:
        if hasattr(os, "memfd_create"):
            self.content = os.memfd_create(name)
            path = f"/proc/self/fd/{self.content}"
            self.descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
            self._frees = True
        else:  # macOS
            self.content, path = tempfile.mkstemp(prefix=name)
            self.descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
            os.unlink(path)
            self._frees = False
        self.offset = os.write(self.descriptor, _WAS_READ)
        self._freed = 0
        self.was_truncated = False
        """Whether a program did that: then its size alone does not tell whether there is news."""

    @property
    def has_news(self) -> bool:
        """Whether something was written since the last call of `read_new`."""
        size = _seek(self.content, 0, os.SEEK_END)
        return size != self.offset or self._is_anew

    @property
    def _is_anew(self) -> bool:
        return os.pread(self.content, 1, 0) not in (_WAS_READ, b"")

    def read_new(self) -> bytes:
        """Return what was written since the last call; never blocks."""
        size = _seek(self.content, 0, os.SEEK_END)
        if size < self.offset or self._is_anew:
            self.offset = self._freed = 0
            self.was_truncated = True
        if size == self.offset:
            return b""
        content = os.pread(self.content, size - self.offset, self.offset)
        if content and not self.offset:
            os.pwrite(self.content, _WAS_READ, 0)
        self.offset += len(content)
        if self._frees and self.offset - self._freed > _FREE_EVERY:
            start, length = self._freed, self.offset - STDERR_KEPT - self._freed
            begin = ctypes.c_long(start)
            _LIBC.fallocate(self.content, _PUNCH_HOLE, begin, ctypes.c_long(length))
            self._freed = start + length
        return content


class Writes:
    """Waits for what is written to a rank's files in memory: one inotify instance for all."""

    def __init__(self, files: list[MemoryFile]) -> None:
        self._files = files
        self._events = -1
        if hasattr(os, "memfd_create") and int(os.environ["WORLD_SIZE"]) <= _WATCHED:
            self._watch()

    def _watch(self) -> None:
        # The system allows only so many instances and watches; without one we look now and then.
        events = _LIBC.inotify_init1(os.O_CLOEXEC)
        paths = [f"/proc/self/fd/{file.content}".encode() for file in self._files]
        if all(_LIBC.inotify_add_watch(events, path, _IN_MODIFY) >= 0 for path in paths):
            self._events = events
        elif events >= 0:
            os.close(events)

    def wait(self) -> None:
        """Block until something may have been written."""
        if self._events >= 0:
            os.read(self._events, 4096)
        else:
            while not any(file.has_news for file in self._files):
                time.sleep(_POLL)


class RankStream(BaseStream):
    """`sys.stdout` or `sys.stderr` of a rank, taking in its file descriptor as well."""

    def __init__(self, session: Any, pub_thread: Any, name: str, **options: Any) -> None:
        super().__init__(session, pub_thread, name, **options)
        self._descriptor = {"stdout": 1, "stderr": 2}[name]
        self.captured = MemoryFile(f"rank-{name}")
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._outbox: Outbox = pub_thread.outbox
        self._both: list[RankStream] = pub_thread.captured
        self._both.append(self)
        self._alone = [self]
        self._forked = False
        self.cell_start = _unnamed_file(f"rank-{name}-cell")
        """A file with where in `captured` the cell that runs, or ran last, began to write."""
        self._started_at = 0
        os.register_at_fork(after_in_child=self._begin_anew)
        os.dup2(self.captured.descriptor, self._descriptor)
        if len(self._both) == 2:  # stderr is made after stdout
            threading.Thread(
                target=_follow, args=(self._both,), name="capture", daemon=True
            ).start()

    def set_parent(self, parent: Content) -> None:
        """Note whose request is dealt with; what C code writes belongs to the main thread's."""
        if threading.current_thread() is threading.main_thread():
            super().set_parent(parent)
        else:  # a completion, in a subshell beside a running cell
            self.set_thread_parent(parent)

    def begin_cell(self) -> None:
        """Note that what is written from now on is of another cell."""
        size = _seek(self.captured.content, 0, os.SEEK_END)
        if size != self._started_at:
            self._started_at = size
            os.pwrite(self.cell_start, size.to_bytes(STDERR_START_BYTES, "little"), 0)

    def fileno(self) -> int:
        """Return the captured descriptor, so that ``subprocess.run(stdout=sys.stdout)`` works."""
        return self._descriptor

    def write(self, string: str) -> int:
        """Write after whatever C code or a subprocess has written before."""
        __debuggerskip__ = True  # who steps over a `print` does not want to step into this
        if self._forked or self.pub_thread is None or not isinstance(string, str):
            return self._write_otherwise(string)
        with self._outbox.lock:
            # `print` writes a line's end by itself; to look at the other stream then is too dear.
            for stream in self._both if string != "\n" else self._alone:
                captured = stream.captured
                size = _seek(captured.content, 0, os.SEEK_END)
                if size != captured.offset or captured.was_truncated:
                    stream.take_in()
            if self.name == "stderr":  # where the agent finds it, should this be our last word
                os.write(self.captured.descriptor, string.encode(errors="backslashreplace"))
                self.take_in(self.parent_header)
            else:
                self._outbox.put(self.parent_header, self.name, string)
        return len(string)

    def _write_otherwise(self, string: str) -> int:
        if not isinstance(string, str):
            raise TypeError(f"write() argument must be str, not {type(string).__name__}")
        if not self._forked:
            raise ValueError("I/O operation on closed file")
        # A worker's output goes by the descriptor, which the rank follows.
        os.write(self._descriptor, string.encode(errors="replace"))
        return len(string)

    def flush(self) -> None:
        """Let what was printed be sent."""
        if not self._forked and self.pub_thread is not None:
            self.take_in()
            self._outbox.flush()

    def _begin_anew(self) -> None:
        """Be the stream of a forked worker."""
        self._forked = True
        self._outbox.forget()

    def take_in(self, parent: Content | None = None, final: bool = False) -> None:
        """Move what was written to the file descriptor into this stream.

        `parent` is the header of the cell that wrote it, by default the one that runs: a thread of
        an earlier cell that comes by must not take it for its own. With `final`, the
        rest of a character is not waited for.
        """
        with self._outbox.lock:
            if text := self._decoder.decode(self.captured.read_new(), final):
                self._outbox.put(parent or self.cell_header, self.name, text)


def _follow(streams: list[RankStream]) -> None:
    writes = Writes([stream.captured for stream in streams])
    while True:
        writes.wait()
        for stream in streams:
            stream.take_in()
        time.sleep(_PAUSE)  # many small writes must not wake us, and take Python's lock, each


def _unnamed_file(name: str) -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    descriptor, path = tempfile.mkstemp(prefix=name)  # macOS
    os.unlink(path)
    return descriptor


def take_in_everything(streams: list[RankStream]) -> None:
    """Take in all that was written so far, C's buffers included."""
    _LIBC.fflush(None)
    for stream in streams:
        stream.take_in(final=True)
