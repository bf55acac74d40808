"""Jupyter's own messages, whose contents libraries and front ends may add to.

See https://jupyter-client.readthedocs.io/en/stable/messaging.html.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

Content = dict[str, Any]
"""The content of a message, or its header or metadata."""
Message = dict[str, Any]
"""A message: ``header``, ``parent_header``, ``metadata``, ``content`` and ``buffers``."""

NO_REDRAW = "JDIST_NO_REDRAW"
"""Environment variable of a notebook's kernel where displays cannot be redrawn, as in a log."""


def read_json(text: bytes) -> Any:
    """Read a part of a message, much faster than Jupyter does."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):  # NaN, or half a surrogate pair
        return json.loads(text.decode(errors="replace"))


def write_json(value: Any) -> str:
    """Write a part of a message, much faster than Jupyter does."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(value)
