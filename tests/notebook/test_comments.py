"""Comments and quotes around our magics, as people write them."""

from __future__ import annotations

import pytest

from jupyter_dist_server.notebook.magics.option_parser import without_comment
from jupyter_dist_server.notebook.register import MAGICS

from ..notebook_driver import Notebook

SERVED_ONLY = True
"""The server has no part in it, but has imported torch for an earlier notebook."""


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("-n 4  # start 4", "-n 4"),
        ("# on all", ""),
        ("0  # the first's", "0"),
        ("--env A='x # y' --env B=\"# z\"  # two", "--env A='x # y' --env B=\"# z\""),
        (r'--env A="x \" # y"  # one', r'--env A="x \" # y"'),
        ("--env A=a#b", "--env A=a#b"),
        ("it's # one", "it's"),
        ("", ""),
    ],
)
def test_a_comment_is_what_follows_a_hash_outside_of_quotes(line: str, code: str) -> None:
    assert without_comment(line) == code


EACH = [
    "%dist_init -n 2 --time 1:00:00 --env 'A=x # y' --gpu-ids \"0,1\"  # start 2",
    "%dist_init -n 2  # it runs already",
    "%dist_extend 1:00:00  # another hour",
    "%dist_status  # where they are",
    "%dist_why  # nothing waits",
    "%sync  # all",
    "%dist_mode -e  # all cells",
    "%dist_mode -d  # none",
    "%autopx  # on",
    "%autopx  # off",
    "%%distributed  # on all\nx = rank",
    '%%distributed --ranks "0,1"  # quoted\nx',
    "%%rank 0  # the first\nx",
    '%%rank "[0, 1]"  # both\nx',
    "%%rank[0,1]  # both\nx",
    '%%px -t "[0, 1]"  # both\nx',
    "%px x + 1  # each",
    "n = 3\n%dist_push n  # to all",
    '%dist_push n --ranks "0,1" --as "m"  # renamed',
    "%dist_pull m  # from rank 0",
    '%dist_pull {"a": m}["a"] --rank "1" --as k  # an expression',
    "w = [1, 2]\n%dist_scatter w  # split",
    "%dist_gather w  # joined",
    "%dist_resize 2  # as many as there are",
    "%dist_resume  # it is not parked",
    "%dist_check x m  # equal",
    '%dist_vars --ranks "0"  # of one',
    "%dist_memory  # now",
    "%dist_links  # how fast",
    "%dist_run -m this  # a module",
    "%dist_interrupt  # nothing runs",
    "%dist_debug  # nbdistributed's",
    '%dist_restart --ranks "1"  # one',
    "%dist_export --force '/dev/null'  # a script",
    "%dist_shutdown  # the end",
    "def once(): pass\n%dist_scaling --ranks 1 once  # a function",
    "%dist_reset  # whatever there is",
]


def test_every_magic_takes_a_comment(notebook: Notebook) -> None:
    # There is no second pool to attach to, and none on GPUs to park.
    tried = "".join([*EACH, "%dist_attach", "%dist_park"])
    names = {name for ours in MAGICS for kind in ours.magics.values() for name in kind}
    assert {name for name in names if f"%{name}" in tried} == names
    for cell in EACH:
        notebook.ok(cell)
        if cell == EACH[0]:
            shown = notebook.ok("%%distributed\nimport os\nos.environ['A']").lines
            assert shown == ["[0-1] 'x # y'"]


@pytest.mark.parametrize("above", ["# one\n", "\n  # one\n\n# two's\n"])
def test_comments_may_stand_above_a_cell_magic(ranks: Notebook, above: str) -> None:
    assert ranks.ok(f"{above}%%distributed\nrank < 2").lines == ["[0-1] True"]
    assert ranks.ok(f"{above}%%rank[1]\nrank").lines == ["[1]   1"]
    line = above.count("\n") + 3
    assert f"----> {line} 1 / 0" in ranks.fails(f"{above}%%rank 0\nx = 1\n1 / 0")
    assert ranks.ok(f"{above}%dist_status").lines
    assert ranks.ok(f"{above}print(1)").lines == ["1"]
