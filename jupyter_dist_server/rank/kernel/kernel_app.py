"""The application around the kernel of a rank: it opens the sockets."""

from __future__ import annotations

from typing import Any

import zmq
from traitlets import Bunch, observe
from traitlets.config import Config

from ...common.errors import DistError
from ...common.pool_folder import CHANNELS
from ...common.protocol.node_addresses import show_client_keys
from ..ipykernel_internals import BaseApp
from ..output.capture import RankStream
from ..output.iopub import PubThread
from .curve_gate import CurveGate, RemotePlace
from .kernel import RankKernel

_MORE = int(zmq.SNDMORE)


class QuickSocket(zmq.Socket[bytes]):
    """Sends a message in a third of the time: pyzmq combines flags, as enums, for each frame."""

    def send_multipart(
        self, msg_parts: Any, flags: int = 0, copy: bool = True, track: bool = False, **more: Any
    ) -> Any:
        """Send a message."""
        if flags or track or more:
            return super().send_multipart(msg_parts, flags, copy, track, **more)
        *frames, last = msg_parts
        for frame in frames:
            self.send(frame, _MORE, copy)
        return self.send(last, 0, copy)


class RankApp(BaseApp):
    """The application around a `RankKernel`."""

    kernel_class = RankKernel
    outstream_class = f"{RankStream.__module__}.{RankStream.__name__}"
    place: RemotePlace | None = None
    """Set before the start if the rank's clients are on another node."""
    _gate: CurveGate | None = None

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # N ranks writing one history database would wait for each other's locks.
        self.update_config(Config({"HistoryManager": {"enabled": False}}))

    def init_sockets(self) -> None:
        """Open the kernel's sockets, and the one for cells."""
        super().init_sockets()
        assert self.context is not None
        others = (self.shell_socket, self.stdin_socket, self.control_socket)
        if self.place and not all(socket.getsockopt(zmq.CURVE_SERVER) for socket in others):
            raise DistError(
                "ipykernel_not_known",
                "With this release of ipykernel, the ranks on other nodes cannot be protected.",
                "Install an older release of ipykernel on all nodes.",
            )
        self.cell_socket = self.context.socket(zmq.ROUTER, socket_class=QuickSocket)
        self.cell_socket.linger = 1000
        self.cell_socket.set_hwm(0)
        self.cell_socket.router_handover = True
        ports = self.place.address.ports if self.place else CHANNELS
        self.bind(self.cell_socket, ports["cells"])

    def before_bind(self, socket: zmq.Socket[bytes]) -> None:
        """Let only clients with the pool's keys use a TCP socket."""
        if self.place:
            assert self.context is not None
            self._gate = self._gate or CurveGate(self.context, self.place.keys, self.log)
            self._gate.guard(socket)

    @observe("debug_shell_socket")
    def _give_keys(self, made: Bunch) -> None:
        """Give the control thread's socket the keys: it connects to our own shell channel next."""
        if self.place:
            show_client_keys(made.new, self.place.keys)

    def init_heartbeat(self) -> None:
        """Serve Jupyter's heartbeat, but not to other nodes: the agent monitors the rank."""
        if not self.place:
            super().init_heartbeat()

    def init_iopub(self, context: zmq.Context[Any]) -> None:
        """Confirm every subscription, not only the first: its client then misses nothing."""
        self.iopub_socket = context.socket(zmq.XPUB, socket_class=QuickSocket)
        self.iopub_socket.linger = 1000
        self.iopub_socket.setsockopt(zmq.XPUB_VERBOSER, 1)
        self.iopub_socket.set_hwm(0)  # the cells' budgets limit the queue
        self.bind(self.iopub_socket, self.iopub_port)
        self.configure_tornado_logger()
        own = self.place.own if self.place else self.ip
        pipe = f"ipc://{own}-{CHANNELS['pipe']}"
        self.iopub_thread = PubThread(self.iopub_socket, self.session, pipe)
        self.iopub_thread.start()
        self.iopub_socket = self.iopub_thread.background_socket

    def close(self) -> None:
        """Close the sockets."""
        self.cell_socket.close()
        if self._gate:
            self._gate.close()
        super().close()
