"""What a cell's output says of a wait, from one look to the next."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from jupyter_dist_server.client.halt_clock import HaltClock
from jupyter_dist_server.notebook.cells.cell_wait import WaitWatch, read_limit
from jupyter_dist_server.notebook.loop_thread import LoopThread
from jupyter_dist_server.notebook.output.publish import Clear, Publication, Text
from jupyter_dist_server.verdicts.verdict import Verdict

from ..waiting import PATIENCE

MISSING = Verdict("never_joined", "Rank 0 waits.", [1], True, [])
SLOW = Verdict("slow", "All have begun it.", [], False, [])


class Watch(WaitWatch):
    """A watch that sees what it is given."""

    seen: Iterator[Verdict | Exception | None]

    async def _explain(self) -> Verdict | None:
        seen = next(self.seen)
        if isinstance(seen, Exception):
            raise seen
        return seen


def text_of(shown: Publication) -> str:
    assert not isinstance(shown, Clear)
    return shown.text if isinstance(shown, Text) else str(shown.data["text/plain"])


def shown(*seen: Verdict | Exception | None, name: str | None = "why") -> list[str]:
    """Return what is shown after each look."""
    looked = threading.Event()
    no_client: Any = SimpleNamespace(halts=HaltClock())
    watch = Watch(no_client, LoopThread(), name, looked.set)
    watch.seen = iter(seen)
    texts = []
    for _ in seen:
        looked.clear()
        watch.look(float("inf"))
        assert looked.wait(PATIENCE)
        texts.append("".join(map(text_of, watch.take())))
    return texts


def test_a_look_that_fails_does_not_end_a_wait() -> None:
    assert shown(MISSING, OSError("gone"), MISSING) == [MISSING.text, "", ""]


def test_looks_that_fail_one_after_the_other_are_no_silence() -> None:
    gone, said = OSError("gone"), "No verdict: OSError: gone."
    over = f"The ranks no longer wait. Before: {said}"
    assert shown(gone, gone, gone, MISSING) == ["", said, "", MISSING.text]
    assert shown(gone, None, gone, gone, None) == ["", "", "", said, over]


def test_a_wait_that_is_slow_is_not_over() -> None:
    over = f"The ranks no longer wait. Before: {SLOW.sentence}"
    assert shown(MISSING, SLOW, None) == [MISSING.text, SLOW.text, over]
    assert shown(SLOW, None) == ["", ""], "nothing was said of it"


def test_where_displays_are_not_drawn_again_it_is_text() -> None:
    over = f"The ranks no longer wait. Before: {MISSING.sentence}\n"
    texts = shown(MISSING, MISSING, None, name=None)
    assert texts == [f"{MISSING.text}\n", "", over]


def test_a_limit_that_is_no_number() -> None:
    assert [read_limit(said) for said in ("0", "2.5", "10s")] == [0, 2.5, 10]
