"""The time limit of a pool, as its agent counts it."""

from __future__ import annotations

import asyncio
import time
from typing import cast

from jupyter_dist_server.agent.control_socket import Client
from jupyter_dist_server.agent.time_limit import TimeLimit


async def test_it_is_over_once_unless_it_is_extended() -> None:
    over = asyncio.Event()
    limit = TimeLimit(0.05, lambda: None, over.set)
    limit.open()
    limit.extend(3600)
    await asyncio.sleep(0.1)
    assert not over.is_set() and limit.state.limit == 3600.05
    assert limit.state.ends_by and abs(limit.state.ends_by - time.time() - 3600) < 60
    limit = TimeLimit(0.05, lambda: None, over.set)
    limit.open()
    await over.wait()
    assert limit.state.over and limit.state.over.code == "time_limit"


async def test_without_a_limit_there_is_nothing_to_extend_but_the_idle_time() -> None:
    limit = TimeLimit(None, lambda: None, lambda: None)
    limit.open()
    limit.extend(5.0)
    assert (limit.state.limit, limit.state.ends_by) == (None, None)
    assert limit.state.extended is not None


async def test_who_is_gone_does_not_say_any_more_that_the_pool_is_idle() -> None:
    """Otherwise a pool whose server has ended would be idle for ever, for others."""
    limit = TimeLimit(None, lambda: None, lambda: None)
    server, other = cast(Client, object()), cast(Client, object())
    limit.note_idle(server, 5.0)
    limit.remove(other)
    assert limit.state.idle_since == 5.0
    limit.remove(server)
    assert limit.state.idle_since is None
