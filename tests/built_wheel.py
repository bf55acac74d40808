"""The wheel, built as a release is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"


def build_wheel(folder: Path) -> Path:
    """Build a source distribution, and from it the wheel; return the wheel."""
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", folder, ROOT],
        check=True,
        env=os.environ | {"PIP_CONSTRAINT": str(CONSTRAINTS)},
    )
    (wheel,) = folder.glob("*.whl")
    return wheel
