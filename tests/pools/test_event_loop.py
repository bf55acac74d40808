"""Folders, processes and leases are looked at in threads, so that none of them stalls the loop."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jupyter_dist_server
from jupyter_dist_server.common.protocol.pool_record import PoolState
from jupyter_dist_server.pools.pool_manager import PoolManager

from ..fake_nvml.build import State
from ..pool_driver import follow, request

SCANS = {"os.listdir", "os.scandir", "shutil.rmtree"}
"""Audit events of what takes as long as a folder is large; ``/proc`` is one, too."""
OWN_DESCRIPTORS = "/dev/fd"
"""Lists what this process has open; it belongs to nobody else."""
PACKAGE = str(Path(jupyter_dist_server.__file__).parent)


@contextmanager
def scans_by_this_thread() -> Iterator[list[str]]:
    """Note each folder that our package lists or removes in this thread, and where."""
    found: list[str] = []
    thread, is_over = threading.get_ident(), threading.Event()

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if event not in SCANS or arguments[0] == OWN_DESCRIPTORS:
            return
        if threading.get_ident() == thread and not is_over.is_set():
            stack = traceback.extract_stack()
            if any(frame.filename.startswith(PACKAGE) for frame in stack):
                found.append(event + "\n" + "".join(traceback.format_list(stack[-8:])))

    sys.addaudithook(note)  # for good: there is no way to remove one
    try:
        yield found
    finally:
        is_over.set()


async def test_no_folder_is_listed_or_removed_in_the_event_loop(
    gpus: State, tmp_path: Path
) -> None:
    """In the life of a pool that waits for the GPU of another."""
    manager = PoolManager(keep_warm=60)
    with scans_by_this_thread() as scans:
        first = await manager.create(request(tmp_path, num_ranks=1, gpu_ids=[0]))
        await follow(first)
        assert first.record.state is PoolState.RUNNING, first.record.reason
        second = await manager.create(request(tmp_path, num_ranks=1, gpu_ids=[0], wait=3600))
        while not second.record.progress.reason:
            await second.changed_since(second.record.version, 60)
        assert "GPU 0 is leased" in second.record.progress.reason
        await first.stop()
        await follow(second)
        assert second.record.state is PoolState.RUNNING
        await manager.stop_all()
    assert not scans, "\n".join(scans)
