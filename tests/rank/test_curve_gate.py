"""Only who has the keys of a pool gets a word out of a rank's TCP sockets."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import zmq
from zmq.utils.monitor import recv_monitor_message

from jupyter_dist_server.common.protocol.node_addresses import (
    CurveKeys,
    RankAddress,
    new_curve_keys,
    show_client_keys,
)
from jupyter_dist_server.rank.kernel.curve_gate import CurveGate, RemotePlace
from jupyter_dist_server.rank.kernel.kernel_app import RankApp

from ..waiting import PATIENCE, wait_for

KEYS, OTHERS = new_curve_keys(), new_curve_keys()


class Rank:
    """A socket behind a gate."""

    def __init__(self) -> None:
        self.context = zmq.Context[zmq.Socket[bytes]]()
        self.gate = CurveGate(self.context, KEYS, logging.getLogger("gate"))
        self.socket = self.context.socket(zmq.ROUTER)
        self.gate.guard(self.socket)
        port = self.socket.bind_to_random_port("tcp://127.0.0.1")
        self.address = f"tcp://127.0.0.1:{port}"

    def close(self) -> None:
        self.socket.close(0)
        self.gate.close()
        self.context.term()


@pytest.fixture
def rank() -> Iterator[Rank]:
    """Return a rank's socket."""
    rank = Rank()
    yield rank
    rank.close()


@pytest.fixture
def client() -> Iterator[zmq.Socket[bytes]]:
    """Return a socket of another process's context, as it were."""
    with zmq.Context[zmq.Socket[bytes]]() as context, context.socket(zmq.DEALER) as client:
        client.linger = 0
        yield client


def test_the_pools_own_client_is_heard(rank: Rank, client: zmq.Socket[bytes]) -> None:
    show_client_keys(client, KEYS)
    client.connect(rank.address)
    client.send(b"hello")
    assert rank.socket.poll(PATIENCE * 1000)
    name, said = rank.socket.recv_multipart()
    assert said == b"hello"
    rank.socket.send_multipart([name, b"yes"])
    assert client.poll(PATIENCE * 1000) and client.recv() == b"yes"
    assert rank.gate.refused == 0


def test_a_rank_lets_itself_in(rank: Rank, client: zmq.Socket[bytes]) -> None:
    """By the socket of its control thread, which ipykernel connects as soon as it is made."""
    app = RankApp()
    app.place = RemotePlace(RankAddress("127.0.0.1", {}), KEYS, "")
    app.debug_shell_socket = client
    client.connect(rank.address)
    client.send(b"hello")
    assert rank.socket.poll(PATIENCE * 1000)
    assert rank.gate.refused == 0


def _without_a_key(client: zmq.Socket[bytes]) -> None:
    pass


def _with_a_key_of_another_pool(client: zmq.Socket[bytes]) -> None:
    mixed = CurveKeys(
        KEYS.rank_public, OTHERS.rank_secret, OTHERS.client_public, OTHERS.client_secret
    )
    show_client_keys(client, mixed)


def _with_all_keys_of_another_pool(client: zmq.Socket[bytes]) -> None:
    show_client_keys(client, OTHERS)


@pytest.mark.parametrize(
    "prepare", [_without_a_key, _with_a_key_of_another_pool, _with_all_keys_of_another_pool]
)
def test_others_are_refused_counted_and_logged(
    rank: Rank, client: zmq.Socket[bytes], prepare: object, caplog: pytest.LogCaptureFixture
) -> None:
    assert callable(prepare)
    prepare(client)
    monitor = client.get_monitor_socket(zmq.Event.CONNECTED | zmq.Event.DISCONNECTED)
    client.connect(rank.address)
    client.send(b"hello")
    assert monitor.poll(PATIENCE * 1000)
    assert recv_monitor_message(monitor)["event"] == zmq.Event.CONNECTED
    wait_for(lambda: rank.gate.refused, "a refusal")
    wait_for(lambda: "Refused a connection without the pool's keys" in caplog.text, "a line")
    assert not rank.socket.poll(0)
    client.disable_monitor()
    # Who has the keys is still heard, and it alone.
    with zmq.Context[zmq.Socket[bytes]]() as context, context.socket(zmq.DEALER) as ours:
        ours.linger = 0
        show_client_keys(ours, KEYS)
        ours.connect(rank.address)
        ours.send(b"ours")
        assert rank.socket.poll(PATIENCE * 1000)
        assert rank.socket.recv_multipart()[1] == b"ours"
        assert not rank.socket.poll(0)
