"""A job that the kernel kills, in a control group that has too little memory."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..waiting import PATIENCE, wait_for
from .queue_driver import JDIST, Queue

_ROOT = Path("/sys/fs/cgroup")
_LIMIT = 400 << 20
_CODE = "import time\nkept = []\nwhile True: kept.append(b'x' * (32 << 20))"


def _own_group() -> Path:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in ("memory", ""):
            return next(
                folder
                for folder in (_ROOT / controllers / path.lstrip("/"), _ROOT / controllers)
                if folder.exists()
            )
    raise FileNotFoundError


@pytest.fixture
def small(queue: Queue) -> Iterator[Path]:
    """Return a control group with little memory."""
    group = _own_group() / f"jdist-test-{queue.folder.name}"
    limit = "memory.limit_in_bytes" if "memory" in group.parts else "memory.max"
    try:
        group.mkdir()
        (group / limit).write_text(str(_LIMIT))
    except OSError as error:
        if group.exists():
            group.rmdir()
        pytest.skip(f"control groups cannot be made here: {error}")
    yield group
    queue.end()
    wait_for(lambda: _removed(group), "the end of all in it")


def _removed(group: Path) -> bool:
    with contextlib.suppress(OSError):  # busy for a moment longer than it has processes
        group.rmdir()
    return not group.exists()


def test_a_job_that_the_kernel_kills_for_its_memory_is_told_so(queue: Queue, small: Path) -> None:
    jdist = [sys.executable, "-c", JDIST, "submit", "-c", "0", sys.executable, "-c", _CODE]
    inside = f'echo $$ > {small}/cgroup.procs && exec "$@"'
    subprocess.run(["sh", "-c", inside, "sh", *jdist], check=True, timeout=PATIENCE)
    job = queue.ended("1")
    assert (job["state"], job["reason"]) == ("OUT_OF_MEMORY", "OutOfMemory"), job["detail"]
    assert "out of memory" in job["detail"]
    assert queue.ended(queue.submit("-c", "0", "true"))["state"] == "COMPLETED"
