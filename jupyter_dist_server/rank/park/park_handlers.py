"""Parking of a rank, step by step."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from ...common.patience import patience
from ...common.protocol.ranks.park_messages import (
    ParkReply,
    ParkRequest,
    Step,
    UnloadReply,
    UnloadRequest,
)
from ..group.pool_size import wrapped_modules
from ..group.process_group import ProcessGroup
from ..rank_report import Reporter
from ..request_handlers import Asked, hears
from ..torch_internals import groups_on_nccl
from .checkpoint import Checkpoint, DriverError


class ParkHandlers:
    """What `RankKernel` does to be parked and resumed."""

    report: Reporter
    group: ProcessGroup
    shell: Any
    on_gpu = False
    """Whether this rank was given a GPU, which it may or may not use."""
    _taking = threading.Lock()
    """Steps follow each other, also if two clients ask for them."""

    @hears(UnloadRequest)
    def dist_unload_request(self, asked: Asked[UnloadRequest]) -> None:
        """Get ready, on the main thread, between cells."""
        try:
            asked.reply(self._leave() if asked.content.leave else self._unload())
        except (DriverError, RuntimeError) as error:
            asked.reply(UnloadReply(failure=f"{error}".rstrip(".") + "."))

    def _unload(self) -> UnloadReply:
        if not self.on_gpu:
            return UnloadReply()
        if Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"), "control").exists():
            raise DriverError("The driver parks no processes under MPS.")
        Checkpoint().state()
        if groups_on_nccl() and self.group.is_of_programs():  # a program's end with the pool's
            raise DriverError(
                "The driver cannot park NCCL, and programs have made process groups there: end "
                "them with dist.destroy_process_group(group)."
            )
        gc.collect()
        torch = sys.modules["torch"]
        if not torch.cuda.is_initialized():
            return UnloadReply()
        until = time.monotonic() + patience.end
        while not torch.cuda.current_stream(self.report.device).query():
            if time.monotonic() > until:  # the calls below would wait for it, and not come back
                raise DriverError("Its GPU still runs what was launched on it.")
            time.sleep(0.01)
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info(self.report.device)
        return UnloadReply(total - free)  # whoever has allocated it

    def _leave(self) -> UnloadReply:
        if not groups_on_nccl():
            return UnloadReply()
        failure, wrapped = "", wrapped_modules(self.shell)
        try:
            self.group.leave(patience.end)  # the next cell makes it anew
        except RuntimeError as error:
            failure = str(error)
        return UnloadReply(wrapped=wrapped, failure=failure)

    @hears(ParkRequest)
    def dist_park_request(self, asked: Asked[ParkRequest]) -> None:
        """Take a step; in a thread, as the driver takes seconds for each GiB."""
        kernel: Any = self

        def answer() -> None:
            reply = self._take(asked.content.step)
            kernel.control_stream.io_loop.add_callback(asked.reply, reply)

        threading.Thread(target=answer, name="parking", daemon=True).start()

    def _take(self, step: Step) -> ParkReply:
        if not self.on_gpu:
            return ParkReply()
        with self._taking:
            self.report.is_parked = True
            try:
                reply = Checkpoint().take(step)
            except DriverError as error:
                return ParkReply(str(error))
            if step == "unlock" and not reply.failure:
                self.report.is_parked = False
            return reply
