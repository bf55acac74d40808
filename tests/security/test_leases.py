"""Another user takes no lease that somebody has, frees none, and stalls nobody who looks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from jupyter_dist_server.common.files.shared_folder import FOLDER, folder, owner_notice
from jupyter_dist_server.common.protocol.leaseholder import Leaseholder
from jupyter_dist_server.common.protocol.sampler_messages import GpuProcess
from jupyter_dist_server.gpus.inventory import Gpu, Inventory
from jupyter_dist_server.gpus.used_without_lease import GpuUse
from jupyter_dist_server.jobs.leases.lease import GpuTaken, Lease, holders
from jupyter_dist_server.jobs.schedule.board import posted, wants_of
from jupyter_dist_server.placement.requests.request import PoolRequest
from jupyter_dist_server.placement.unavailable_gpus import unavailable

from ..fake_nvml.build import State
from ..fake_nvml.four_gpus import MACHINE as MACHINE_OF_FOUR
from ..fake_nvml.four_gpus import NAMES
from ..jobs.conftest import Child, leases  # noqa: F401
from ..server.client import Client
from ..server.stalls import check, configuration
from ..server_driver import Server
from . import stranger

pytestmark = pytest.mark.stranger

MACHINE = Inventory(tuple(Gpu(i, f"GPU-{i}", "H100", 80, f"0{i}", "9.0") for i in range(3)))
KEEP_LEASE = """
# Made the file of a GPU, as its first user; then makes another one in its place.
path = sys.argv[1]
open(path, "x")
os.chmod(path, 0o644)
print("made", flush=True)
sys.stdin.readline()
os.unlink(path)
open(path, "x")
print("replaced", flush=True)
sys.stdin.readline()
"""
FLOOD = """
folder, count, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
held = open(folder + "/p-evil.holder", "w")
held.write('{"gpus": ["%s2"], "pool": "p-evil"}' % name)
held.flush()
fcntl.flock(held, fcntl.LOCK_EX)
for i in range(count):
    os.link(folder + "/p-evil.holder", f"{folder}/p-{i}.holder")
    open(f"{folder}/{i}.board", "w")
kept = []
for i in range(300):
    kept.append(open(f"{folder}/x-{i}.holder", "w"))
    kept[-1].write('{"gpus": ["%s1"]}' % name)
    kept[-1].flush()
    fcntl.flock(kept[-1], fcntl.LOCK_EX)
print("done", flush=True)
sys.stdin.readline()
"""
LINK = "os.symlink(*sys.argv[1:])"
FREE = """
freed = []
for name in os.listdir(sys.argv[1]):
    path = sys.argv[1] + "/" + name
    for change in (os.unlink, lambda p: os.rename(p, p + "x"), lambda p: open(p, "w")):
        try:
            change(path)
            freed.append(name)
        except OSError:
            pass
    with open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            freed.append(name)
        except OSError:
            pass
print(freed)
"""


def take(*gpus: int, pool: str = "p-1") -> Lease:
    who = Leaseholder(pool=pool, pid=1, since=1.0, notebook="a.ipynb", host="h")
    return Lease.take([f"GPU-{gpu}" for gpu in gpus], who)


@pytest.fixture
def shared(leases: Path) -> Iterator[Path]:  # noqa: F811
    """Yield the folder, which is root's and sticky, as it should be."""
    assert folder() == leases
    os.chown(leases, 0, 0)
    yield leases
    os.chown(leases, os.getuid(), os.getgid())  # or we could not remove what others have left


def test_a_lease_is_neither_taken_nor_freed_by_another_user(shared: Path) -> None:
    with closing(take(0, 1)):
        assert stranger.said(FREE, shared) == "[]"

        def attempt() -> str:
            try:
                take(1, 2, pool="p-2")
            except GpuTaken as error:
                return str(error)
            return "got it"

        assert Child(attempt, stranger.UID).said == "GPU-1"
        assert holders(MACHINE).keys() == {"GPU-0", "GPU-1"}


def test_whoever_made_a_gpus_file_cannot_lease_it_twice_by_that(shared: Path) -> None:
    other = stranger.begin(KEEP_LEASE, shared / "GPU-0.lease")
    try:
        assert other.stdin and other.stdout and other.stdout.readline() == "made\n"
        with closing(take(0)):
            other.stdin.write("\n")
            other.stdin.flush()
            assert other.stdout.readline() == "replaced\n"
            with pytest.raises(GpuTaken):
                take(0, pool="p-2")
            assert holders(MACHINE)["GPU-0"].pool == "p-1"
        take(0, pool="p-2").close()
    finally:
        stranger.end(other)


def test_ten_thousands_of_files_stall_nobody(shared: Path) -> None:
    other = stranger.begin(FLOOD, shared, 15000, "GPU-")
    try:
        assert other.stdin and other.stdout and other.stdout.readline() == "done\n"

        told = holders(MACHINE)
        assert told.keys() == {"GPU-1"}, "a file of many names is nobody's"
        assert len(told["GPU-1"].others) == 255
        assert list(wants_of(posted())) == []
        with closing(take(2, pool="p-ours")):  # pools have names that nobody can guess
            assert holders(MACHINE)["GPU-2"].pool == "p-ours"
    finally:
        stranger.end(other)


def test_ten_thousands_of_files_neither_stall_a_server_nor_fill_its_memory(
    shared: Path, fake_nvml_folder: Path, tmp_path: Path
) -> None:
    state, seen = State(tmp_path / "state"), tmp_path / "stalls"
    state.write(**MACHINE_OF_FOUR)
    (tmp_path / "config.py").write_text(configuration(seen))
    variables = state.environment(fake_nvml_folder) | {FOLDER: str(shared)}
    options = f"--config={tmp_path / 'config.py'}"
    server = Server(tmp_path / "home", tmp_path, options, **variables)
    client, process = Client(server), psutil.Process(server.process.pid)

    def look() -> set[str]:
        for _ in range(3):
            leased = client.get("gpus")["leases"]
            client.get("queue")
            client.post("jobs/plan", {"command": ["true"], "gpus": 1})
        return set(leased)

    try:
        assert look() == set()
        seen.write_text("")  # what came before was the start
        before = process.memory_info().rss
        other = stranger.begin(FLOOD, shared, 5000, "GPU-fake-")
        try:
            assert other.stdin and other.stdout and other.stdout.readline() == "done\n"
            assert look() == {NAMES[1]}
        finally:
            stranger.end(other)
        assert process.memory_info().rss - before < 64 << 20
        check(seen)
    finally:
        server.close()


def test_one_bad_file_spoils_its_gpu_alone_and_its_owner_is_named(shared: Path) -> None:
    bad = shared / "GPU-1.lease"
    stranger.said(LINK, "/etc/passwd", bad)
    reasons = unavailable(PoolRequest(), holders(MACHINE), {}, (), {})
    assert reasons == {"GPU-1": f"blocked: {bad} of {stranger.UID} cannot be locked"}
    take(0, 2).close()


def test_a_folder_of_another_user_is_told(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert owner_notice() == ""
    os.chown(shared, stranger.UID, stranger.UID)
    assert f"belongs to uid {stranger.UID}" in owner_notice()
    assert str(shared) in owner_notice() and os.environ[FOLDER] == str(shared)


def test_no_escape_for_the_terminal_reaches_who_is_refused(shared: Path) -> None:
    evil = GpuProcess(5, "eve", "\x1b]0;owned\x07a\nb", 31 << 30, None)
    reason = str(GpuUse((evil,)))
    assert reason.startswith("used by ]0;ownedab, pid 5, user eve") and reason.isprintable()
