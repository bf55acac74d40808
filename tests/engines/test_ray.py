"""What is said if the child that asks Ray for its nodes gives no answer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.patience import patience
from jupyter_dist_server.engines.ray import Ray


def refusal(folder: Path, script: str, **environment: str) -> DistError:
    """Return why nodes are not known where a script is the notebook's Python."""
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    with pytest.raises(DistError) as refused:
        Ray().nodes({"PATH": os.defpath, **environment}, str(python))
    assert refused.value.code == "engine_failed"
    return refused.value


def test_a_cluster_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "factor", 0.5 / 60)
    refused = refusal(tmp_path, "exec sleep 600", RAY_ADDRESS="10.0.0.1:6379")
    assert refused.message == "The Ray cluster at 10.0.0.1:6379 did not answer within 0.5 s."
    assert "Run “ray status” on this machine. If that fails too, start Ray again" in refused.hint
    message = refusal(tmp_path, "exec sleep 600").message
    assert message == "The Ray cluster did not answer within 0.5 s."


def test_the_last_words_of_the_child_are_shown(tmp_path: Path) -> None:
    words = "echo Traceback >&2; echo 'ValueError: no address.' >&2; echo >&2; exit 3"
    ended = "The process that asks Ray for its nodes ended with"
    assert refusal(tmp_path, words).message == f"{ended} exit code 3: ValueError: no address."
    assert refusal(tmp_path, "kill -9 $$").message == f"{ended} signal 9."
    python = tmp_path / "missing"
    with pytest.raises(DistError, match="Python cannot be started to ask Ray"):
        Ray().nodes({}, str(python))
