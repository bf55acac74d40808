"""Jupyter's own messages, which we take and pass on: libraries and front ends fill them as well.

See https://jupyter-client.readthedocs.io/en/stable/messaging.html.
"""

from __future__ import annotations

from typing import Any

Content = dict[str, Any]
"""The content of a message, or its header or metadata."""
Message = dict[str, Any]
"""A message: ``header``, ``parent_header``, ``metadata``, ``content`` and ``buffers``."""
