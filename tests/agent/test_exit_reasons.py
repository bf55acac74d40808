"""The words for a rank's end."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from jupyter_dist_server.agent.ranks.exit_reasons import exit_words
from jupyter_dist_server.common.processes.memory_watch import MemoryWatch


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "exited with code 0"),
        (3 << 8, "exited with code 3"),
        (signal.SIGKILL, "killed by signal 9 (SIGKILL)"),
        (signal.SIGSEGV | 0x80, "killed by signal 11 (SIGSEGV)"),
        (signal.SIGRTMIN + 1, f"killed by signal {signal.SIGRTMIN + 1} (a real-time signal)"),
    ],
)
def test_an_exit_status_in_words(status: int, words: str) -> None:
    assert exit_words(status) == words


def kernel_log(path: Path, pid: int, age: float) -> Path:
    """Write one record as `/dev/kmsg` gives it."""
    message = f"Out of memory: Killed process {pid} (python) total-vm:5280kB, anon-rss:4120kB"
    moment = time.clock_gettime(time.CLOCK_MONOTONIC) - age
    path.write_text(f"3,1045,{moment * 1e6:.0f},-;{message}\n SUBSYSTEM=memory\n")
    return path


def test_the_kernel_log_tells_who_was_killed_for_lack_of_memory(tmp_path: Path) -> None:
    log = kernel_log(tmp_path / "kmsg", 4711, age=5)
    said = MemoryWatch(log).explain(4711, age=60)
    assert said.startswith(", out of memory: Out of memory: Killed process 4711 (python)")
    assert "SUBSYSTEM" not in said
    assert MemoryWatch(log).explain(471, age=60) == ""


def test_an_older_process_of_the_same_number_is_another(tmp_path: Path) -> None:
    log = kernel_log(tmp_path / "kmsg", 4711, age=5)
    assert MemoryWatch(log).explain(4711, age=1) == ""


def test_without_a_kernel_log_nothing_is_made_up(tmp_path: Path) -> None:
    assert MemoryWatch(tmp_path / "none").explain(os.getpid(), age=60) == ""
