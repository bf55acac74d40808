"""Jobs whose runner was killed: the server only reads the queue, and has a dispatcher repair it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psutil

from jupyter_dist_server.jobs.launch.dispatcher_lock import take_lock

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
