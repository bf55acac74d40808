"""Fixtures: a queue of one's own."""

from __future__ import annotations

from ..jobs.conftest import leases as leases
from ..jobs.conftest import queue as queue
