"""Settings of the machine that give other users more access than they need."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

_SETTINGS = {
    "protected_symlinks": "make your programs follow symbolic links in shared folders",
    "protected_hardlinks": "keep files that you delete, by hard links",
}


def weak_points() -> list[str]:
    """Return a sentence for each; see docs/security.md."""
    found = []
    for name, what in _SETTINGS.items():
        setting = Path("/proc/sys/fs", name)
        if setting.exists() and setting.read_text().strip() == "0":
            found.append(f"Other users can {what}. Ask the administrator to set fs.{name} to 1.")
    folder = tempfile.gettempdir()
    mode = os.stat(folder).st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        found.append(
            f"Other users can remove and rename your files in {folder}. Ask the administrator to "
            "make it sticky (chmod +t), or set TMPDIR to another folder."
        )
    return found
