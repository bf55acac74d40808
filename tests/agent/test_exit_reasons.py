"""The words for a rank's end."""

from __future__ import annotations

import signal

import pytest

from jupyter_dist_server.agent.ranks.exit_reasons import exit_words
from jupyter_dist_server.common.processes import control_groups


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


def test_a_kill_is_for_lack_of_memory_if_the_control_group_counts_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = iter([1, 1, 2, None])
    monkeypatch.setattr(control_groups, "_oom_kills", lambda: next(counts))
    memory = control_groups.MemoryWatch()
    assert memory.explain() == ""
    assert "oom_kill counter" in memory.explain()
    assert memory.explain() == ""
