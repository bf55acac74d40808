"""The way to a pool's store, where it is at its limit."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys

import pytest

from jupyter_dist_server.agent.ranks.store_proxy import HOST, StoreProxy

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
