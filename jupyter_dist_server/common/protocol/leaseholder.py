"""Who holds a lease, in a file that all users can read, and others may forge."""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec

_LONGEST_WORD = 200
"""Characters that are kept of each word that another user wrote."""

_Count = Annotated[int, msgspec.Meta(ge=0)]


class Leaseholder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who holds a lease: a pool, or a job; the file's owner is its `user`."""

    pool: str | None = None
    pid: int | None = None
    since: float | None = None
    notebook: str | None = None
    """Or the job's name."""
    host: str | None = None
    gpus: tuple[str, ...] = ()
    shared: bool = False
    """Whether others who also share may lease the GPUs too."""
    ends_by: float | None = None
    idle_since: float | None = None
    """Since when no cell has run in a pool."""
    park_after: float | None = None
    """Seconds of idle time after which a pool gives its GPUs to those who wait."""
    job: int | None = None
    label: str | None = None
    """The job's ID as users see it."""
    store: str | None = None
    cpus: _Count = 0
    memory_mib: _Count = 0
    share_mib: _Count | None = None

    def encode(self) -> bytes:
        """Return the content of the file."""
        return json.dumps(
            msgspec.to_builtins(self)
        ).encode()  # unlike msgspec's, with any file name


_FIELDS = msgspec.structs.fields(Leaseholder)


def decode_leaseholder(content: bytes) -> Leaseholder:
    """Read a file's content, without invalid fields; raises `ValueError` if it is no object."""
    said = json.loads(content)
    if not isinstance(said, dict):
        raise ValueError("no object")
    kept = {field.name: _keep(said.get(field.name), field.type) for field in _FIELDS}
    return Leaseholder(**{name: value for name, value in kept.items() if value is not None})


def _keep(value: object, kind: Any) -> Any:
    """Return what may be shown of a value that another user wrote: it may be anything."""
    if isinstance(value, str):
        value = "".join(filter(str.isprintable, value))[:_LONGEST_WORD]
    elif isinstance(value, int | float) and not abs(value) < 2**32:
        # As a moment, also: what is not finite, or beyond all calendars, breaks who shows it.
        return None
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None
