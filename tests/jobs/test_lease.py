"""Leases between processes and users: never double, never stuck."""

from __future__ import annotations

import fcntl
import mmap
import os
import pwd
import random
import select
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from msgspec import to_builtins

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.files.inherited_lease import InheritedLease
from jupyter_dist_server.common.files.shared_folder import FOLDER, folder, is_free
from jupyter_dist_server.common.protocol.leaseholder import Leaseholder
from jupyter_dist_server.gpus.inventory import Gpu, Inventory
from jupyter_dist_server.jobs.leases.held_file import HeldFile
from jupyter_dist_server.jobs.leases.lease import GpuLease, GpuTaken, Lease, holders

from ..waiting import wait_for
from .conftest import Child

NOBODY = 65534
MACHINE = Inventory(tuple(Gpu(i, f"GPU-{i}", "H100", 80, f"0{i}", "9.0") for i in range(3)))


def who(pool: str = "p-1") -> Leaseholder:
    return Leaseholder(pool=pool, pid=os.getpid(), since=1.0, notebook="a.ipynb", host="h")


def take(*indices: int, pool: str = "", shared: bool = False) -> Lease:
    pool = pool or f"p-{os.getpid()}-{time.monotonic_ns()}"
    return Lease.take([f"GPU-{index}" for index in indices], who(pool), shared)


def try_to_take(*indices: int) -> str:
    """Return ``"got it"``, or the GPU that is taken."""
    try:
        take(*indices).close()
    except GpuTaken as taken:
        return str(taken)
    return "got it"


def test_a_leased_gpu_is_refused_and_told_until_its_holder_ends(leases: Path) -> None:
    child = Child(lambda: take(0, 1, pool="p-child"))
    assert holders(MACHINE) == {
        f"GPU-{index}": GpuLease(
            user=pwd.getpwuid(os.getuid()).pw_name,
            pid=child.pid,
            since=1.0,
            pool="p-child",
            notebook="a.ipynb",
            host="h",
            shared=False,
            others=[],
        )
        for index in (0, 1)
    }
    assert try_to_take(1, 2) == "GPU-1"
    assert try_to_take(2) == "got it", "a refused lease leaves nothing"
    child.kill()
    assert holders(MACHINE) == {}
    assert try_to_take(0, 1, 2) == "got it"
    holders(MACHINE)
    assert [path.suffix for path in leases.iterdir()] == [".lease"] * 3, "only these stay"


def test_a_lease_that_is_closed_is_free_at_once(leases: Path) -> None:
    with closing(take(0)):
        assert try_to_take(0) == "GPU-0"  # within one process, too
    assert try_to_take(0) == "got it"


def test_shared_leases_bear_each_other_alone(leases: Path) -> None:
    one, two = (Child(lambda pool=pool: take(0, pool=pool, shared=True)) for pool in ("p-1", "p-2"))
    said = holders(MACHINE)["GPU-0"]
    assert (said.shared, {said.pool, *(other.pool for other in said.others)}) == (
        True,
        {"p-1", "p-2"},
    )
    assert try_to_take(0) == "GPU-0"
    one.kill()
    assert holders(MACHINE)["GPU-0"].pool == "p-2"
    assert try_to_take(0) == "GPU-0"
    two.kill()
    with closing(take(0)), pytest.raises(GpuTaken):
        take(0, shared=True)


def test_whoever_forks_from_a_holder_does_not_hold(leases: Path) -> None:
    lease = take(0)
    child = Child(lambda: "alive")
    lease.close()
    assert child.alive and try_to_take(0) == "got it"
    child.end()


def test_a_lease_is_inherited_by_descriptors_and_outlives_its_taker(leases: Path) -> None:
    lease = take(0, 1, pool="p-1")
    given = [os.dup(descriptor) for descriptor in lease.descriptors]

    held: list[InheritedLease] = []

    def hold() -> None:
        held.append(InheritedLease(given))

    child = Child(hold)
    for descriptor in given:
        os.close(descriptor)
    lease.close()
    assert holders(MACHINE)["GPU-1"] == holders(MACHINE)["GPU-0"]
    assert holders(MACHINE)["GPU-1"].pid == child.pid
    assert try_to_take(1) == "GPU-1"
    child.kill()
    assert try_to_take(0, 1) == "got it"


