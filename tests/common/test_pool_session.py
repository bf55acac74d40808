"""Signed messages are read as Jupyter's own session reads them, but for dates."""

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
