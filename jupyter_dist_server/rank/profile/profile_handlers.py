"""A rank's profile of its last cell that had one."""

from __future__ import annotations

import contextlib
import gzip
import logging
from collections.abc import Iterator, Sequence

from ...common.protocol.ranks.profile_messages import ProfileRequest, RankProfile
from ...common.protocol.ranks.rank_messages import ProfileOptions
from .. import clock
from ..request_handlers import Asked, hears
from ..variables.long_answers import LongAnswers
from ..variables.value_handlers import describe
from ..waits.flight_recorder import recorded_since
from .read_trace import read_trace
from .recording import Recording
from .reduce_trace import reduce

_LOG = logging.getLogger(__name__)


class ProfileHandlers(LongAnswers):
    """What `RankKernel` answers about the profile of a cell."""

    _recording: Recording | None = None
    _why_not = ""
    """Why there is no recording of the last cell that was to have one."""
    _trace = b""

    @contextlib.contextmanager
    def profiled(self, options: ProfileOptions | None) -> Iterator[Recording | None]:
        """Record what is run meanwhile; if that is not possible, it runs all the same."""
        if options is None:
            yield None
            return
        self._recording, self._why_not, self._trace = None, "", b""
        recording = None
        try:
            recording = Recording(options)
            recording.start()
        except Exception as error:  # of torch's profiler
            _LOG.info("The cell cannot be profiled.", exc_info=True)  # the report says so
            self._why_not = describe(error)
            if recording is not None:
                with contextlib.suppress(Exception):  # it may not have begun
                    recording.stop()
                recording = None
        try:
            yield recording
        finally:
            if recording is not None:
                with self._noting_failure():
                    recording.stop()
                    self._recording = recording

    @contextlib.contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # of torch's profiler
            _LOG.info("The profile of the cell cannot be kept.", exc_info=True)
            self._why_not = describe(error)

    @hears(ProfileRequest)
    def dist_profile_request(self, asked: Asked[ProfileRequest]) -> None:
        """Tell where the time went, and send the trace."""
        self._begin_to_tell(self._tell_profile, asked, self._trace_buffers)

    def _tell_profile(self, _: ProfileRequest) -> RankProfile:
        recording, self._recording = self._recording, None  # it is asked for once, and may be large
        if recording is None:
            return RankProfile(status="failed" if self._why_not else "none", why=self._why_not)
        text = recording.export()
        self._trace = gzip.compress(text, 3)
        entries = recorded_since(recording.started)
        profile = reduce(
            read_trace(text),
            recording.sampler.samples(),
            [entry for entry in entries if entry.time_created_ns <= recording.ended * 1e9],
            recording.steps,
            (recording.started, recording.ended),
        )
        return clock.shared_profile(profile)

    def _trace_buffers(self) -> Sequence[memoryview]:
        trace, self._trace = self._trace, b""
        return [memoryview(trace)]
