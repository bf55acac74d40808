"""%dist_resize: ranks join a running pool or leave it, and the others keep their variables."""

from __future__ import annotations

from ..notebook_driver import Notebook

SUM = "%%distributed\nt = torch.ones(1)\ndist.all_reduce(t)\nprint(int(t), world_size, kept)"


def said(notebook: Notebook, cell: str) -> list[str]:
    return [" ".join(line.split()) for line in notebook.ok(cell).lines]


def test_ranks_join_and_leave(ranks: Notebook) -> None:
    ranks.ok("%%distributed\nkept = rank + 10")
    grown = ranks.ok("%dist_resize 4")
    assert "4 ranks ready on the CPU" in grown.shown
    ranks.ok("%%rank 2-3\nkept = rank + 20")
    assert said(ranks, SUM) == ["[0] 4 4 10", "[1] 4 4 11", "[2] 4 4 22", "[3] 4 4 23"]
    environment = (
        "%%distributed\nimport os\nprint(os.environ['WORLD_SIZE'], os.environ['LOCAL_RANK'])"
    )
    assert said(ranks, environment) == [f"[{rank}] 4 {rank}" for rank in range(4)]
    shrunk = ranks.ok("%dist_resize 1")
    assert "1 rank ready on the CPU" in shrunk.shown
    assert said(ranks, SUM) == ["[0] 1 1 10"]
    ranks.ok("%dist_resize 2")
    ranks.ok("%%rank 1\nkept = 'new'")
    assert said(ranks, SUM) == ["[0] 2 2 10", "[1] 2 2 new"]
