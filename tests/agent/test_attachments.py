"""Who holds a pool, as its agent notes it."""

from __future__ import annotations

import os
from typing import cast

import msgspec

from jupyter_dist_server.agent.attachments import Holders
from jupyter_dist_server.agent.control_socket import Client
from jupyter_dist_server.common.processes import ProcessRef
from jupyter_dist_server.common.protocol.attachment import KERNEL, SERVER, describe


class Connection:
    """Stands for a client's connection."""

    def is_closing(self) -> bool:
        """Tell that it is open."""
        return False


async def test_what_a_kernel_says_last_holds_for_its_older_connection_too() -> None:
    """It keeps that one while calls are under way whose answers come there."""

    holders = Holders(ProcessRef.of(os.getpid()), 0.0, lambda: None, lambda: None)
    server, old, new, other = (cast(Client, Connection()) for _ in range(4))
    holders.add(server, describe(SERVER))
    holders.add(old, describe(KERNEL, "a", mode=True))
    holders.add(other, describe(KERNEL, "b", mode=True))
    holders.add(new, describe(KERNEL, "a", mode=True))
    holders.add(new, describe(KERNEL, "a", mode=False))
    said = [(who.kernel_id, who.mode) for who in holders.all()]
    holders.remove(new)
    assert len(holders.all()) == 3
    for client in (server, old, other):
        holders.remove(client)
    assert said == [(None, False), ("a", False), ("b", True), ("a", False)]


async def test_a_server_that_comes_back_holds_the_pool_before_its_lost_connection_is_noticed() -> (
    None
):
    holders = Holders(ProcessRef.of(os.getpid()), 0.0, lambda: None, lambda: None)
    lost, again, second = (cast(Client, Connection()) for _ in range(3))
    holders.add(lost, describe(SERVER))
    holders.add(again, describe(SERVER))
    holders.add(second, msgspec.structs.replace(describe(SERVER), pid=os.getpid() + 1))
    holders.remove(lost)
    said = holders.all()
    holders.remove(again)
    assert [who.pid for who in said] == [os.getpid()]
