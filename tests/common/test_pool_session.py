"""Signed messages are written and read as Jupyter's own session does, but for dates."""

from __future__ import annotations

from typing import Any

import pytest
from jupyter_client.session import Session

from jupyter_dist_server.common.protocol.pool_session import PoolSession

KEY = b"a key"


def signed(content: Any, key: bytes = KEY) -> list[bytes]:
    """Return the frames of a message, without those that route it."""
    sender = Session(key=key)
    request = sender.msg("dist_cell_request", {"code": "x"})
    frames = sender.serialize(sender.msg("execute_reply", content, parent=request))
    return [*sender.feed_identities(frames)[1], b"a buffer"]


def test_a_message_is_the_same_as_jupyters() -> None:
    frames = signed({"status": "ok", "number": 1.5, "text": "é", "none": None})
    ours, theirs = PoolSession(key=KEY).deserialize(frames), Session(key=KEY).deserialize(frames)
    for about in ("header", "parent_header"):
        assert isinstance(ours[about].pop("date"), str)
        del theirs[about]["date"]
    assert ours == theirs


@pytest.mark.parametrize("ident", [None, b"topic", [b"a", b"b"]])
@pytest.mark.parametrize("metadata", [None, {"cell": 3}])
def test_jupyter_reads_what_is_written(ident: Any, metadata: Any) -> None:
    ours, theirs = PoolSession(key=KEY), Session(key=KEY)
    request = theirs.deserialize(signed({})[:5])
    message = ours.msg("status", {"text": "é", "number": 1.5}, request, metadata=metadata)
    idents, frames = theirs.feed_identities(ours.serialize(message, ident))
    assert idents == ([] if ident is None else [ident] if isinstance(ident, bytes) else ident)
    read = theirs.deserialize(frames)
    del read["buffers"]
    assert read == message


def test_a_header_that_is_no_unicode_is_written_as_by_jupyter() -> None:
    message = Session(key=KEY).msg("status", {})
    message["header"]["username"] = "half a pair: \udc80"
    assert PoolSession(key=KEY).serialize(message)[2:] == Session(key=KEY).serialize(message)[2:]


@pytest.mark.parametrize("key", [b"another key", b""])
def test_a_strangers_message_is_refused(key: bytes) -> None:
    with pytest.raises(ValueError, match=r"signature|unpack"):
        PoolSession(key=KEY).deserialize(signed({}, key))


def test_a_message_that_comes_again_is_refused() -> None:
    session, frames = PoolSession(key=KEY), signed({})
    session.deserialize(frames)
    with pytest.raises(ValueError, match="Duplicate"):
        session.deserialize(frames)


def test_a_message_that_is_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="too short"):
        PoolSession(key=KEY).deserialize(signed({})[:4])