def test_who_ends_a_lease_leaves_only_the_files_that_others_lock(leases: Path) -> None:
    """What says who holds it is removed when all is free, as others wake then."""

    def end() -> list[object]:
        lease, was_free = take(0, pool="p-1"), list[bool]()
        held = InheritedLease([os.dup(descriptor) for descriptor in lease.descriptors])
        lease.close()

        def hook(event: str, values: tuple[object, ...]) -> None:
            if event == "os.remove" and str(values[0]).endswith("p-1.holder"):
                with open(leases / "GPU-0.lease") as file:
                    was_free.append(is_free(file, fcntl.LOCK_EX))

        sys.addaudithook(hook)
        told = [try_to_take(0)]
        held.close()
        return [*told, *was_free, *(path.name for path in leases.iterdir())]

    child = Child(end)
    assert child.said == ["GPU-0", True, "GPU-0.lease"]
    assert child.end() == 0


def hold(*indices: int, pool: str = "p-1") -> None:
    """Hold a lease as a runner does."""
    lease = take(*indices, pool=pool)
    held = InheritedLease([os.dup(descriptor) for descriptor in lease.descriptors])
    lease.close()
    events = held.fileno()
    assert events is not None
    while True:
        select.select([events], [], [])
        held.mend()


def begin_to_hold(*indices: int) -> int:
    """Have another process hold a lease; return its pid."""
    if not (pid := os.fork()):
        hold(*indices)
    wait_for(lambda: [one.pid for one in holders(MACHINE).values()][:1] == [pid], "its lease")
    return pid


def _is_locked(path: Path) -> bool:
    with open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.mark.parametrize("wiped", ["file", "holder", "all", "folder"])
def test_what_is_removed_of_a_lease_is_made_anew(leases: Path, wiped: str) -> None:
    pid = begin_to_hold(0, 1)
    try:
        os.kill(pid, signal.SIGSTOP)  # or it makes the first one anew while others are removed
        for path in leases.iterdir():
            which = {"file": path.name == "GPU-0.lease", "holder": path.suffix == ".holder"}
            if which.get(wiped, True):
                path.unlink()
        if wiped == "folder":
            shutil.rmtree(leases)
        os.kill(pid, signal.SIGCONT)
        names = ("GPU-0.lease", "GPU-1.lease", "p-1.holder")
        wait_for(lambda: all((leases / name).exists() for name in names), "the files")
        assert try_to_take(0) == "GPU-0"
        told = holders(MACHINE)
        assert {told[gpu].pid for gpu in ("GPU-0", "GPU-1")} == {pid}
        for name in ("GPU-0", "GPU-1"):  # they are there before they are locked
            wait_for(lambda name=name: _is_locked(leases / f"{name}.lease"), f"the lock of {name}")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert try_to_take(0, 1) == "got it"


def wipe_at(step: int, where: Path) -> Callable[[], bool]:
    """Remove a folder just before the n-th call that has to do with files.

    What is returned says that no more is to be removed, and tells whether that was done.
    """
    left = [step]

    def hook(event: str, _: object) -> None:
        if event.startswith(_STEPS) and left[0] >= 0:
            left[0] -= 1
            if left[0] < 0:
                shutil.rmtree(where, ignore_errors=True)

    def stop() -> bool:
        done, left[0] = left[0] < 0, -1
        return done

    sys.addaudithook(hook)
    return stop


def test_what_is_removed_while_it_is_made_anew_is_made_anew_again(leases: Path) -> None:
    """Whoever removes the folder and whoever makes it anew can meet at any step."""

    def mend(step: int) -> str:
        lease = take(0, 1, pool="p-1")
        held = InheritedLease([os.dup(descriptor) for descriptor in lease.descriptors])
        lease.close()
        shutil.rmtree(leases)
        stop = wipe_at(step, leases)
        events = held.fileno()
        assert events is not None
        while select.select([events], [], [], 0)[0]:
            held.mend()
        was_wiped = stop()
        there = all((leases / f"{name}.lease").exists() for name in ("GPU-0", "GPU-1"))
        if not (there and holders(MACHINE).keys() == {"GPU-0", "GPU-1"}):
            return "lost"
        return "wiped" if was_wiped else "done"

    for step in range(200):
        child = Child(lambda step=step: mend(step))
        said = child.said
        child.end()
        if said == "done":
            break
        assert said == "wiped", step
    assert step > 10


