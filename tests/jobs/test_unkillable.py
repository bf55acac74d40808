"""A process of a job is in the kernel, and not even SIGKILL ends it: its disk does not answer."""

from __future__ import annotations

import ctypes
import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..fake_nvml.build import State
from ..waiting import wait_for
from .queue_driver import Queue

_INIT, _MNT_DETACH, _LONGEST = 26, 2, 1 << 17
_LIBC = ctypes.CDLL(None, use_errno=True)


class SilentFolder:
    """A folder of FUSE, whose server, this process, reads what is asked and never answers.

    Whoever opens a file in it is in an uninterruptible sleep as soon as it is signalled. See
    https://www.kernel.org/doc/html/latest/filesystems/fuse/fuse.html.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self._server = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self._server},rootmode=40000,user_id=0,group_id=0".encode()
        if _LIBC.mount(b"silent", os.fsencode(path), b"fuse", 0, options):
            error = ctypes.get_errno()
            os.close(self._server)
            raise OSError(error, os.strerror(error))
        asked = os.read(self._server, _LONGEST)
        _, kind, unique = struct.unpack_from("IIQ", asked)
        assert kind == _INIT
        major, minor = struct.unpack_from("II", asked, 40)
        told = struct.pack("IIIIHHIIHHI7I", major, minor, 0, 0, 0, 0, 1 << 16, 1, *[0] * 10)
        os.write(self._server, struct.pack("IiQ", 16 + len(told), 0, unique) + told)

    def until_asked(self) -> None:
        """Wait until somebody wants something of a file in it."""
        os.read(self._server, _LONGEST)

    def let_go(self) -> None:
        """End the server: whoever waits for it goes on."""
        if self._server >= 0:
            _LIBC.umount2(os.fsencode(self.path), _MNT_DETACH)
            os.close(self._server)
            self._server = -1


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[SilentFolder]:
    try:
        folder = SilentFolder(tmp_path / "silent")
    except OSError as error:
        pytest.skip(f"FUSE cannot be used here: {error}")
    yield folder
    folder.let_go()


def test_a_job_that_cannot_be_killed_keeps_its_gpu_and_says_so(
    fake_nvml: State, queue: Queue, silent: SilentFolder
) -> None:
    fake_nvml.write(gpus=1, memory=80 << 30)
    job = queue.submit("-G", "1", "-c", "0", "cat", str(silent.path / "data"))
    silent.until_asked()
    (stuck,) = queue.processes("cat")
    queue.run("cancel", "--now", job)
    told = f"Waits for cat (pid {stuck.pid}) to end."
    wait_for(lambda: queue.show(job)["detail"] == told, "the sentence that names the process")
    assert queue.show(job)["state"] == "COMPLETING"
    assert stuck.status() == "disk-sleep"
    assert told in queue.run("show", job)
    after = queue.submit("-G", "1", "-c", "0", "true")
    wait_for(lambda: queue.show(after)["reason"] == "Resources", "the next one to wait")
    (gpu,) = json.loads(queue.run("info", "--json"))["gpus"]
    assert gpu["leaseholder"]["pool"].startswith(f"job-{job}-")
    silent.let_go()
    assert queue.ended(job)["state"] == "CANCELLED"
    assert queue.ended(after)["state"] == "COMPLETED"
