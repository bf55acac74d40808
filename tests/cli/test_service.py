"""Waiting jobs start after a restart: a unit of systemd, or a line in the crontab."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ..jobs.queue_driver import Queue

CRONTAB = '#!/bin/sh\n[ "$1" = -l ] && exec cat {file}\nexec cat > {file}\n'


@pytest.fixture
def programs(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = queue.folder / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(queue.folder / "config"))
    return folder


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def test_a_unit(queue: Queue, programs: Path) -> None:
    for name in ("systemctl", "loginctl"):
        program(programs / name, f'#!/bin/sh\necho "$0 $@" >> {queue.folder / "calls"}\n')
    assert "Installed" in queue.run("service", "install")
    (unit,) = (queue.folder / "config/systemd/user").glob("*.service")
    text = unit.read_text()
    assert "KillMode=process" in text and f"XDG_STATE_HOME={queue.folder}" in text
    job = queue.submit("-H", "true")
    queue.run("release", job)
    command = next(line for line in text.splitlines() if line.startswith("ExecStart="))
    subprocess.run(["sh", "-c", command.removeprefix("ExecStart=")], check=True, timeout=60)
    assert queue.ended(job)["state"] == "COMPLETED"
    queue.run("service", "remove")
    assert not unit.exists()
    calls = (queue.folder / "calls").read_text()
    assert "--user enable" in calls and "--user disable" in calls and "enable-linger" in calls


def test_a_crontab(queue: Queue, programs: Path) -> None:
    file = queue.folder / "crontab"
    file.write_text("0 5 * * * backup\n")
    program(programs / "systemctl", "#!/bin/sh\nexit 1\n")
    program(programs / "crontab", CRONTAB.format(file=file))
    queue.run("service", "install")
    queue.run("service", "install")
    lines = file.read_text().splitlines()
    assert lines[0] == "0 5 * * * backup" and len(lines) == 2
    assert lines[1].startswith("@reboot env XDG_STATE_HOME=")
    queue.run("service", "remove")
    assert file.read_text() == "0 5 * * * backup\n"


def test_the_first_submission_says_what_becomes_of_jobs_after_a_restart(queue: Queue) -> None:
    assert "jdist service install" in queue.run("submit", "-H", "true")
    assert "jdist service install" not in queue.run("submit", "-H", "true")


def test_it_does_not_ask_for_what_is_installed(queue: Queue, programs: Path) -> None:
    program(programs / "crontab", CRONTAB.format(file=queue.folder / "crontab"))
    program(programs / "systemctl", "#!/bin/sh\nexit 1\n")
    queue.run("service", "install")
    assert "jdist service install" not in queue.run("submit", "-H", "true")
