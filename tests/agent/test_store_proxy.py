"""The way to a pool's store, where it is at its limit."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
from pathlib import Path

import pytest

from jupyter_dist_server.agent.ranks.store_proxy import HOST, StoreProxy

from ..network import own_network
from ..security.stranger import needs_a_stranger

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="filters are Linux's")


async def test_a_client_too_many_is_refused_and_later_ones_are_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        proxy = StoreProxy()
        if proxy.notice:
            pytest.skip(proxy.notice)
        proxy.listener.setblocking(False)
        loop = asyncio.get_running_loop()
        others = set(range(1, 4000))  # ports of so many clients
        proxy._ports |= others
        with socket.create_connection((HOST, proxy.port)) as refused:
            refused.setblocking(False)
            assert await asyncio.wait_for(loop.sock_recv(refused, 1), 60) == b""
        proxy._ports -= others
        with socket.create_connection((HOST, proxy.port)) as client:
            client.sendall(b"?")
            store, _ = await asyncio.wait_for(loop.sock_accept(proxy.listener), 60)
            with store:
                assert await asyncio.wait_for(loop.sock_recv(store, 1), 60) == b"?"
        proxy.close()
    assert "The store has 3999 clients and refuses more" in caplog.text


async def test_ports_that_another_program_has_do_not_unprotect_the_store() -> None:
    """It was served to all users where one had taken the ports of 127.0.0.2."""
    needs_a_stranger()
    few = range(40000, 40004)
    with own_network(), contextlib.ExitStack() as taken:
        Path("/proc/sys/net/ipv4/ip_local_port_range").write_text(f"{few[0]} {few[-1]}")
        for port in few:
            taken.enter_context(socket.socket()).bind(("127.0.0.2", port))
        proxy = StoreProxy()
        assert not proxy.notice
        proxy.close()
        for port in few:
            taken.enter_context(socket.socket()).bind((HOST, port))
        with pytest.raises(OSError, match="in use"):
            StoreProxy()
