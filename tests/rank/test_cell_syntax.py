"""Cells become the same Python as in IPython, also where they are not read token by token."""

from __future__ import annotations

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from jupyter_dist_server.rank.cells.shell import CellSyntax

CELLS = [
    "pass",
    "\n\n  x = 1\n  y = 2",
    ">>> x = 1\n... y = 2",
    "In [1]: x = 1",
    "%%time\nx = 1",
    "%matplotlib inline",
    "x = %pwd",
    "if x:\n    %time y",
    "!ls",
    "x = !ls -l",
    "x != y\nx = y != z",
    "x?",
    "??x.y",
    "if x:\n    x.y?",
    ",f a b",
    "if x:\n    ;f a b",
    "/f a b",
    "x = (\n    1\n    / 2\n)",
    "x = 5 % 3",
    "f'{x!r}'",
    "x = 'ends here?'",
    "def f(",
    "x = '''\n%time\n'''",
    "if x:\n    y\n  z",
]


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_is_transformed_as_in_ipython(cell: str) -> None:
    try:
        expected = TransformerManager().transform_cell(cell)
    except SyntaxError as error:  # IPython shows it as the error of the cell
        expected = type(error).__name__
    try:
        found = CellSyntax().transform_cell(cell)
    except SyntaxError as error:
        found = type(error).__name__
    if found != expected:  # which Python itself refuses, with a better message
        with pytest.raises(SyntaxError):
            compile(found, "cell", "exec")


def test_what_is_python_is_not_read_token_by_token(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr(TransformerManager, "do_token_transforms", refuse)
    assert CellSyntax().transform_cell("x = f(1) / 2\nx != 3") == "x = f(1) / 2\nx != 3\n"
    with pytest.raises(AssertionError, match="it was read"):
        CellSyntax().transform_cell("x = %pwd")


def test_a_transformer_of_the_users_own_is_asked() -> None:
    asked = []

    class Theirs:
        @classmethod
        def find(cls, tokens_by_line: object) -> None:
            asked.append(tokens_by_line)

    syntax = CellSyntax()
    syntax.token_transformers = [*syntax.token_transformers, Theirs]
    syntax.transform_cell("x = 1")
    assert asked
