"""The same work on pools of several sizes, and the bandwidth between ranks."""

from __future__ import annotations

from ..notebook_driver import Notebook

PLAIN_ONLY = True
"""The server has no part in it."""


def test_a_function(no_pool: Notebook) -> None:
    result = no_pool.ok(
        "import time\nshare = 1.0\ndef work():\n"
        "    time.sleep(share / world_size)\n    dist.barrier()\n    print('hidden')\n"
        "%dist_scaling --ranks 1,2 work"
    )
    assert result.lines[0].startswith("2 ranks are "), result.shown
    assert " times as fast as 1 rank: efficiency " in result.lines[0]
    rows = [line.split() for line in result.lines[1:4]]
    assert rows[0][:4] == ["ranks", "time", "speed-up", "efficiency"]
    assert [row[0] for row in rows[1:]] == ["1", "2"]
    assert len(result.mime("image/png")) == 1
    assert "hidden" not in result.shown
    assert no_pool.refused("%dist_status") == "no_pool"


def test_work_that_fails(no_pool: Notebook) -> None:
    """What was measured before is shown, and no pool is left."""
    result = no_pool.run(
        "def work():\n    assert world_size < 2\n%dist_scaling --weak --ranks 1,2 work"
    )
    assert result.status == "error" and "AssertionError" in result.error
    assert "Cell In[" in result.error and "dist_call" not in result.error
    assert result.lines[1].split()[0] == "1", result.shown
    assert no_pool.refused("%dist_status") == "no_pool"


def test_a_script(no_pool: Notebook) -> None:
    no_pool.ok(
        "open('scaled.py', 'w').write('import sys; assert sys.argv[1:] == [\"--lr\", \"1\"]')"
    )
    assert no_pool.ok("%dist_scaling --ranks 1 scaled.py --lr 1").lines[1].split()[0] == "1"


def test_mistakes(no_pool: Notebook) -> None:
    no_pool.ok("def work(): pass")
    for line in ("unknown", "--ranks 2,1 work", "--ranks 0 work", "--ranks x work", "work 1"):
        assert no_pool.refused(f"%dist_scaling {line}") == "bad_option"
    assert "The notebook has no function `unknown`" in no_pool.fails("%dist_scaling unknown")
    assert no_pool.refused("%dist_scaling missing.py") == "script_missing"
    assert no_pool.refused("%dist_scaling --ranks 1,1000000 work") == "bad_request"
    assert "No pool is running." in no_pool.fails("%dist_links")


def test_links(no_pool: Notebook) -> None:
    no_pool.ok("%dist_init -n 2")
    assert no_pool.refused("def work(): pass\n%dist_scaling work") == "pool_exists"
    result = no_pool.ok("%dist_links")
    assert result.lines[0].startswith("all_reduce on 2 ranks: up to "), result.shown
    assert result.lines[1].split()[0] == "size"
    assert result.lines[2].startswith("1 KiB") and result.lines[-1].startswith("64 MiB")
    assert no_pool.refused("%dist_links --all") == "bad_option"
    assert no_pool.ok("%%distributed\n'_' in globals()").lines
    no_pool.ok("%dist_shutdown")
