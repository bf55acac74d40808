"""Who is attached to a pool, as its agent notes it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from typing import cast

import msgspec
import pytest

from jupyter_dist_server.agent.attachments import Attachments
from jupyter_dist_server.agent.control_socket import Client
from jupyter_dist_server.common.processes.process_ref import ProcessRef
from jupyter_dist_server.common.protocol.agents.attachment import KERNEL, SERVER, Attachment

from ..waiting import PATIENCE


class Connection:
    """Stands for a client's connection."""

    def is_closing(self) -> bool:
        """Tell that it is open."""
        return False


async def test_what_a_kernel_says_last_holds_for_its_older_connection_too() -> None:
    """It keeps that one while calls are under way whose answers come there."""

    attachments = Attachments(ProcessRef.of(os.getpid()), 0.0, lambda: None, lambda: None)
    server, old, new, other = (cast(Client, Connection()) for _ in range(4))
    attachments.add(server, Attachment.of_this_process(SERVER))
    attachments.add(old, Attachment.of_this_process(KERNEL, "a", mode=True))
    attachments.add(other, Attachment.of_this_process(KERNEL, "b", mode=True))
    attachments.add(new, Attachment.of_this_process(KERNEL, "a", mode=True))
    attachments.add(new, Attachment.of_this_process(KERNEL, "a", mode=False))
    said = [(one.kernel_id, one.mode) for one in attachments.all()]
    attachments.remove(new)
    assert len(attachments.all()) == 3
    for client in (server, old, other):
        attachments.remove(client)
    assert said == [(None, False), ("a", False), ("b", True), ("a", False)]


async def test_a_server_attaches_again_before_its_lost_connection_is_noticed() -> None:
    attachments = Attachments(ProcessRef.of(os.getpid()), 0.0, lambda: None, lambda: None)
    lost, again, second = (cast(Client, Connection()) for _ in range(3))
    attachments.add(lost, Attachment.of_this_process(SERVER))
    attachments.add(again, Attachment.of_this_process(SERVER))
    attachments.add(
        second, msgspec.structs.replace(Attachment.of_this_process(SERVER), pid=os.getpid() + 1)
    )
    attachments.remove(lost)
    said = attachments.all()
    attachments.remove(again)
    assert [one.pid for one in said] == [os.getpid()]


@pytest.mark.parametrize("why", ["attached", "owner ended", "stopped again"])
async def test_an_agent_waits_no_longer_than_somebody_may_come(why: str) -> None:
    child = subprocess.Popen(["sleep", "1000"])
    attachments = Attachments(ProcessRef.of(child.pid), 0.0, lambda: None, lambda: None)
    attachments.open()
    waiting = asyncio.create_task(attachments.first.wait())
    await asyncio.wait([waiting], timeout=0.1)
    assert not waiting.done()
    client = cast(Client, Connection())
    if why == "attached":
        attachments.add(client, Attachment.of_this_process(KERNEL))
    elif why == "stopped again":
        attachments.first.set()
    else:
        child.kill()
    begun = time.monotonic()
    await waiting
    attachments.remove(client)
    child.kill()
    child.wait()
    assert time.monotonic() - begun < PATIENCE / 2
