"""A lab's rules: limits of users and groups, drained and reserved GPUs, and who may use which."""

from __future__ import annotations

import grp
import json
import os
import re
from pathlib import Path

import pytest

from jupyter_dist_server.common import policy
from jupyter_dist_server.common.files.shared_folder import FOLDER, folder
from jupyter_dist_server.jobs.rules.closures import Closure
from jupyter_dist_server.jobs.rules.rules import Rules
from jupyter_dist_server.jobs.schedule.plan import forecast, plan
from jupyter_dist_server.jobs.schedule.wants import InUse, Machine, Want

from ..fake_nvml.build import State
from ..waiting import wait_for
from .queue_driver import OTHER, UNTIL_GO, OtherQueue, Queue, shell

ME = policy.name_of(os.getuid())
NOW = 1_000_000.0
HOUR = 3600.0


@pytest.fixture
def rules(queue: Queue, leases: Path, fake_nvml: State, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the policy of a machine with four GPUs; there is none yet."""
    fake_nvml.write(gpus=4, memory=80 << 30)
    folder = leases.parent / "etc"
    folder.mkdir()
    monkeypatch.setenv(policy.PATH, str(folder / "policy.toml"))
    return folder / "policy.toml"


def waits(queue: Queue, job: str, reason: str, *parts: str) -> None:
    def said() -> bool:
        shown = queue.show(job)
        return shown["reason"] == reason and all(part in shown["detail"] for part in parts)

    wait_for(said, f"{reason}: {parts}, not {queue.show(job)}")


def four(*closures: Closure) -> Machine:
    names = [f"GPU-{n}" for n in range(4)]
    closed = {name: tuple(c for c in closures if name in c.gpus) for name in names}
    return Machine(dict.fromkeys(names, 80 << 30), cpus=64, rules=Rules(closed=closed))


def want(id: str, user: str = "ann", gpus: int = 1, limit: float | None = None) -> Want:
    return Want(id, user, NOW, gpus=gpus, limit=limit)


# -- limits -----------------------------------------------------------------------------------


def test_limits_of_a_user_are_kept_and_reread(rules: Path, queue: Queue) -> None:
    rules.write_text("max_gpus = 2\n")
    running = queue.submit("-G", "2", *UNTIL_GO)
    queue.until(running, "RUNNING")
    job = queue.submit("-G", "1", "true")
    waits(queue, job, "QOSMaxGRESPerUser", f"User {ME} may use 2 GPUs at once, and has 2 GPUs.")
    assert queue.ended(queue.submit("true"))["state"] == "COMPLETED", "the CPU is not limited"
    rules.write_text("max_gpus = 3\n")  # while the dispatcher runs
    assert queue.ended(job)["state"] == "COMPLETED"
    rules.write_text("max_jobs = 1\n")
    job = queue.submit("true")
    waits(queue, job, "AssocMaxJobsLimit", f"User {ME} may run 1 job")
    (queue.folder / "go").touch()
    assert queue.ended(job)["state"] == "COMPLETED"


def test_too_much_is_refused_at_once(rules: Path, queue: Queue) -> None:
    rules.write_text('max_gpus = 2\nmax_waiting = 3\nmax_time = "1:00:00"\n')
    assert "may use 2 GPUs at once" in queue.run("submit", "-G", "3", "true", code=2)
    assert "allows 1:00:00 at most" in queue.run("submit", "-t", "2h", "true", code=2)
    queue.submit("-H", "-a", "1-2", "true")
    said = queue.run("submit", "-H", "-a", "1-2", "true", code=2)
    assert f"User {ME} may have 3 waiting jobs on this machine, has 2, and submits 2." in said
    queue.submit("-H", "true")
    queue.run("update", "-G", "3", "3", code=2)


def test_a_users_own_limit_comes_before_the_groups_and_that_before_everybodys() -> None:
    group = grp.getgrgid(os.getgid()).gr_name
    found = policy.Policy(
        max_gpus=1,
        max_jobs=5,
        max_waiting=7,
        groups={group: policy.GroupLimits(max_gpus=4, max_jobs=2)},
        users={ME: policy.Limits(max_gpus=8)},
    ).limits_of(ME)
    assert (found.max_gpus, found.max_jobs, found.max_waiting) == (8, 2, 7)
    assert policy.Policy(max_gpus=1).limits_of("nobody-here").max_gpus == 1


def test_a_limit_holds_up_nobody_else() -> None:
    machine = four()
    rules = Rules(policy.Policy(max_gpus=2, users={"bob": policy.Limits(max_gpus=1)}))
    machine = Machine(machine.gpus, cpus=64, rules=rules)
    held = [InUse("x", "ann", frozenset(["GPU-0"]), NOW)]
    wants = [want("a", gpus=2), want("b"), want("c"), want("d", "bob"), want("e", "bob", 1, HOUR)]
    found = plan(machine, held, wants, NOW)
    assert found.starts.keys() == {"b", "d"}
    assert [found.reason(one) for one in wants] == [
        *("QOSMaxGRESPerUser", None, "QOSMaxGRESPerUser", None, "QOSMaxGRESPerUser")
    ]
    assert found.head is None


@pytest.mark.root
def test_limits_of_two_users(rules: Path, queue: Queue, other: OtherQueue) -> None:
    group = grp.getgrgid(os.getgid()).gr_name
    rules.write_text(f"max_gpus = 1\n[groups.{group}]\nmax_gpus = 3\nmax_total_gpus = 2\n")
    ours = [queue.submit("-G", "1", *UNTIL_GO) for _ in range(3)]
    theirs = [other.submit("-G", "1", *UNTIL_GO) for _ in range(2)]
    waits(queue, ours[2], "AssocGrpGRES", f"Group {group} may use 2 GPUs at once, and has 2 GPUs.")
    waits(other, theirs[1], "QOSMaxGRESPerUser", f"User {OTHER} may use 1 GPU at once")
    rules.write_text(f"[users.{OTHER}]\nmax_gpus = 2\n")
    for owner, job in ((queue, ours[2]), (other, theirs[1])):
        owner.until(job, "RUNNING")
        (owner.folder / "go").touch()


# -- GPUs that are closed -----------------------------------------------------------------------


def test_a_drained_gpu_gets_no_new_work(rules: Path, queue: Queue) -> None:
    running = queue.submit("--gpu-ids", "3", *UNTIL_GO)
    queue.until(running, "RUNNING")
    said = queue.run("drain", "2-3", "--reason", "fan")
    assert said == f"Job {running} of {ME} keeps GPU 3, without a limit.\n"
    job = queue.submit("--gpu-ids", "2,3", "-G", "1", "true")
    waits(queue, job, "ReqNodeNotAvail", f"GPUs 2, 3 are drained by {ME}: fan.")
    forced = queue.submit("--gpu-ids", "2", "--force", "true")
    waits(queue, forced, "ReqNodeNotAvail", "GPU 2 is drained")
    assert queue.ended(queue.submit("-G", "2", "true"))["state"] == "COMPLETED", "others go on"
    assert f"drained by {ME}: fan" in queue.run("info").splitlines()[3]
    assert queue.show(running)["state"] == "RUNNING"
    told = json.loads(queue.run("undrain", "2", "--json"))
    assert [one["gpus"] for one in told] == [["GPU-fake-3"]]
    for one in (job, forced):
        assert queue.ended(one)["state"] == "COMPLETED"
    assert "None is drained: GPU 2." in queue.run("undrain", "2", code=2)
    assert "There is no GPU 7." in queue.run("drain", "7", code=2)


def test_a_drain_that_ends_by_itself(rules: Path, queue: Queue) -> None:
    queue.run("drain", "all", "--until", "now+2seconds")
    job = queue.submit("-G", "4", "true")
    assert queue.ended(job)["state"] == "COMPLETED"
    assert json.loads(queue.run("reservations", "--json")) == []


def test_reserved_gpus_are_kept_free_and_short_jobs_go_before(rules: Path, queue: Queue) -> None:
    assert (
        queue.run("reserve", "0-3", "--from", "now+1hour", "--for", "2h", "--why", "tests")
        == "r1\n"
    )
    job = queue.submit("-G", "1", "true")
    waits(queue, job, "ReqNodeNotAvail", "GPUs 0, 1, 2, 3 are reserved from ")
    assert "With a time limit, it may run there until " in queue.show(job)["detail"]
    short = queue.submit("-G", "1", "-t", "30", "true")
    assert queue.ended(short)["state"] == "COMPLETED"
    (row,) = [
        row
        for row in json.loads(queue.run("queue", "-u", "all", "--start", "--json"))
        if row["id"] == "r1"
    ]
    assert (row["kind"], row["state"], row["gpus"]) == ("reservation", "PENDING", 4)
    shown = json.loads(queue.run("queue", "--start", "--json"))
    (mine,) = [row for row in shown if row["id"] == job]
    assert abs(mine["expected"]["start"] - (row["expected"]["start"] + 2 * HOUR)) < 2
    assert "tests" in queue.run("reservations")
    assert "There is no reservation r2." in queue.run("reservations", "--end", "r2", code=2)
    queue.run("reservations", "--end", "r1")
    assert queue.ended(job)["state"] == "COMPLETED"


def test_what_runs_is_not_extended_into_a_reservation(rules: Path, queue: Queue) -> None:
    job = queue.submit("-G", "1", "-t", "10", *UNTIL_GO)
    queue.until(job, "RUNNING")
    queue.run("reserve", "all", "--from", "now+20minutes")
    said = queue.run("update", "--time", "1:00:00", job, code=2)
    assert "One of its GPUs is reserved from " in said and "It can run until " in said
    queue.run("update", "--time", "15", job)
    (queue.folder / "go").touch()
    queue.ended(job)


def test_no_gpu_is_kept_for_one_that_a_reservation_keeps_from_starting() -> None:
    gpus = frozenset(f"GPU-{n}" for n in range(4))
    machine = four(Closure(gpus, "root", "", NOW + 3 * HOUR, NOW + 5 * HOUR, "r1"))
    held = [InUse("x", "bob", frozenset(["GPU-0"]), NOW, NOW + 2 * HOUR)]
    wants = [want("all", gpus=4, limit=2 * HOUR), want("small", limit=3 * HOUR)]
    found = plan(machine, held, wants, NOW)
    assert found.starts.keys() == {"small"} and found.head is None
    assert found.reason(wants[0]) == "ReqNodeNotAvail"
    assert forecast(machine, held, wants, NOW)["all"].start == NOW + 5 * HOUR


def test_files_of_others_stop_nothing(rules: Path, queue: Queue) -> None:
    for make in (
        lambda path: path.mkdir(),
        lambda path: os.mkfifo(path),
        lambda path: path.write_text("[" * 100_000),
        lambda path: path.symlink_to("/etc/passwd"),
    ):
        make(file := folder() / "closures.json")
        make(use := folder() / f"{os.getuid()}.use")
        assert queue.ended(queue.submit("-G", "1", "true"))["state"] == "COMPLETED"
        queue.run("queue", "-u", "all")
        for path in (file, use):
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)


def test_a_plan_around_a_reservation() -> None:
    gpus = frozenset(["GPU-0", "GPU-1", "GPU-2"])
    machine = four(Closure(gpus, "root", "", NOW + HOUR, NOW + 3 * HOUR, "r1", frozenset(["eve"])))
    wants = [
        want("all", gpus=4),
        want("ends in time", limit=HOUR),
        want("too long", limit=HOUR + 1),
    ]
    wants += [want("eve's", "eve"), want("none left", limit=2 * HOUR)]
    found = plan(machine, [], wants, NOW)
    assert found.starts == {"ends in time": ("GPU-0",), "too long": ("GPU-3",), "eve's": ("GPU-1",)}
    assert [found.reason(wants[n]) for n in (0, 4)] == ["ReqNodeNotAvail", "Resources"]
    held = [InUse("x", "bob", frozenset(["GPU-3"]), NOW, NOW + 2 * HOUR)]
    expected = forecast(machine, held, [want("all", gpus=4)], NOW)
    assert expected["all"].start == NOW + 3 * HOUR


def test_why_a_job_waits_that_a_later_reservation_keeps_from_starting(
    rules: Path, queue: Queue
) -> None:
    running = queue.submit("--gpu-ids", "0", "-t", "2:00:00", *UNTIL_GO)
    queue.until(running, "RUNNING")
    queue.run("reserve", "all", "--from", "now+3hours", "--for", "1h")
    job = queue.submit("-G", "4", "-t", "2:00:00", "true")
    waits(queue, job, "ReqNodeNotAvail", "GPUs 0, 1, 2, 3 are reserved from ")
    queue.run("cancel", job)
    (queue.folder / "go").touch()
    queue.ended(running)


@pytest.mark.root
def test_who_may_close_and_for_whom(rules: Path, queue: Queue, other: OtherQueue) -> None:
    queue.run("reserve", "0-1", "--user", ME)
    queue.run("drain", "3")
    rules.write_text(f'[[allow]]\ngpus = [2]\nusers = ["{OTHER}"]\n')
    with pytest.raises(AssertionError, match="Only root, or the owner of the lease folder"):
        other.run("drain", "0")
    file = Path(os.environ[FOLDER]) / "closures.json"  # one who tries nevertheless
    file.write_text(json.dumps([{"gpus": ["GPU-fake-0", "GPU-fake-1"], "by": "mallory"}]))
    os.chown(file, OTHER, OTHER)
    ours, theirs = queue.submit("-G", "2", "true"), other.submit("-G", "1", "true")
    assert queue.ended(ours)["gpu_uuids"] == ["GPU-fake-0", "GPU-fake-1"]
    assert other.ended(theirs)["gpu_uuids"] == ["GPU-fake-2"]
    job = queue.submit("-G", "1", "--gpu-ids", "2", "true")
    waits(queue, job, "ReqNodeNotAvail", f"GPU 2 is only for {OTHER}.")


def test_a_wrong_policy_limits_nothing_and_the_doctor_says_so(rules: Path, queue: Queue) -> None:
    rules.write_text("max_gpus = 1\nmax_gpu = 2\n")
    assert queue.ended(queue.submit("-G", "2", "true"))["state"] == "COMPLETED"
    assert "unknown field `max_gpu`" in queue.run("doctor", code=1)
    rules.write_text('[users.nobdy]\nmax_gpus = 1\n[[allow]]\ngpus = [0, 77]\ngroups = ["stuff"]\n')
    told = "The policy names what does not exist: user nobdy, group stuff, GPU 77."
    assert told in queue.run("doctor", code=1)


def test_memory_that_nobody_lists_can_be_allowed(
    rules: Path, queue: Queue, fake_nvml: State
) -> None:
    fake_nvml.write(gpus=1, memory=80 << 30, memory_used=2 << 30)
    job = queue.submit("-G", "1", "true")
    waits(queue, job, "Resources", "2 GiB")
    rules.write_text("unseen_memory = 4096\n")
    assert queue.ended(job)["state"] == "COMPLETED"


def test_every_block_of_the_page(
    rules: Path, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "administrators.md").read_text()
    policies = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert len(policies) > 3
    for written in policies:
        rules.write_text(written)
        assert policy.read_policy()[1] == "", written
    programs = queue.folder / "bin"
    programs.mkdir()
    queue.program().rename(programs / "jdist")
    (programs / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
    (programs / "sudo").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    for block in re.findall(r"```bash\n(.*?)```", text, re.DOTALL):
        shell(block.replace("--user ann", f"--user {ME}"), queue.folder)
    (left,) = json.loads(queue.run("reservations", "--json"))
    assert (left["id"], left["why"], len(left["gpus"])) == ("r2", "maintenance", 4)
