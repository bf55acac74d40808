"""All output of a rank, also from C and from subprocesses, in order, without ever blocking.

A pipe needs a reader: C code that holds the GIL while it writes more than 64 KiB would wait for a
reader that waits for the GIL. So file descriptors 1 and 2 point to files in memory without a size
limit. What was read is punched out of them again, except for the end.
"""

from __future__ import annotations

import codecs
import ctypes
import io
import os
import tempfile
import threading
import time
from contextvars import ContextVar, Token, copy_context
from functools import partial
from typing import Any

from jupyter_client.session import extract_header

from ...common.protocol.agents.rank_start import STDERR_KEPT, STDERR_START_BYTES
from ...common.protocol.jupyter_messages import Content
from ..ipykernel_internals import OutStream
from .iopub import Outbox

_LIBC = ctypes.CDLL(None, use_errno=True)
_IN_MODIFY = 0x2
_PUNCH_HOLE = 0x1 | 0x2  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
_FREE_EVERY = 1 << 20
_WATCHED = 16
"""The largest pool whose ranks use inotify; in larger ones, each rank polls 20 times a second. By
default a user may have 128 instances, for all programs together."""
_seek = os.lseek
_WAS_READ = b"\0"


class MemoryFile:
    """An append-only file without a name: writers never block, readers follow the end.

    `descriptor` is for writing; it may be duplicated onto 1 or 2 and inherited by subprocesses.
    `content` is for reading, by the agent too; what is before `offset` was read here.
    If a program truncates it (``> /dev/stdout`` in a shell), what was not read yet is lost. The
    first byte shows that, as it is zero once it was read; the size may be any.
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
        """Then its size alone does not tell whether there is news."""

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


def _watch(files: list[MemoryFile]) -> int:
    """Return a descriptor that can be read after a write to the files, or -1 without one."""
    if not hasattr(os, "memfd_create") or int(os.environ["WORLD_SIZE"]) > _WATCHED:
        return -1
    events: int = _LIBC.inotify_init1(os.O_CLOEXEC)
    paths = [f"/proc/self/fd/{file.content}".encode() for file in files]
    if all(_LIBC.inotify_add_watch(events, path, _IN_MODIFY) >= 0 for path in paths):
        return events
    if events >= 0:  # the system limits instances and watches
        os.close(events)
    return -1


class RankStream(OutStream):
    """`sys.stdout` or `sys.stderr` of a rank; it takes in its file descriptor as well."""

    line_buffering = write_through = True

    def __init__(self, session: Any, pub_thread: Any, name: str, **options: Any) -> None:
        self._header_of_thread: ContextVar[Content] = ContextVar("parent_header")
        self.cell_header: Content = {}
        """The header of the request whose cell the main thread runs."""
        super().__init__(session, pub_thread, name, **options | {"watchfd": False})
        self._descriptor = {"stdout": 1, "stderr": 2}[name]
        self.captured = MemoryFile(f"rank-{name}")
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._outbox: Outbox = pub_thread.outbox
        self._both: list[RankStream] = pub_thread.captured
        self._both.append(self)
        self._alone = [self]
        self._forked = False
        self._for_bytes: io.FileIO | None = None
        self.cell_start = _unnamed_file(f"rank-{name}-cell")
        """A file with the position in `captured` at which the last cell began to write."""
        self._started_at = 0
        os.register_at_fork(after_in_child=self._begin_anew)
        os.dup2(self.captured.descriptor, self._descriptor)
        if len(self._both) == 2:  # stderr is made after stdout
            follow = partial(_follow, self._both)
            threading.Thread(target=follow, name="capture", daemon=True).start()

    @property
    def parent_header(self) -> Content:
        """The header of the request that this thread's output belongs to."""
        return self._header_of_thread.get(self.cell_header)

    @parent_header.setter
    def parent_header(self, header: Content) -> None:
        self._header_of_thread.set(header)
        self.cell_header = header

    def set_parent(self, parent: Content) -> None:
        """Set the request of this thread's output; C code's belongs to the main thread's."""
        if threading.current_thread() is threading.main_thread():
            self.parent_header = extract_header(parent)
        else:  # a completion, in a subshell during a cell
            self.set_thread_parent(parent)

    def set_thread_parent(self, parent: Content) -> Token[Content]:
        """Set it for this thread alone."""
        return self._header_of_thread.set(extract_header(parent))

    def reset_thread_parent(self, token: Token[Content]) -> None:
        """Restore it."""
        self._header_of_thread.reset(token)

    @property
    def buffer(self) -> io.FileIO:
        """The stream for bytes, as of any program; it may be wrapped, and so closed."""
        if self._for_bytes is None or self._for_bytes.closed:
            self._for_bytes = io.FileIO(self._descriptor, "w", closefd=False)
        return self._for_bytes

    def reconfigure(self, **_: Any) -> None:
        """Accept what scripts ask for: text is in UTF-8 and sent at once in any case."""

    def begin_cell(self) -> None:
        """Note that later output belongs to another cell."""
        size = _seek(self.captured.content, 0, os.SEEK_END)
        if size != self._started_at:
            self._started_at = size
            os.pwrite(self.cell_start, size.to_bytes(STDERR_START_BYTES, "little"), 0)

    def fileno(self) -> int:
        """Return the captured descriptor, so that ``subprocess.run(stdout=sys.stdout)`` works."""
        return self._descriptor

    def write(self, string: str) -> int:
        """Write after the earlier output of C code and subprocesses."""
        __debuggerskip__ = True  # debuggers do not step from a `print` into this
        if self._forked or self.pub_thread is None or not isinstance(string, str):
            return self._write_otherwise(string)
        with self._outbox.lock:
            # `print` writes a line's end by itself; looking at the other stream then costs time.
            for stream in self._both if string != "\n" else self._alone:
                captured = stream.captured
                size = _seek(captured.content, 0, os.SEEK_END)
                if size != captured.offset or captured.was_truncated:
                    stream.take_in()
            if self.name == "stderr":  # where the agent finds it if the rank dies
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
        """Send what was printed."""
        if not self._forked and self.pub_thread is not None:
            self.take_in()
            self._outbox.flush()

    def _begin_anew(self) -> None:
        """Be the stream of a forked worker."""
        self._forked = True
        self._outbox.forget()

    def take_in(self, parent: Content | None = None, final: bool = False) -> None:
        """Move what was written to the file descriptor into this stream.

        `parent` is the header of the cell that wrote it, by default the one that runs. With
        `final`, an incomplete character is not held back.
        """
        with self._outbox.lock:
            if text := self._decoder.decode(self.captured.read_new(), final):
                self._outbox.put(parent or self.cell_header, self.name, text)


def _follow(streams: list[RankStream]) -> None:
    files = [stream.captured for stream in streams]
    events = _watch(files)
    while True:
        if events >= 0:
            os.read(events, 4096)
        else:
            while not any(file.has_news for file in files):
                time.sleep(0.05)
        for stream in streams:
            stream.take_in()
        time.sleep(0.005)  # or each of many small writes would take the GIL


def let_threads_inherit_context() -> None:
    """Give each new thread the context of its maker: it holds the cell that output belongs to.

    Only Python 3.14 has an option for this, ``-X thread_inherit_context=1``.
    """
    start = threading.Thread.start

    def start_in_context(thread: threading.Thread) -> None:
        thread.run = partial(copy_context().run, thread.run)  # type: ignore[method-assign]
        start(thread)

    threading.Thread.start = start_in_context  # type: ignore[method-assign,assignment]


def _unnamed_file(name: str) -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    descriptor, path = tempfile.mkstemp(prefix=name)  # macOS
    os.unlink(path)
    return descriptor


def take_in_everything(streams: list[RankStream]) -> None:
    """Take in all earlier output, including C's buffers."""
    _LIBC.fflush(None)
    for stream in streams:
        stream.take_in(final=True)
