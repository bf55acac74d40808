"""Which cell has made a variable."""

from __future__ import annotations

from pathlib import Path

from jupyter_dist_server.rank.variables.memory import Makers

from ..pool_driver import client_of, request, running, text_of


class Thing:
    """What can be referred to weakly, as tensors and modules can."""


def test_a_new_object_at_an_old_address_is_another_cells() -> None:
    makers = Makers()
    namespace: dict[str, object] = {"x": Thing(), "n": 1}
    for cell in range(2, 20):
        makers.note(namespace, cell - 1)
        namespace.pop("x")
        namespace["x"] = Thing()
        makers.note(namespace, cell)
        assert makers.cell_of("x", namespace["x"]) == cell
    assert makers.cell_of("n", 1) == 1


def test_copies_of_cells_are_left_out() -> None:
    makers = Makers()
    namespace = {f"_i{n}": f"cell {n}" for n in range(9)} | {"_1": [1], "_idle": [2]}
    makers.note(namespace, 3)
    made = {name: makers.cell_of(name, value) for name, value in namespace.items()}
    assert {name for name, cell in made.items() if cell} == {"_1", "_idle"}


def test_keys_of_any_kind_do_no_harm() -> None:
    makers = Makers()
    namespace: dict[object, object] = {"x": Thing(), 1: "text", (2,): [1]}
    makers.note(namespace, 3)
    assert makers.cell_of("x", namespace["x"]) == 3


async def test_the_namespace_that_is_looked_through_does_not_grow_with_each_cell(
    tmp_path: Path,
) -> None:
    names = "print(len([name for name in globals() if name.startswith('_i')]), len(In))"
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        for cell in range(1, 200, 3):  # the notebook has other cells in between
            await client.execute("pass", [0], lambda *_: None, execution_count=cell)
        kept, cells = map(int, (await text_of(client, names)).split())
        assert kept < 40 and cells > 60
