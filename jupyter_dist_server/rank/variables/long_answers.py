"""Answers that take a rank a while: from a thread of their own, between cells or during one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...common.protocol.ranks.rank_messages import RankReply, Request
from ..request_handlers import Asked
from .value_handlers import current_device, describe, use_device


class LongAnswers:
    """Answers requests of the control channel without keeping it busy."""

    control_stream: Any

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._device_of_rank = current_device()

    def _begin_to_tell(
        self,
        tell: Callable[[Request], RankReply],
        asked: Asked[Request],
        buffers: Callable[[], Sequence[memoryview]] = tuple,
    ) -> None:
        """Answer what `tell` returns, and what `buffers` returns after it."""

        def work() -> None:
            try:
                use_device(self._device_of_rank)
                answer = partial(asked.reply, tell(asked.content), buffers())
            except BaseException as error:  # whoever asked is told, and logs it
                why = {"status": "error", "ename": type(error).__name__, "evalue": describe(error)}
                answer = partial(asked.send, why, ())
            self.control_stream.io_loop.add_callback(answer)  # a socket belongs to one thread

        # Not on the control thread: large variables take a while, and a GPU may have to be waited
        # for.
        threading.Thread(target=work, daemon=True).start()
