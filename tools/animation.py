"""``make animation``: join the pictures of the browser test, whose names end with their seconds."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
TAKEN = ROOT / "ui-tests/test-results/animation"
MOST = 2_000_000
"""Bytes of a file: a page that shows it must load fast."""


def join(pictures: list[Path], out: Path) -> None:
    """Write an animation; pictures that are the same become one.

    Parameters
    ----------
    pictures : list of Path
        Named ``NUMBER-SECONDS.png``, in order.
    out : Path
        The file for it, in the format WebP.
    """
    frames: list[Image.Image] = []
    durations: list[int] = []
    for path in pictures:
        frame = Image.open(path).convert("RGB")
        milliseconds = round(1000 * float(path.stem.partition("-")[2]))
        if frames and frame.tobytes() == frames[-1].tobytes():
            durations[-1] += milliseconds
        else:
            frames.append(frame)
            durations.append(milliseconds)
    first, *others = frames
    first.save(
        out,
        save_all=True,
        append_images=others,
        duration=durations,
        loop=0,
        lossless=True,
        minimize_size=True,
        method=4,
    )


def main() -> int:
    """Write an animation for each theme, and return the exit status."""
    parser = argparse.ArgumentParser(prog="animation", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/images", help="the folder")
    options = parser.parse_args()
    for folder in sorted(TAKEN.iterdir()):
        out = options.out / f"animation-{folder.name}.webp"
        join(sorted(folder.glob("*.png")), out)
        size = out.stat().st_size
        print(f"{out}: {size / 1000:.0f} kB")
        if size > MOST:
            print(f"It has more than {MOST / 1000:.0f} kB.", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
