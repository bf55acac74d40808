"""Profiles some steps of a script, as `jdist submit --profile-steps` asks for."""

from __future__ import annotations

import atexit
import gzip
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from ...common.ask_from_outside import profile_file
from ...common.protocol.ranks.rank_messages import ProfileOptions
from ...common.protocol.ranks.script_messages import Launch, ScriptProfile
from ..profile.profile_handlers import read_recording
from ..profile.recording import Recording
from ..request_handlers import describe
from .answer import launch

_EVERY = 0.05
_WARM_UP = 1
"""Steps of a profile that are left out."""


class StepProfiler:
    """Records steps from the end of the first one on, and writes them to the job's folder."""

    def __init__(self, folder: Path, steps: int) -> None:
        self._folder, self._steps = folder, steps
        self._recording: Recording | None = None
        self._is_written = False
        threading.Thread(target=self._begin, name="jdist profile", daemon=True).start()

    def _begin(self) -> None:
        """Hear of steps once torch is imported."""
        while not hasattr(optimizer := _optimizers(), "register_optimizer_step_post_hook"):
            time.sleep(_EVERY)
        self._hook = optimizer.register_optimizer_step_post_hook(self._on_step)
        atexit.register(self._write)

    def _on_step(self, *_: object) -> None:
        if self._recording is None:
            self._recording = Recording(ProfileOptions(self._steps + _WARM_UP))
            self._recording.start()
        elif self._recording.ended and not self._is_written:
            self._write()

    def _write(self) -> None:
        """Write the profile; if torch's trace cannot be read, say so: the script goes on."""
        recording, where = self._recording, launch()
        if recording is None or self._is_written or where is None:
            return
        self._is_written = True
        self._hook.remove()
        try:
            self._write_profile(recording, where)
        except Exception as error:
            text = f"[jdist: The steps of rank {where.rank} cannot be profiled: {describe(error)}]"
            print(text, file=sys.stderr, flush=True)

    def _write_profile(self, recording: Recording, where: Launch) -> None:
        recording.stop()
        profile, trace = read_recording(recording)
        content = ScriptProfile(where.rank, profile, gzip.compress(trace, 3))
        file = profile_file(self._folder, where.rank, where.world_size)
        fresh = file.with_suffix(".new")
        fresh.write_bytes(msgspec.msgpack.encode(content))
        fresh.rename(file)


def _optimizers() -> Any:
    return sys.modules.get("torch.optim.optimizer")
