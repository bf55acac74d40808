"""The code that the front end's *Insert Code* writes means what its form said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from IPython.core.interactiveshell import InteractiveShell

from jupyter_dist_server.notebook.magics.pool_magics import PoolMagics
from jupyter_dist_server.notebook.session.current_pool import CurrentPool
from jupyter_dist_server.placement.requests.request import PoolRequest

SAMPLES = json.loads(Path(__file__).with_name("start_code.json").read_text("utf-8"))


class NoPool:
    """What a notebook has before its first pool."""

    def living(self) -> None:
        """Find no pool that runs already."""


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["line"])
def test_the_line_asks_for_what_was_chosen(
    sample: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole of IPython reads the line, which may fill in variables and take a `?` for help."""
    asked: list[PoolRequest] = []
    monkeypatch.setattr(PoolMagics, "start", lambda _, request: asked.append(request))
    shell = InteractiveShell.instance()
    shell.user_ns |= {"HOME": "filled in", "x": "filled in"}
    shell.register_magics(PoolMagics(shell, cast(CurrentPool, NoPool())))
    try:
        shell.run_cell(sample["line"]).raise_error()
    finally:
        InteractiveShell.clear_instance()
    assert asked[0] == PoolRequest.from_json(sample["choice"])
