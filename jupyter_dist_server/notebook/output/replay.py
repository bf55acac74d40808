"""The outputs of cells, for a page that was reloaded meanwhile.

After that, JupyterLab does not know the running cell, and drops its output. So the kernel keeps the
outputs of cells until a page has saved them. Pages ask for them on the control channel, where the
kernel answers while a cell runs. Later outputs follow the answer on iopub, and the page adds them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from ...common.protocol.jupyter_messages import Content, Message
from . import publish
from .kept_cells import KeptCells
from .publish import Begin, Publication, Text
from .shown import Shown

KIND = "jupyter_dist_replay"
"""The type of a page's message, and the ID of the comm that the kernel's have."""
_PATIENCE = 10.0
"""The most seconds that the thread takes which sends outputs."""


class Replay:
    """Keeps the outputs of cells, and sends them to pages that ask."""

    def __init__(self, shell: InteractiveShell, kernel: Any) -> None:
        self._shell = shell
        self._kernel = kernel
        self._cells = KeptCells()
        self._threads = threading.local()
        self._streams: list[Any] = [sys.stdout, sys.stderr]
        publishers: list[Any] = [shell.display_pub, shell.displayhook]
        self._publishers = [one for one in publishers if hasattr(one, "register_hook")]

    def install(self) -> None:
        """Listen to outputs and pages."""
        if self._streams_tell:
            for stream in self._streams:
                # Hooks are those of the thread that sends.
                self._in_io_thread(partial(stream.register_hook, self._keep))
        publish.listeners.append(self._take)
        self._hook_displays()
        if self._streams_tell:
            self._shell.events.register("pre_run_cell", self._begin)
            self._begin(None)
        self._shell.events.register("post_run_cell", self._end)
        self._kernel.control_handlers[KIND] = self._answer
        self._kernel.raw_input = self._asking(self._kernel.raw_input, password=False)
        self._kernel.getpass = self._asking(self._kernel.getpass, password=True)

    def remove(self) -> None:
        """Listen no more."""
        if self._streams_tell:
            for stream in self._streams:
                self._in_io_thread(partial(stream.unregister_hook, self._keep))
            self._shell.events.unregister("pre_run_cell", self._begin)
        publish.listeners.remove(self._take)
        for publisher in self._publishers:
            publisher.unregister_hook(self._keep)
        self._shell.events.unregister("post_run_cell", self._end)
        del self._kernel.control_handlers[KIND]
        del self._kernel.raw_input, self._kernel.getpass

    def _keep(self, message: Message) -> Message:
        self._cells.add(message)
        return message

    def _take(self, piece: Publication | Begin) -> None:
        self._hook_displays()
        if self._streams_tell:
            return
        # Only what ranks show is known.
        if self._cells.get(self._kernel.get_parent().get("header", {}).get("msg_id")) is None:
            self._begin(None)
        if isinstance(piece, Text):
            content = {"name": piece.stream, "text": piece.text}
            header, parent = {"msg_type": "stream"}, self._kernel.get_parent()["header"]
            self._keep({"header": header, "parent_header": parent, "content": content})

    @property
    def _streams_tell(self) -> bool:
        """Whether streams say what they send: not in older versions of ipykernel."""
        return all(hasattr(stream, "register_hook") for stream in self._streams)

    def _hook_displays(self) -> None:
        """Take what the current thread displays."""
        if not getattr(self._threads, "is_hooked", False):
            self._threads.is_hooked = True
            for publisher in self._publishers:
                publisher.register_hook(self._keep)

    def _begin(self, _: Any) -> None:
        parent = self._kernel.get_parent()
        cell_id = (parent or {}).get("metadata", {}).get("cellId")
        if not cell_id:  # not JupyterLab's
            return
        header = parent["header"]
        if shown := self._cells.get(header["msg_id"]):
            shown.depth += 1
            return
        sent = str(header["date"])
        code = parent["content"]["code"]
        self._cells.begin(header["msg_id"], Shown(header["session"], sent, cell_id, code))

    def _end(self, result: Any) -> None:
        header = (self._kernel.get_parent() or {}).get("header", {})
        request = header.get("msg_id")
        shown = self._cells.get(request)
        if shown is None:
            return
        if shown.depth:
            shown.depth -= 1
            return
        told = None
        # Older versions do not say what the result is.
        lacks_result = result.result is not None and len(self._publishers) < 2
        if error := result.error_before_exec or result.error_in_exec:
            told = {
                "ename": type(error).__name__,
                "evalue": str(error),
                "traceback": list(getattr(self._shell, "_last_traceback", None) or []),
            }

        def finish() -> None:
            for stream in self._streams:
                stream.flush()
            self._cells.finish(request, told, result.execution_count, is_cut=lacks_result)

        self._in_io_thread(finish)

    def _answer(self, _stream: Any, _ident: Any, message: Message) -> None:
        """Tell a page what it has missed, or hear what it has saved."""
        content = message["content"]
        self._cells.saved(content.get("saved", []))
        if "known" not in content:
            return

        def tell() -> None:
            cells = self._cells.told(content["session"], content["known"])
            self._send({"cells": cells}, message)

        # Older versions have nothing that is in order in the thread that sends.
        with publish.publishing:
            self._done_in_io_thread(tell)

    def _asking(self, ask: Callable[..., str], *, password: bool) -> Callable[..., str]:
        """Let a page that follows the cell ask its user, too."""

        def ask_all(prompt: object = "", *rest: Any, **options: Any) -> str:
            parent = self._kernel.get_parent()
            shown = self._cells.get(parent.get("header", {}).get("msg_id"))
            if shown is None:
                return ask(prompt, *rest, **options)
            for stream in self._streams:
                stream.flush()
            shown.question = {"prompt": str(prompt), "password": password}
            self._send({"question": shown.question}, parent)
            value = None
            try:
                value = ask(prompt, *rest, **options)
            finally:
                shown.question = None
                self._send({"question": None}, parent)
            # As JupyterLab shows it.
            text = f"{prompt} {'········' if password else value}\n"
            self._send_answered(text, parent)
            return value

        return ask_all

    def _send_answered(self, text: str, parent: Message) -> None:
        """Keep what JupyterLab's own page adds to the cell, for those that follow it."""
        header = {"msg_type": "stream"}
        content = {"name": "stdin", "text": text}

        def tell() -> None:
            self._keep({"header": header, "parent_header": parent["header"], "content": content})
            self._send({"answered": text}, parent)

        self._done_in_io_thread(tell)

    def _in_io_thread(self, work: Callable[[], object]) -> None:
        """In that thread, nothing is sent meanwhile."""
        self._kernel.iopub_thread.schedule(work)

    def _done_in_io_thread(self, work: Callable[[], object]) -> None:
        done = threading.Event()

        def do() -> None:
            work()
            done.set()

        self._in_io_thread(do)
        done.wait(_PATIENCE)

    def _send(self, data: Content, parent: Message) -> None:
        content = {"comm_id": KIND, "data": data}
        session, socket = self._kernel.session, self._kernel.iopub_socket
        session.send(socket, "comm_msg", content, parent, ident=b"comm")
