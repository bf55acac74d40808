"""A pool may have no process group, for programs that connect its ranks in another way."""

from __future__ import annotations

import pytest

from ..notebook_driver import Notebook

SERVED_ONLY = True


@pytest.fixture(scope="module")
def pool(notebook: Notebook) -> Notebook:
    notebook.ok("%dist_init -n 2 --backend none")
    return notebook


def test_ranks_run_cells_and_have_no_group(pool: Notebook) -> None:
    shown = pool.ok("%%distributed\nprint(dist.is_initialized(), world_size)").lines
    assert shown == ["[0-1] False 2"]
    pool.ok("%dist_status")


@pytest.mark.parametrize("asked", ["", "'gloo'"])
def test_a_program_that_needs_one_is_told_why_there_is_none(pool: Notebook, asked: str) -> None:
    error = pool.fails(f"%%distributed\ndist.init_process_group({asked})")
    assert "it was started with --backend none" in error


def test_cells_go_on_after_a_failure_a_stop_and_a_restart(pool: Notebook) -> None:
    pool.fails("%%rank 1\n1 / 0")
    endless = "%%distributed\nprint('in')\nwhile True:\n    pass"
    pool.run(endless, until=lambda r: "in" in r.text, act=pool.interrupt)
    assert pool.ok("%%distributed\nprint(6)").lines == ["[0-1] 6"]
    pool.ok("%dist_restart --ranks 1")
    assert pool.ok("%%distributed\nprint(7)").lines == ["[0-1] 7"]
    pool.ok("%dist_restart")
    assert pool.ok("%%distributed\nprint(8)").lines == ["[0-1] 8"]
