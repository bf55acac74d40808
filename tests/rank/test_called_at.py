"""What a line is calling just now is read from its code, whatever Python has made of that."""

from __future__ import annotations

import sys
import time
from types import FrameType

from jupyter_dist_server.rank.waits.own_evidence import called_at


class Looker:
    """Notes what the function that calls it is calling."""

    def __init__(self) -> None:
        self.seen: list[str | None] = []

    def look(self, frame: FrameType) -> None:
        """Note what a frame is calling."""
        self.seen.append(called_at(frame.f_code, frame.f_lasti))

    def by_python(self, *_: object) -> None:
        """Be a function of Python's."""
        self.look(sys._getframe(1))

    def __index__(self) -> int:
        """Be called by C code, which has no frame."""
        self.look(sys._getframe(1))
        return 0


def test_calls_of_python_and_of_c() -> None:
    looker = Looker()
    looker.by_python()
    looker.by_python(*[1])
    time.sleep(looker)  # type: ignore[arg-type]
    assert looker.seen == ["looker.by_python", "looker.by_python", "time.sleep"]


def test_calls_that_python_has_made_faster() -> None:
    """It has other instructions then: in Python 3.11, one that calls before `CALL`."""
    looker = Looker()
    for _ in range(100):
        looker.by_python()
    for _ in range(100):
        time.sleep(looker)  # type: ignore[arg-type]
    assert looker.seen == 100 * ["looker.by_python"] + 100 * ["time.sleep"]
