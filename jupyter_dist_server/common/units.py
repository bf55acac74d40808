"""How a number of bytes is written, everywhere: in KiB, MiB and GiB."""

from __future__ import annotations

_UNITS = ("KiB", "MiB", "GiB", "TiB")


def format_bytes(size: float) -> str:
    """Return a number of bytes as people read it, such as ``512 B``, ``1.5 MiB`` or ``80 GiB``."""
    if size < 1024:
        return f"{size:.0f} B"
    for unit in _UNITS:
        size /= 1024
        if size < 1023.95 or unit == _UNITS[-1]:
            break
    return f"{size:.1f}".removesuffix(".0") + f" {unit}"
