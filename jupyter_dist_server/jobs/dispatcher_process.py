"""The process of a dispatcher, from its start to its end."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..common.files.own_files import own
from ..gpus.readers.reading_process import ReadingProcess
from .start_dispatcher import sign, take_lock, wait_for_lock
from .store.store_folder import KEPT_GPUS

if TYPE_CHECKING:
    import io

_ALIVE = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC


def main() -> None:
    """Be the dispatcher of a folder, with the lock that `start_dispatcher` gave us."""
    folder = Path(sys.argv[1])
    # Which other processes of ours must not keep.
    lock: io.FileIO | None
    lock, *announced = [own(int(number)) for number in sys.argv[2:]]
    wait_for_lock(lock)
    reading = None
    if (folder / KEPT_GPUS).exists():  # most jobs here need GPUs: NVML is read while we import
        with contextlib.suppress(OSError):  # which `GpuReader.read` says
            reading = ReadingProcess()
    gc.disable()  # see `python_command`
    # Not above: the first reading would begin later.
    from ..common.errors import DistError
    from ..common.processes.process_ref import call_ourselves
    from ..common.processes.python_command import python_command
    from .runner.runner_zygote import RunnerZygote
    from .store.store import Store

    zygote = RunnerZygote()
    call_ourselves("dist-dispatcher")
    # Not above: each runner would carry what they import.
    import logging

    from ..gpus.readers.gpu_reader import GpuReader
    from .dispatcher import Dispatcher

    gc.freeze()
    gc.enable()
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    log = logging.getLogger(__name__)
    reader = GpuReader(begun=reading)
    try:
        store = Store(folder)
    except DistError:  # a newer version has changed its format: one of that version has to go on
        log.exception("The dispatcher ends")
        with own(os.open(folder / "running" / "dispatcher", _ALIVE, 0o600)), lock:
            raise
    store.keep_copy()
    while lock:
        sign(lock)
        # To end, however that comes, closes this file after the lock: that wakes whoever waits for
        # a job, and starts another dispatcher.
        with own(os.open(store.watched / "dispatcher", _ALIVE, 0o600)), lock:
            try:
                is_done = Dispatcher(store, zygote, reader, *announced).run()
            except DistError:
                log.exception("The dispatcher ends")
                raise
            if not is_done:
                log.warning("Starting again")
                os.set_inheritable(lock.fileno(), True)
                arguments = [str(folder), str(lock.fileno())]
                os.execv(sys.executable, [*python_command(sys.executable, __name__), *arguments])
        # Whoever submits a job now starts a dispatcher; whoever did so before saw our lock.
        if store.is_idle():
            return
        lock, announced = take_lock(folder), []
