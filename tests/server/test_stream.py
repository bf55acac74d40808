"""The WebSocket that pushes pool states."""

from __future__ import annotations

import threading
import time

from .client import ENDED, Client
from .stream import Frame, connect, read, read_until

DEEP = "[" * 50_000


def states(frame: Frame) -> list[str]:
    """Return the states of the ranks in a frame."""
    return [rank["state"] for rank in frame["pool"]["ranks"]]


async def test_the_stream_tells_the_whole_life_of_a_pool(client: Client) -> None:
    kernel = client.raw("POST", "api/kernels", body={"name": "python3"}).body["id"]
    listed = client.get("pools")["pools"]
    before = time.time()
    stream = await connect(client)
    first, after = await read(stream), time.time()
    assert first == {"type": "pools", "pools": listed, "time": first["time"]}
    assert before - 1 < first["time"] < after

    # From here on nothing is asked for: all news are pushed.
    request = {"kernel_id": kernel, "num_ranks": 2}
    pool_id = client.post("pools", request, 202)["id"]
    # What an earlier test has stopped may be gone only now.
    frames = await read_until(
        stream, lambda f: f.get("pool", {}).get("state") in ("RUNNING", *ENDED)
    )
    start = [frame for frame in frames if frame["type"] != "pool_removed"]
    assert {frame["pool"]["id"] for frame in start} == {pool_id}
    seen = [frame["pool"]["state"] for frame in start]
    assert set(seen) == {"CONFIGURING", "RUNNING"}
    assert seen == sorted(seen)
    versions = [frame["pool"]["version"] for frame in start]
    assert versions == sorted(set(versions))

    work = threading.Thread(
        target=client.execute, args=(pool_id, "while True: pass"), kwargs={"ranks": [1]}
    )
    work.start()
    busy = await read_until(stream, lambda f: "busy" in states(f))
    assert states(busy[-1]) == ["idle", "busy"]
    client.post(f"pools/{pool_id}/interrupt", {"ranks": [1]}, 202)
    await read_until(stream, lambda f: states(f) == ["idle", "idle"])
    work.join()

    # A second listener gets the same picture at once.
    second = await connect(client)
    first_frame = await read(second)
    (known,) = [pool for pool in first_frame["pools"] if pool["id"] == pool_id]
    assert known["state"] == "RUNNING"
    second.close()

    client.raw("DELETE", f"api/kernels/{kernel}")
    end = await read_until(stream, lambda f: f["type"] == "pool_removed")
    assert end[-1]["id"] == pool_id
    # Its last state may be left out: there is no such pool any more.
    assert {frame["pool"]["state"] for frame in end[:-1]} <= {"RUNNING", "COMPLETING", "COMPLETED"}
    stream.close()


async def test_what_cannot_be_understood_is_answered(client: Client) -> None:
    stream = await connect(client)
    await read(stream)
    for said in (
        "not JSON",
        b"\x00\xff",
        "[]",
        "3",
        '{"watch": "gpus"}',
        '{"watch": ["cpus"]}',
        DEEP,
    ):
        await stream.write_message(said, binary=isinstance(said, bytes))
        error = await read(stream)
        assert (error["type"], error["code"], error["field"]) == ("error", "bad_request", "watch")
        assert '{"watch": ["gpus"]}' in error["hint"]
    failing = {"num_ranks": 1, "python": "/no/such/python"}
    pool_id = client.post("pools", failing, 202)["id"]
    frames = await read_until(stream, lambda f: f.get("pool", {}).get("state") == "FAILED")
    assert frames[-1]["pool"]["id"] == pool_id
    stream.close()
