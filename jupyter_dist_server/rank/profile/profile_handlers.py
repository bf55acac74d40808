"""A rank's profile of its last profiled cell."""

from __future__ import annotations

import contextlib
import gzip
import logging
from collections.abc import Iterator, Sequence
from typing import Literal

from ...common.protocol.ranks.profile_messages import ProfileRequest, RankProfile
from ...common.protocol.ranks.rank_messages import ProfileOptions
from .. import clock
from ..request_handlers import Asked, answer_from_thread, describe, hears
from ..waits.flight_recorder import recorded_since
from .read_trace import read_trace
from .recording import Recording
from .reduce_trace import reduce

_LOG = logging.getLogger(__name__)


class ProfileHandlers:
    """What `RankKernel` answers about the profile of a cell."""

    _recording: Recording | None = None
    _why_not = ""  # why the last cell that should be profiled has no recording

    @contextlib.contextmanager
    def profiled(self, options: ProfileOptions | None) -> Iterator[Recording | None]:
        """Record what is run meanwhile; if that is not possible, it runs all the same."""
        if options is None:
            yield None
            return
        self._recording, self._why_not = None, ""
        recording = None
        try:
            recording = Recording(options)
            recording.start()
        except Exception as error:  # of torch's profiler
            self._note_failure(error)
            if recording is not None:
                with contextlib.suppress(Exception):  # it may not have begun
                    recording.stop()
                recording = None
        try:
            yield recording
        finally:
            if recording is not None:
                try:
                    recording.stop()
                    self._recording = recording
                except Exception as error:  # of torch's profiler
                    self._note_failure(error)

    def _note_failure(self, error: Exception) -> None:
        _LOG.info("The cell cannot be profiled.", exc_info=True)  # the report says so
        self._why_not = describe(error)

    @hears(ProfileRequest)
    def dist_profile_request(self, asked: Asked[ProfileRequest]) -> None:
        """Report where the time went, and send the trace."""
        answer_from_thread(self, asked, self._tell_profile)

    def _tell_profile(self) -> tuple[RankProfile, Sequence[memoryview]]:
        recording, self._recording = self._recording, None  # it is asked for once, and may be large
        if recording is None:
            status: Literal["failed", "none"] = "failed" if self._why_not else "none"
            return RankProfile(status=status, why=self._why_not), ()
        profile, text = read_recording(recording)
        return clock.shared_profile(profile), [memoryview(gzip.compress(text, 3))]


def read_recording(recording: Recording) -> tuple[RankProfile, bytes]:
    """Return what a recording tells, and its trace as JSON."""
    text = recording.export()
    entries = recorded_since(recording.started)
    profile = reduce(
        read_trace(text),
        recording.sampler,
        [entry for entry in entries if entry.time_created_ns <= recording.ended * 1e9],
        recording.steps,
        (recording.started, recording.ended),
        recording.watch,
    )
    return profile, text
