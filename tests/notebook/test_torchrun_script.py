"""`%dist_export`: the cells that ran on ranks as a script for torchrun."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from jupyter_dist_server.common.protocol.pool_record import GpuReference, PoolRecord, RankRecord
from jupyter_dist_server.notebook.scripts.ran_cells import MOST_CELLS, RanCell, RanCells
from jupyter_dist_server.notebook.scripts.torchrun_script import as_script

from ..notebook_driver import Notebook

SERVED_ONLY = True
"""The server has no part in it, but has imported torch for an earlier notebook."""

CELLS = [
    "from __future__ import annotations\nimport math\nt = torch.ones(2) * rank",
    "dist.all_reduce(t)\nprint('sum', t.tolist())\nt.sum().item()  # shown",
    "# nothing but a comment",
    "many = [i for i in range(60)];",
    "many, world_size, gpu_id, device, local_rank < 2",
    "!true\ndef double(x: Later) -> int:\n    return 2 * x\n\ndouble(rank)",
]
"""What they show can be shown by a script."""
LOST = [
    "%%distributed\nimport asyncio\nawait asyncio.sleep(0)",
    "given = 3\n%dist_push given",
    "%%distributed\n%%bash\ntrue",
]


def test_an_exported_script_prints_what_the_ranks_printed(ranks: Notebook, tmp_path: Path) -> None:
    ranks.ok(f"%cd -q {tmp_path}")
    expected = ["", "one\n  two\n"]
    ranks.ok("%%rank 1\nlines = '''one\n  two'''\nprint(lines)")
    for cell in CELLS:
        ranks.ok(f"%%distributed -o kept\n{cell}")
        for rank in (0, 1):
            shown = f"*[d['text/plain'] + '\\n' for d in kept[{rank}].displays]"
            show = f"print(kept[{rank}].stdout, {shown}, sep='', end='')"
            expected[rank] += ranks.ok(show).text
    ranks.ok("%sync")
    for cell in LOST:
        ranks.ok(cell)
    ranks.fails("%%distributed\n1 / 0")
    ranks.fails("%%rank 7\n1")
    said = ranks.ok("%dist_export 'my train.py'  # all of it").lines
    assert said[0] == (
        "Wrote 11 cells to my train.py. Run it: torchrun --nproc_per_node 2 'my train.py'"
    )
    assert [re.sub(r"Cell \d+: ", "", line) for line in said[1:]] == [
        f"Not translated: {why}"
        for why in (
            "!true",
            "Top-level await.",
            "%dist_push given: values from the notebook.",
            "%%bash",
            "The cell failed.",
        )
    ]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
    command += ["--redirects", "1", "--log-dir", str(tmp_path / "logs"), "my train.py"]
    env = os.environ | {"GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        (log,) = (tmp_path / "logs").glob(f"*/attempt_0/{rank}/stdout.log")
        # gloo of torch 2.8 says on stdout who has connected.
        assert re.sub(r"(?m)^\[Gloo\] .*\n", "", log.read_text()) == expected[rank]


def test_a_file_is_not_overwritten_unless_forced(ranks: Notebook, tmp_path: Path) -> None:
    ranks.ok("%dist_reset")
    assert "No cell of this notebook has run" in ranks.fails("%dist_export train.py")
    ranks.ok("%dist_init -n 2 --env TOKEN=secret")
    ranks.ok("%%distributed\n'first'")
    path = tmp_path / "train.py"
    ranks.ok(f"%dist_export {path}")
    assert "secret" not in path.read_text() and "--env TOKEN" in path.read_text()
    ranks.ok("%dist_shutdown")
    assert "overwrite it with --force" in ranks.fails(f"%dist_export {path}")
    path.write_text("")
    ranks.ok(f"%dist_export --force {path}")
    assert "_show(('first'))" in path.read_text()
    assert "cannot be written: No such file" in ranks.fails(f"%dist_export {tmp_path}/no/train.py")


RANKS = [RankRecord(rank, rank, "cpu", None) for rank in range(2)]
CPU = PoolRecord("p", None, "", 2, "gloo", "cycle", "fork", "", "", ranks=RANKS)
GPUS = replace(CPU, backend="cpu:gloo,cuda:nccl")
GPUS.ranks = [
    RankRecord(rank, rank, f"cuda:{rank}", GpuReference(gpu, str(gpu), f"GPU-{gpu}", "T"))
    for rank, gpu in enumerate((3, 0))
]


def exported(*cells: RanCell, pool: PoolRecord = CPU) -> str:
    """Return a script that is Python."""
    ran = RanCells()
    for cell in cells:
        ran.add(pool, cell)
    script = as_script(ran, "train.py").text
    compile(script, "train.py", "exec")
    return script


def test_a_pool_with_gpus_says_which() -> None:
    script = exported(RanCell("gpu_id", [0, 1], 1, has_value=True), pool=GPUS)
    assert "CUDA_VISIBLE_DEVICES=3,0 torchrun --nproc_per_node 2 train.py" in script
    assert "gpu_id = [3, 0][rank % 2]" in script
    assert 'dist.init_process_group("cpu:gloo,cuda:nccl", device_id=device)' in script


def test_a_pool_with_a_rank_on_the_cpu_says_which() -> None:
    pool = replace(GPUS, backend="gloo", world_size=3)
    pool.ranks = [*GPUS.ranks, RankRecord(2, 2, "cpu", None)]
    script = exported(RanCell("rank", [0, 1, 2], 1), pool=pool)
    assert "CUDA_VISIBLE_DEVICES=3,0 torchrun --nproc_per_node 3 train.py" in script
    assert "device = torch.device(['cuda:0', 'cuda:1', 'cpu'][rank])" in script
    assert "gpu_id = [3, 0, None][rank % 3]" in script


def test_a_pool_without_a_group_gets_none() -> None:
    script = exported(RanCell("rank", [0, 1], 1), pool=replace(CPU, backend="none"))
    assert "_process_group" not in script


def test_cells_that_make_and_end_the_group_share_the_one_of_the_script() -> None:
    script = exported(RanCell("dist.init_process_group('gloo')", [0, 1], 1))
    assert "lambda *_, **__: None" in script and script.endswith("\n_destroy()\n")
    assert "lambda" not in exported(RanCell("1", [0, 1], 1))


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("1, 2", "_show((1, 2))"),
        ("x = 5; (x)  # ü", "x = 5; (_show((x)))  # ü"),
        ("f(\n  1\n)", "_show((f(\n  1\n)))"),
        ("'ü'; 'é'", "'ü'; _show(('é'))"),
        ("x = 7 \\\n  % 2\nx", "_show((x))"),
        ("a?\n# why?\nx", "pass  # a?\n# why?\n_show((x))"),
        (
            "get_ipython()",
            "# Not translated: A script has no `get_ipython`.\n",
        ),
        (
            "In[1] + Out[3]",
            "# Not translated: A script has no `In`.\n# Not translated: A script has no `Out`.\n",
        ),
        ("f = open\nf ==== 1", "# Not translated: Not valid Python.\n# f = open\n# f ==== 1\n"),
        ("%%time\n%time f(x)", "\n_show((f(x)))"),
        ("!true\nx = (7\n% 3)\nx", "pass  # !true\nx = (7\n% 3)\n_show((x))"),
        ("if x:\n    y = !ls \\\n  -l\ny", "if x:\n    pass  # y = !ls \\ -l\n_show((y))"),
        ('s = """\n!true\n%pwd\n"""\n!ls', '\n!true\n%pwd\n"""\npass  # !ls'),
        ("/f 1 2\nx", "f(1, 2)\n_show((x))"),
        ("display(x)", "from IPython.display import display\n"),
    ],
)
def test_how_code_is_translated(code: str, line: str) -> None:
    assert line in exported(RanCell(code, [0, 1], 1, has_value=True))


def test_a_cell_may_call_something_else_dist() -> None:
    cells = [RanCell(code, [0, 1]) for code in ("dist = 3.5", "dist.init_process_group()")]
    for script in (exported(cells[0]), exported(*cells)):
        after = script.partition("dist = 3.5\n")[2]
        assert "process_group" in script and "\ndist.destroy" not in after


def test_only_the_last_cells_are_remembered() -> None:
    ran = RanCells()
    for number in range(MOST_CELLS + 1):
        ran.add(CPU, RanCell("1", [0, 1], number))
    script = as_script(ran, "train.py")
    assert script.cells == MOST_CELLS and script.missing[0].startswith("The first 1 cells")
    ran.add(replace(CPU, id="another"), RanCell("2", [0], 1))
    assert as_script(ran, "train.py").cells == 1
