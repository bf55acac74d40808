"""The process that forks runners goes on after what no dispatcher would ask for."""

from __future__ import annotations

import socket

import psutil

from jupyter_dist_server.jobs.runner.runner_zygote import RunnerZygote

from ..waiting import PATIENCE


def test_what_no_dispatcher_would_ask_for_is_dropped() -> None:
    before = set(psutil.Process().children())
    zygote = RunnerZygote()
    (process,) = set(psutil.Process().children()) - before
    for junk in (b"junk", b"[]", b'{"folder": 3}', b"[" * 5000):
        zygote._socket.send(junk)
    zygote._socket.shutdown(socket.SHUT_WR)
    assert process.wait(PATIENCE) == 0  # it has read them all, and the end
    zygote._socket.close()
