"""Who has had many GPUs of late comes later; and a report of what users and jobs have had."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import msgspec
import pytest

from jupyter_dist_server.common.files.past_use import Day, PastUse, average_of, note_use, past_use
from jupyter_dist_server.common.files.shared_folder import folder
from jupyter_dist_server.common.users import name_of
from jupyter_dist_server.jobs.schedule.order import in_order
from jupyter_dist_server.jobs.schedule.wants import InUse, Want
from jupyter_dist_server.jobs.usage_reader import EVERY

from ..fake_nvml.build import State
from ..waiting import wait_for
from .conftest import Child
from .queue_driver import OTHER, OtherQueue, Queue
from .test_two_users import waiting

ME = name_of(os.getuid())
WEEK = 7 * 86400.0


def test_past_use_orders_users_and_waiting_wins_in_the_end() -> None:
    now = 1_000_000.0
    ann, bob = (Want(user, user, now - age, gpus=1) for user, age in (("ann", 60), ("bob", 30)))
    order = [one.id for one in in_order([], [ann, bob], now)]
    assert order == ["ann", "bob"], "who came first"
    past = {"ann": 0.5, "bob": 0.1}
    assert [one.id for one in in_order([], [ann, bob], now, past)] == ["bob", "ann"]
    assert [one.id for one in in_order([], [ann, bob], now + 3600, past)] == ["bob", "ann"]
    held = [InUse("x", "bob", frozenset(["GPU-0"]), now)]
    assert [one.id for one in in_order(held, [ann, bob], now, past)] == ["ann", "bob"]


def test_an_average_is_halved_by_each_half_life() -> None:
    assert average_of(4, WEEK, WEEK) == 2.0
    assert average_of(4, 100 * WEEK, WEEK) == pytest.approx(4.0)
    assert average_of(4, WEEK, float("inf")) == 0.0
    assert PastUse(0.0, 4.0).average_at(2 * WEEK, WEEK) == 1.0


def test_use_is_noted_for_all_to_read(leases: Path) -> None:
    note_use(2, time.time() - 3600, idle=1800.0)
    note_use(1, time.time() - 3600, failed=True)
    (past,) = past_use().values()
    assert past
    (day,) = past.days
    assert (day.used, day.idle, day.failed) == pytest.approx((10800, 1800, 3600), abs=5)
    file = folder() / f"{os.getuid()}.use"
    assert file.stat().st_mode & 0o777 == 0o644
    file.chmod(0o640)
    note_use(1, time.time())
    assert file.stat().st_mode & 0o777 == 0o640, "as its user wants it"
    for hostile in ('{"average": -1e9}', '{"x":' + "[" * 30_000, '{"days": [["a", -1]]}'):
        file.write_text(hostile)
        assert past_use() == {os.getuid(): PastUse()}
    for name in (f"0{os.getuid()}.use", "+1.use", "x.use"):
        (folder() / name).write_text("{}")
    assert past_use().keys() == {os.getuid()}
    file.write_text("[")  # broken
    note_use(1, time.time() - 60)
    (past,) = past_use().values()
    assert past and past.days[0].used == pytest.approx(60, abs=5)


def test_jobs_and_their_idle_and_failed_hours_are_reported(
    queue: Queue, fake_nvml: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EVERY, "0.1")
    fake_nvml.write(gpus=2, memory=80 << 30, utilization=0)
    wait = "while [ ! -e go ]; do sleep 0.05; done"
    idle = queue.submit("-G", "2", "-J", "lazy", "sh", "-c", wait)
    queue.until(idle, "RUNNING")
    wait_for(lambda: any(one["usage"] for one in queue.show(idle)["attempts"]), "readings")
    (line,) = json.loads(queue.run("report", "--json"))
    assert line["name"] == ME and line["used"] > 0, "what runs counts"
    (queue.folder / "go").touch()
    queue.ended(idle)
    failed = queue.submit("-G", "1", "-J", "bad", "sh", "-c", "sleep 0.1; exit 3")
    queue.ended(failed)

    def noted() -> bool:
        (line,) = json.loads(queue.run("report", "--json"))
        return bool(line["failed"] > 0 and line["idle"] > 0 and line["used"] > line["idle"])

    wait_for(noted, "both to be noted")
    lines = {line["job"]: line for line in json.loads(queue.run("report", "--by", "job", "--json"))}
    assert lines[idle]["idle"] == pytest.approx(lines[idle]["used"]) and not lines[idle]["failed"]
    assert lines[failed]["failed"] == lines[failed]["used"] > 0
    assert queue.run("report", "--by", "job").splitlines()[0].split()[:3] == [
        "JOBID",
        "NAME",
        "STATE",
    ]
    assert queue.run("report", "--since", "1d").splitlines()[1].startswith(ME)


@pytest.mark.root
def test_two_users_and_the_past_of_one(queue: Queue, other: OtherQueue, fake_nvml: State) -> None:
    """Four jobs of ours come before the second of one who has had four GPUs of late."""
    file = folder() / f"{OTHER}.use"
    past = PastUse(time.time(), 4.0, [Day(time.strftime("%F"), 7200.0, 3600.0)])
    file.write_bytes(msgspec.json.encode(past))
    os.chown(file, OTHER, OTHER)
    fake_nvml.update(memory_used=40 << 30)  # all are in use
    theirs = other.submit("-c", "0", "-G", "1", "-a", "1-4", "true")
    wait_for(lambda: waiting().get(OTHER) == 4, "theirs to wait")
    ours = queue.submit("-c", "0", "-G", "1", "-a", "1-4", "true")

    def order() -> list[str]:
        rows = json.loads(queue.run("queue", "-u", "all", "--json"))
        return [row["user"] for row in rows]

    wait_for(lambda: order() == [str(OTHER), *[ME] * 4, *[str(OTHER)] * 3], "the order")
    said = {line["name"]: line for line in json.loads(queue.run("report", "--json"))}
    assert (said[str(OTHER)]["used"], said[str(OTHER)]["idle"]) == (7200.0, 3600.0)
    fake_nvml.update(memory_used=0)
    queue.run("wait", ours)
    other.run("wait", theirs)
    (folder() / f"{os.getuid()}.use").chmod(0o600)
    hidden = Child(lambda: [uid for uid, past in past_use().items() if past is None], OTHER)
    assert hidden.said == [os.getuid()], "as its user wants it"
    hidden.end()