def test_a_folder_with_leases_is_locked_so_that_it_is_not_cleaned_up(leases: Path) -> None:
    with closing(take(0)), open_folder(leases) as folder, pytest.raises(BlockingIOError):
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)  # as systemd-tmpfiles does
    with open_folder(leases) as folder:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def open_folder(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def test_a_file_that_is_removed_before_it_is_locked_is_not_a_lease(leases: Path) -> None:
    """Whoever has opened it when it is removed locks what nobody else would find."""

    def take_while_removed() -> list[object]:
        take(0).close()
        path, removed = leases / "GPU-0.lease", list[bool]()

        def hook(event: str, values: tuple[int, ...]) -> None:
            if removed or event != "fcntl.flock":
                return
            if os.path.samestat(os.fstat(values[0]), path.stat()):
                path.unlink()
                removed.append(True)

        sys.addaudithook(hook)
        return [try_to_take(0), *removed, try_to_take(0)]

    child = Child(take_while_removed)
    assert child.said == ["GPU-0", True, "got it"]
    assert child.end() == 0


def test_what_something_else_has_locked_is_taken_too(leases: Path) -> None:
    take(0).close()
    with open(leases / "GPU-0.lease") as file:  # as `flock FILE sleep 1d` in a shell
        fcntl.flock(file, fcntl.LOCK_EX)
        assert holders(MACHINE) == {"GPU-0": GpuLease(user=None, shared=False, others=[])}
        assert try_to_take(0) == "GPU-0"
    assert holders(MACHINE) == {}


# -- two users ------------------------------------------------------------------------------------


@pytest.mark.root
@pytest.mark.parametrize("first", [0, NOBODY])
def test_users_refuse_each_other_whoever_came_first(leases: Path, first: int) -> None:
    second = NOBODY - first
    os.umask(0o077)
    try:
        child = Child(lambda: take(0, 1, pool="p-child"), first)
        other = Child(
            lambda: [try_to_take(0, 2), try_to_take(2), to_builtins(holders(MACHINE))], second
        )
    finally:
        os.umask(0o022)
    assert child.alive
    refused, got, told = other.said
    assert (refused, got) == ("GPU-0", "got it")
    assert {told[gpu]["user"] for gpu in told} == {pwd.getpwuid(first).pw_name}
    assert other.end() == 0
    child.kill()
    assert Child(lambda: try_to_take(0, 1, 2), second).said == "got it"
    assert leases.stat().st_mode & 0o7777 == 0o1777


@pytest.mark.root
def test_nobody_can_say_to_be_somebody_else(leases: Path) -> None:
    def lie() -> HeldFile:
        said = b'{"gpus": ["GPU-0"], "user": "root"}'
        return HeldFile.create(folder() / "p-1.holder", said)

    child = Child(lie, NOBODY)
    assert holders(MACHINE)["GPU-0"].user == pwd.getpwuid(NOBODY).pw_name
    child.end()


@pytest.mark.root
def test_a_folder_that_a_user_may_not_write_is_said(leases: Path) -> None:
    leases.mkdir(mode=0o755)

    def attempt() -> str:
        try:
            take(0)
        except DistError as error:
            return f"{error.code} {error.message} {error.hint}"
        return "got it"

    child = Child(attempt, NOBODY)
    assert child.said.startswith("leases_unusable")
    assert str(leases) in child.said and "JUPYTER_DIST_LEASES" in child.said


def test_no_link_and_no_file_is_taken_for_the_folder(leases: Path, tmp_path: Path) -> None:
    leases.symlink_to(tmp_path)
    with pytest.raises(DistError, match="not a folder"):
        take(0)
    take_through = tmp_path / "elsewhere"
    leases.unlink()
    leases.mkdir()
    (leases / "GPU-0.lease").symlink_to(take_through)
    with pytest.raises(DistError, match=r"GPU-0\.lease"):
        take(0)
    assert not take_through.exists()


def test_what_others_write_is_borne(leases: Path) -> None:
    take(0).close()
    os.mkfifo(leases / "fifo.holder")
    (leases / "folder.holder").mkdir()
    (leases / "link.holder").symlink_to("/dev/zero")
    held = []
    for name, content in (
        ("a", "not JSON"),
        ("b", "[1]"),
        ("c", '{"gpus": 5}'),
        ("d", "{}"),
        ("e", "[" * 60000),
        ("f", '{"gpus": ["GPU-1"], "since": 1e300, "pid": [], "notebook": "\\u001b[2J\\nx"}'),
        ("g", '{"gpus": ["GPU-2"], "since": NaN, "pool": {}, "shared": "no"}'),
    ):
        file = open(leases / f"{name}.holder", "w+")  # noqa: SIM115
        file.write(content)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        held.append(file)
    told = holders(MACHINE)
    assert told.keys() == {"GPU-1", "GPU-2"}
    assert {told[gpu].since for gpu in told} == {None}
    assert (told["GPU-1"].notebook, told["GPU-1"].pid) == ("[2Jx", None)
    assert told["GPU-2"].pool is None
    for file in held:
        file.close()


# -- killed at every step -------------------------------------------------------------------------

_STEPS = ("open", "os.", "fcntl.", "tempfile.")


def die_at(step: int) -> None:
    """Let this process be killed just before its n-th call that has to do with files."""
    left = [step]

    def hook(event: str, _: object) -> None:
        if event.startswith(_STEPS) and event != "os.kill":
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def test_killed_at_any_step_a_process_leaves_all_gpus_free(leases: Path) -> None:
    """The first lease of a host also makes the folder and the files."""

    def take_and_die(step: int) -> Lease:
        lease_pool = f"p-{step}"
        die_at(step)
        return take(0, 1, pool=lease_pool)

    killed = 0
    for step in range(200):
        child = Child(lambda step=step: take_and_die(step))
        if child.alive:
            assert holders(MACHINE).keys() == {"GPU-0", "GPU-1"}
            assert child.end() == 0
            break
        assert child.end() == -signal.SIGKILL
        killed += 1
        assert Child(lambda: [*holders(MACHINE)]).said == []
        # Each step is taken on a host where nothing was, and where all was but this one.
        if step % 2:
            assert Child(lambda: try_to_take(0, 1, 2)).said == "got it"
            for path in leases.iterdir():
                path.unlink()
            leases.rmdir()
    assert killed > 10
    assert try_to_take(0, 1, 2) == "got it"


def test_the_remains_of_a_killed_process_are_removed_after_a_while(leases: Path) -> None:
    folder()
    (left := leases / ".new-0123").touch()
    os.utime(left, (0, 0))
    (fresh := leases / ".new-4567").touch()
    holders(MACHINE)
    assert (left.exists(), fresh.exists()) == (False, True)


def test_many_processes_that_are_killed_at_random_never_have_a_gpu_twice(leases: Path) -> None:
    """Each writes its number where the GPUs are that it has, and must find no other there."""
    gpus = 3
    memory = mmap.mmap(-1, 4 * gpus + 4)

    def number(place: int, value: int | None = None) -> int:
        if value is not None:
            memory[4 * place : 4 * place + 4] = value.to_bytes(4, "little")
        return int.from_bytes(memory[4 * place : 4 * place + 4], "little")

    def work(seed: int) -> None:
        rng = random.Random(seed)
        while True:
            wanted = rng.sample(range(gpus), rng.randint(1, gpus))
            try:
                lease = take(*wanted)
            except GpuTaken:
                continue
            for gpu in wanted:
                number(gpu, os.getpid())
            for _ in range(rng.randint(1, 50)):
                if any(number(gpu) != os.getpid() for gpu in wanted):
                    os._exit(3)
            number(gpus, number(gpus) + 1)
            lease.close()

    def begin(seed: int) -> int:
        pid = os.fork()
        if pid == 0:
            work(seed)
        return pid

    def end(worker: int) -> int:
        os.kill(worker, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])

    rng = random.Random(1)
    workers = [begin(seed) for seed in range(4)]
    begun, seed = time.monotonic(), 100
    ends = set()
    while time.monotonic() < begun + 2 or number(gpus) < 200:
        if time.monotonic() > begun + 30:
            break
        seed += 1
        victim = rng.randrange(4)
        ends.add(end(workers[victim]))
        workers[victim] = begin(seed)
        for _ in range(20):
            holders(MACHINE)  # whoever looks at leases must not harm them
    ends.update(map(end, workers))
    assert ends == {-signal.SIGKILL}, "a GPU was leased twice"
    assert number(gpus) >= 200, "stuck"
    assert try_to_take(0, 1, 2) == "got it"


def test_the_folder_is_the_same_for_all_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER, raising=False)
    found = folder()
    assert str(found) in ("/run/lock/jupyter-dist", "/tmp/jupyter-dist")
    assert stat.S_IMODE(found.stat().st_mode) == 0o1777
