"""Memory that processes share counts once."""

from __future__ import annotations

import mmap
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from jupyter_dist_server.common.processes.process_memory import ProcessMemory

SIZE = 64 << 20


@contextmanager
def forked(count: int) -> Iterator[list[psutil.Process]]:
    """Fork processes that wait until they are killed."""
    pids = []
    for _ in range(count):
        if (pid := os.fork()) == 0:
            signal.pause()
        pids.append(pid)
    try:
        yield [psutil.Process(pid) for pid in pids]
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="no other system tells it")
def test_pages_of_forked_processes_count_once() -> None:
    with mmap.mmap(-1, SIZE, mmap.MAP_PRIVATE) as pages:
        pages.write(b"x" * SIZE)
        with forked(7) as processes:
            resident = sum(process.memory_info().rss for process in processes)
            memories = [ProcessMemory(process) for process in processes]
            total = sum(memory.read() for memory in memories)
            assert resident >= 7 * SIZE
            # The eighth part of each is the test's own.
            assert 0.8 * SIZE < total < 3 * SIZE + resident / 7
            again = sum(memory.read() for memory in memories)
            assert abs(again - total) < SIZE / 8


def test_a_process_that_has_ended_has_none() -> None:
    with forked(1) as (process,):
        memory = ProcessMemory(process)
        assert memory.read() > 0
    with pytest.raises(psutil.NoSuchProcess):
        memory.read()
