"""What the administrator should change is said when the server starts."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from jupyter_dist_server.server.weak_settings import weak_points

from ..server_driver import Server

pytestmark = pytest.mark.stranger


def test_weak_points_of_the_machine_are_told_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("protected_symlinks", "protected_hardlinks"):
        weak = Path("/proc/sys/fs", name).read_text().strip() == "0"
        assert any(name in sentence for sentence in weak_points()) == weak
    assert not any(str(tmp_path) in sentence for sentence in weak_points())
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="jo-") as everybodys:
        Path(everybodys).chmod(0o777)
        monkeypatch.setattr(tempfile, "tempdir", everybodys)
        told = weak_points()
        assert any("chmod +t" in sentence and everybodys in sentence for sentence in told)
        server = Server(tmp_path / "home", tmp_path, TMPDIR=everybodys)
        server.close()
        log = "".join(server.log)
        assert all(sentence in log for sentence in told)
