"""One factor scales all limits, here and in the processes that we start."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from jupyter_dist_server.common.patience import VARIABLE, Patience

_PRINT = "from jupyter_dist_server.common.patience import patience; print(patience.answer)"


def _answer_of_child() -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _PRINT], capture_output=True, text=True, check=True, timeout=60
    )


def test_the_factor_scales_here_and_in_processes_started_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    patience = Patience(1.0)
    assert patience.answer == 1.0
    patience.set(2.5)
    assert patience.answer == 2.5
    assert os.environ[VARIABLE] == "2.5"
    assert _answer_of_child().stdout == "2.5\n"


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf"])
def test_another_value_is_named_and_not_used(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
    child = _answer_of_child()
    assert child.stdout == "1.0\n"
    assert f"JUPYTER_DIST_PATIENCE is '{text}', not a number from 0.01 to 100" in child.stderr
