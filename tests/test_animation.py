"""The README's animation, and the tool that makes it of pictures."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from tools.animation import MOST, join

from .built_wheel import ROOT


def test_pictures_that_are_the_same_become_one(tmp_path: Path) -> None:
    named = {"000-0.1": "red", "001-0.3": "red", "002-1.5": "blue"}
    for name, colour in named.items():
        Image.new("RGB", (8, 8), colour).save(tmp_path / f"{name}.png")
    out = tmp_path / "out.webp"
    join(sorted(tmp_path.glob("*.png")), out)
    shown = []
    with Image.open(out) as animation:
        for frame in range(animation.n_frames):
            animation.seek(frame)
            animation.load()
            shown.append((animation.convert("RGB").getpixel((4, 4)), animation.info["duration"]))
    assert shown == [((255, 0, 0), 400), ((0, 0, 255), 1500)]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_readme_moves_and_loads_fast(theme: str) -> None:
    file = f"docs/images/animation-{theme}.webp"
    assert file in (ROOT / "README.md").read_text()
    assert (ROOT / file).stat().st_size < MOST
    with Image.open(ROOT / file) as animation:
        assert animation.n_frames > 10
