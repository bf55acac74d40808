"""What docs/queue.md shows works, in order, on a machine with eight GPUs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from ..fake_nvml.build import State
from ..waiting import PATIENCE
from .queue_driver import JDIST, Queue

PAGE = Path(__file__).resolve().parents[2] / "docs" / "queue.md"


def test_every_block_of_the_page(
    queue: Queue, fake_nvml: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_nvml.write(gpus=8, memory=80 << 30)
    programs = queue.folder / "bin"
    programs.mkdir()
    (programs / "jdist").write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{JDIST}" "$@"\n')
    (programs / "python").write_text('#!/bin/sh\necho ran "$@"\n')
    cells = [nbformat.v4.new_code_cell("lr = 1")]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, queue.folder / "train.ipynb")
    for program in programs.iterdir():
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    blocks = re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) > 5
    for block in blocks:
        (queue.folder / "train.py").write_text("")
        done = subprocess.run(
            ["bash", "-e", "-c", block],
            cwd=queue.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, block + done.stdout + done.stderr
