"""Notebooks with ranks where our users are: containers, clusters, machines of somebody else's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..control_group import control_group
from ..security.stranger import UID
from ..waiting import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the surroundings are Linux's")

ROOT = Path(__file__).parents[2]
root = pytest.mark.root
MEMORY = 1536 << 20


@pytest.fixture
def nobody() -> list[str]:
    """Return what runs a program as a user without an entry in passwd, as containers have."""
    become = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
    imports = [*become, sys.executable, "-c", "import jupyter_dist_server"]
    if subprocess.run(imports, cwd=ROOT, capture_output=True).returncode:
        pytest.skip("other users may not read this Python, or this folder")
    return become


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder of anybody's, as pytest's own are the user's alone."""
    with tempfile.TemporaryDirectory(prefix="s-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


def in_mount(command: str) -> list[str]:
    """Return what runs a program after a shell command, which may mount something."""
    return ["unshare", "--mount", "sh", "-ec", f'{command}\nexec "$@"', "sh"]


def in_group(group: Path) -> list[str]:
    """Return what runs a program in a control group."""
    return ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]


def run(folder: Path, prefix: list[str], status: int = 0, **variables: str | None) -> str:
    """Run the notebook in a surrounding, and return what it says."""
    env = os.environ | {"TMPDIR": str(folder), "HOME": str(folder)} | variables
    done = subprocess.run(
        [*prefix, sys.executable, "-m", f"{__package__}.notebook", str(folder)],
        env={name: value for name, value in env.items() if value is not None},
        cwd=ROOT,
        capture_output=True,
        timeout=4 * PATIENCE,
    )
    said = done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
    if done.returncode == 77:
        pytest.skip(said)
    assert done.returncode == status, said
    return said


@root
def test_a_user_without_an_entry_in_passwd(folder: Path, nobody: list[str]) -> None:
    run(folder, nobody, HOME="/")


@pytest.mark.parametrize("home", [None, "/none/such"])
def test_no_home(folder: Path, home: str | None) -> None:
    run(folder, [], HOME=home)


@root
def test_a_home_that_cannot_be_written(folder: Path, nobody: list[str]) -> None:
    home = folder / "home-of-root"
    home.mkdir(mode=0o755)
    run(folder, nobody, HOME=str(home))


def test_a_long_path_to_temporary_files(folder: Path) -> None:
    long = folder / ("long" * 30)
    long.mkdir()
    said = run(folder, [], 1, TMPDIR=str(long))
    assert "is too long: the paths of a pool's sockets are limited to" in said
    assert "Set the environment variable TMPDIR to a shorter path, such as /tmp." in said


@root
def test_temporary_files_that_cannot_be_programs(folder: Path) -> None:
    run(folder, in_mount(f"mount -t tmpfs -o noexec none {folder}"))


@root
@pytest.mark.parametrize("fill", ["true", "! head -c 65M /dev/zero > /dev/shm/full 2> /dev/null"])
def test_little_shared_memory(folder: Path, fill: str) -> None:
    """Docker's 64 MiB; full of somebody else's, data loaders fail and ranks do not."""
    said = run(folder, in_mount(f"mount -t tmpfs -o size=64m none /dev/shm\n{fill}"))
    assert "[0-1] 28.0" in said or fill != "true"


@root
def test_processes_of_others_cannot_be_seen(folder: Path, nobody: list[str]) -> None:
    run(folder, [*in_mount("mount -t proc -o hidepid=2 none /proc"), *nobody])


def test_system_calls_that_docker_refuses(folder: Path) -> None:
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    program = folder / "refuse"
    subprocess.run(["cc", "-o", program, Path(__file__).with_name("refuse.c")], check=True)
    run(folder, [str(program)])


def test_no_tools_of_the_system(folder: Path) -> None:
    """Neither ``ss``, ``ps`` nor ``lsof``, and no other program but a shell."""
    tools = folder / "bin"
    tools.mkdir()
    (tools / "sh").symlink_to("/bin/sh")
    run(folder, [], PATH=str(tools))


@root
def test_half_a_core(folder: Path) -> None:
    with control_group(Path("/sys/fs/cgroup/cpu")) as group:
        (group / "cpu.cfs_quota_us").write_text("50000")  # of 100 ms
        run(folder, in_group(group))


@root
def test_little_memory(folder: Path) -> None:
    """What two ranks, their agent, a kernel and data loaders take."""
    with control_group(Path("/sys/fs/cgroup/memory")) as group:
        (group / "memory.limit_in_bytes").write_text(str(MEMORY))
        run(folder, in_group(group))


def test_few_open_files(folder: Path) -> None:
    run(folder, ["sh", "-c", 'ulimit -n 256; exec "$@"', "sh"])


def test_a_locale_without_unicode(folder: Path) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    run(folder, [], **plain, PYTHONIOENCODING="utf-8:backslashreplace")
