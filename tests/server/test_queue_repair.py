"""Jobs whose runner was killed: the server only reads the queue, and has a dispatcher repair it."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest

from jupyter_dist_server.jobs.start_dispatcher import take_lock

from ..server_driver import Server
from ..waiting import wait_for
from .client import Client


def test_a_get_only_reads_and_a_dispatcher_repairs(client: Client, server: Server) -> None:
    body = {"command": ["sleep", "1000"], "cpus": 0}
    label = client.post("jobs", body, 201)["jobs"][0]["label"]

    def state() -> str:
        (job,) = client.get(f"jobs/{label}")["jobs"]
        return str(job["state"])

    wait_for(lambda: state() == "RUNNING", "the start")
    (path,) = Path(server.env["XDG_STATE_HOME"]).glob("jupyter-dist/*/queue.db")
    with closing(sqlite3.connect(path)) as db, wait_for(lambda: take_lock(path.parent), "the lock"):
        (pid,) = db.execute("SELECT runner_pid FROM jobs WHERE id = ?", (label,)).fetchone()
        psutil.Process(pid).kill()
        wait_for(lambda: not psutil.pid_exists(pid), "the runner's end")
        before = db.execute("PRAGMA data_version").fetchone()
        for route in ("jobs", "queue"):
            client.get(route)
        assert state() == "RUNNING", "nobody has repaired it"
        assert db.execute("PRAGMA data_version").fetchone() == before
    wait_for(lambda: state() == "NODE_FAIL", "the repair")


@pytest.mark.parametrize(
    ("name", "is_named"),
    [
        ("dist-dispatcher", "The dispatcher (pid {pid}) is stopped and starts no job."),
        ("dist-runner", "The runner of job {job} (pid {pid}) is stopped and does not end it."),
    ],
)
def test_a_stopped_process_is_named_as_in_a_terminal(
    client: Client, server: Server, name: str, is_named: str
) -> None:
    runs = {"command": ["sleep", "1000"], "cpus": 0}
    later = {"command": ["true"], "cpus": 0, "begin": "now+1hour"}
    job, waits = (client.post("jobs", body, 201)["jobs"][0]["label"] for body in (runs, later))
    state = server.env["XDG_STATE_HOME"]

    def found() -> list[psutil.Process]:
        ours = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.name() == name and process.environ()["XDG_STATE_HOME"] == state:
                    ours.append(process)
        return ours

    wait_for(lambda: client.get(f"jobs/{job}")["jobs"][0]["state"] == "RUNNING", "the start")
    wait_for(lambda: client.get(f"jobs/{waits}")["jobs"][0]["reason"] == "BeginTime", "a look")
    assert client.get("queue")["notices"] == []
    wait_for(lambda: len(found()) == 1, "the end of those of earlier jobs")
    (process,) = found()
    process.send_signal(signal.SIGSTOP)
    wait_for(lambda: process.status() == psutil.STATUS_STOPPED, "its stop")
    told = is_named.format(pid=process.pid, job=job)
    answers = [
        client.get("queue"),
        client.get("jobs"),
        client.get(f"jobs/{job}"),
        client.post("jobs", later, 201),
        client.call("DELETE", f"jobs/{job}?now=1").body,
    ]
    for answer in answers:
        (notice,) = answer["notices"]
        assert notice.startswith(told) and f"kill -CONT {process.pid}" in notice
    process.send_signal(signal.SIGCONT)
    wait_for(lambda: client.get(f"jobs/{job}")["jobs"][0]["state"] == "CANCELLED", "the cancel")
    assert client.get("queue")["notices"] == []
    for label in (waits, answers[3]["jobs"][0]["label"]):
        client.call("DELETE", f"jobs/{label}")
