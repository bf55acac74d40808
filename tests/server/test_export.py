"""What the server exports: cells on ranks are Python."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from ..server_driver import Server
from .client import Client

pytest.importorskip("nbconvert")


def test_cells_on_ranks_are_highlighted_as_python(tmp_path: Path) -> None:
    cells = [f"{magic}\nimport torch" for magic in ("%%distributed", "%%rank 0", "%%unknown")]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in cells],
        metadata={"language_info": {"name": "python", "pygments_lexer": "ipython3"}},
    )
    root = tmp_path / "root"
    root.mkdir()
    nbformat.write(notebook, root / "cells.ipynb")
    server = Server(tmp_path / "home", root)
    try:
        answer = Client(server).raw("GET", "nbconvert/html/cells.ipynb")
    finally:
        server.close()
    assert answer.status == 200
    shown = re.findall(r'<div class="highlight.*?</pre>', str(answer.body), re.DOTALL)
    keyword = '<span class="kn">import</span>'
    assert [keyword in cell for cell in shown] == [True, True, False]
