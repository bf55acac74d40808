"""An open panel does not keep an idle server alive; somebody who works does."""

from __future__ import annotations

from .client import Client
from .stream import connect, read_until


def last_activity(client: Client) -> str:
    """Return when the server last did something that counts."""
    moment: str = client.raw("GET", "api/status").body["last_activity"]
    return moment


async def test_looking_is_no_activity_and_working_is(client: Client) -> None:
    pool = client.start(num_ranks=1)

    before = last_activity(client)
    gpus = ("gpus", "gpus/history", "gpus/export.csv", "gpus/export.jsonl")
    for route in ("status", *gpus, "cells", "pools", f"pools/{pool['id']}", "kernels/none/pool"):
        client.call("GET", route)
    await watch(client)
    assert last_activity(client) == before

    moments = [before]
    for method, what, body in (
        ("POST", "/execute", {"code": "1"}),
        ("POST", "/interrupt", {}),
        ("POST", "/restart", None),
        ("DELETE", "?wait=1", None),
    ):
        answer = client.call(method, f"pools/{pool['id']}{what}", body=body)
        assert answer.status < 300
        moments.append(last_activity(client))
        if what == "/restart":
            client.follow(answer.body, "RUNNING")
    client.post("pools", {"num_ranks": 1, "python": "/no/such/python"}, 202)
    moments.append(last_activity(client))
    assert moments == sorted(set(moments))


async def watch(client: Client) -> None:
    """Listen to the stream, and look at the GPUs, until it has said something of them."""
    stream = await connect(client)
    await stream.write_message('{"watch": ["gpus"]}')
    await read_until(stream, lambda frame: frame["type"] == "history")
    stream.close()
