"""What threatens jobs is found, and said with what to do about it."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from jupyter_dist_server.cli.doctor import disk, inotify, logout, policy, service
from jupyter_dist_server.common.policy import PATH
from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_folder import store_folder

from ..jobs.queue_driver import JDIST, Queue
from ..waiting import PATIENCE, wait_for


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_logout(tmp_path: Path) -> None:
    assert "does not use systemd" in logout("ann", tmp_path).what
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    assert logout("ann", tmp_path).ok
    write(tmp_path / "etc/systemd/logind.conf", "[Login]\n#KillUserProcesses=no\n")
    write(tmp_path / "etc/systemd/logind.conf.d/a.conf", "[Login]\nKillUserProcesses=yes\n")
    found = logout("ann", tmp_path)
    assert not found.ok and "enable-linger" in found.remedy
    assert logout("root", tmp_path).ok  # KillExcludeUsers
    write(tmp_path / "var/lib/systemd/linger/ann")
    assert logout("ann", tmp_path).ok


_KILLS = """
mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && mount -t tmpfs tmpfs /etc/systemd &&
printf '[Login]\\nKillUserProcesses=yes\\nKillExcludeUsers=\\n' > /etc/systemd/logind.conf &&
exec "$@"
"""


@pytest.mark.root
def test_who_submits_where_a_logout_ends_jobs_is_told_so(queue: Queue) -> None:
    """In a namespace where systemd runs, as far as anybody can see."""
    if not Path("/etc/systemd").is_dir():
        pytest.skip("there is no place for systemd's settings")
    inside = ["unshare", "--mount", "sh", "-ec", _KILLS, "sh"]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("namespaces cannot be made here")
    command = [*inside, sys.executable, "-c", JDIST, "submit", "-H", "true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == "Submitted job 1.\n"
    told = "jdist: Jobs end when you log out: KillUserProcesses is on. Run loginctl enable-linger"
    assert told in done.stderr


@pytest.mark.parametrize(
    ("group", "ok"),
    [
        ("/user.slice/user-1000.slice/session-3.scope", True),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope", True),
        ("/system.slice/jupyterhub.service", False),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/lab.service", False),
        ("/", True),
    ],
)
def test_a_service_ends_its_jobs(group: str, ok: bool) -> None:
    assert service(f"0::{group}\n").ok is ok


def test_a_home_of_several_machines(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        write(tmp_path / name / "queue.db")
    told = [finding.what for finding in disk(tmp_path / "one")]
    assert "2 other machines with this home have queues of their own." in told


@pytest.mark.parametrize(
    ("parent", "ok", "remedy"),
    [("/tmp", False, "Set XDG_STATE_HOME"), ("/var/tmp", True, "/etc/tmpfiles.d")],
)
def test_a_folder_that_the_system_cleans(parent: str, ok: bool, remedy: str) -> None:
    with TemporaryDirectory(dir=parent) as folder:
        (found,) = [one for one in disk(Path(folder)) if "may be cleaned up" in one.what]
    assert found.ok is ok and remedy in found.remedy


def test_changes_that_are_not_noticed_at_once(queue: Queue) -> None:
    with closing(Store(store_folder())) as store:
        assert inotify(store).ok
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        free = os.open(os.devnull, os.O_RDONLY)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
        try:
            found = inotify(store)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert not found.ok and "max_user_watches" in found.remedy


def test_a_stopped_dispatcher_is_named(queue: Queue) -> None:
    job = queue.submit("--begin", "now+1hour", "true")
    wait_for(lambda: queue.show(job)["reason"] == "BeginTime", "the dispatcher's work")
    wait_for(lambda: len(queue.processes("dist-dispatcher")) == 1, "one that has the lock")
    (process,) = queue.processes("dist-dispatcher")
    process.send_signal(signal.SIGSTOP)
    wait_for(lambda: process.status() == "stopped", "its stop")
    said = json.loads(queue.run("doctor", "--json", code=1))
    (found,) = [one for one in said if "The dispatcher" in one["what"]]
    assert str(process.pid) in found["what"] and "kill -CONT" in found["remedy"]
    told = f"jdist: {found['what']} {found['remedy']}"
    for command, code in (
        (["queue"], 0),
        (["wait", "--timeout", "0", job], 124),
        (["submit", "-c", "0", "true"], 0),
    ):
        assert queue.run(*command, code=code).splitlines().count(told) == 1, command
    following = subprocess.Popen(
        [sys.executable, "-c", JDIST, "run", "-c", "0", "true"], stderr=subprocess.PIPE, text=True
    )
    with following:
        assert following.stderr
        assert told in [following.stderr.readline().rstrip("\n") for _ in range(2)]
        process.kill()
        assert following.wait(PATIENCE) == 0, "a command that waits starts another dispatcher"
    queue.run("cancel", job)


def test_a_stopped_runner_is_named(queue: Queue) -> None:
    job = queue.submit("-c", "0", "sleep", "1000")
    # At first, its process is the runner's copy.
    wait_for(lambda: queue.processes("sleep"), "the job's process")
    (process,) = queue.processes("dist-runner")
    process.send_signal(signal.SIGSTOP)
    wait_for(lambda: process.status() == "stopped", "its stop")
    said = json.loads(queue.run("doctor", "--json", code=1))
    (found,) = [one for one in said if "The runner" in one["what"]]
    assert f"job {job} (pid {process.pid})" in found["what"] and "kill -CONT" in found["remedy"]
    told = f"jdist: {found['what']} {found['remedy']}"
    for command, code in (
        (["queue"], 0),
        (["cancel", job], 0),
        (["wait", "--timeout", "0", job], 124),
    ):
        assert queue.run(*command, code=code).splitlines().count(told) == 1, command
    process.send_signal(signal.SIGCONT)
    assert queue.ended(job)["state"] == "CANCELLED"
    assert told not in queue.run("queue")


def test_a_queue_of_another_machine_is_not_shown(queue: Queue) -> None:
    queue.submit("-H", "true")
    here = store_folder()
    here.rename(here.with_name("elsewhere"))
    assert json.loads(queue.run("queue", "--json")) == []
    assert "1 other machine" in queue.run("queue")


def test_a_policy_that_limits_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "policy.toml"
    monkeypatch.setenv(PATH, str(path))
    assert not [*policy()]
    path.write_text('max_time = "2:00:00"\n')
    assert not [*policy()]
    for line in ("max_time = 120", 'default_time = "soon"', 'max_time = "2:00:00', "other = 1"):
        path.write_text(f"# limits\n{line}\n")
        (found,) = policy()
        assert not found.ok and f"{path} is wrong, and so limits nothing: " in found.what
    path.unlink()
    path.mkdir()
    (found,) = policy()
    assert "cannot be read" in found.what
    path.rmdir()
    (tmp_path / "closures.json").write_text("[1]")
    (found,) = policy()
    assert "closures.json cannot be read, and so closes no GPU" in found.what
