"""How `RankKernel` hears our own requests: contents are checked before anything is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Generic

import msgspec

from ..common.protocol.jupyter_messages import Content, Message
from ..common.protocol.ranks.rank_messages import RankReply, Request, read_content


@dataclass(frozen=True)
class Asked(Generic[Request]):
    """A request, and the way back to whoever sent it."""

    content: Request
    message: Message
    """The whole Jupyter message."""
    send: Callable[[Content, Sequence[memoryview]], None]
    """Sends the content of a reply."""

    @property
    def buffers(self) -> list[Any]:
        """What came with the message."""
        buffers: list[Any] = self.message["buffers"]
        return buffers

    def reply(self, reply: RankReply, buffers: Sequence[memoryview] = ()) -> None:
        """Answer, in the thread to which the channel belongs."""
        self.send(msgspec.to_builtins(reply), buffers)


Handler = Callable[[Any, Asked[Request]], Awaitable[None] | None]


def hears(form: type[Request]) -> Callable[[Handler[Request]], Callable[..., Any]]:
    """Let a method of `RankKernel` handle requests of a form; ipykernel finds it by its name.

    A request of another form is logged, and answered by an error.
    """
    reply = form.kind.replace("_request", "_reply")

    def checked(handler: Handler[Request]) -> Callable[..., Any]:
        @wraps(handler)
        def handle(
            kernel: Any, stream: Any, ident: Any, message: Message
        ) -> Awaitable[None] | None:
            def send(content: Content, buffers: Sequence[memoryview] = ()) -> None:
                kernel.session.send(stream, reply, content, message, ident, buffers)

            try:
                content = read_content(message["content"], form)
            except ValueError as error:
                kernel.log.error("A %s is malformed: %s", form.kind, error)
                send(refusal(error))
                return None
            return handler(kernel, Asked(content, message, send))

        return handle

    return checked


def refusal(error: Exception) -> Content:
    """Return the content of a reply to a request that was not understood."""
    return {
        "status": "error",
        "ename": type(error).__name__,
        "evalue": f"The request is malformed: {error}",
        "traceback": [],
    }
