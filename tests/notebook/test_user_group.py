"""Programs written for torchrun initialise and destroy their process group on ranks, too."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ..libraries.program import PROGRAMS
from ..notebook_driver import Notebook
from .places import stop_at

SERVED_ONLY = True
"""The server has no part in it, but has imported torch for an earlier notebook."""

REDUCE = "t = torch.ones(1)\ndist.all_reduce(t)\nprint(int(t))"


@pytest.fixture(scope="module")
def scripts(ranks: Notebook, tmp_path_factory: pytest.TempPathFactory) -> Notebook:
    """Return a notebook whose ranks find the scripts."""
    folder = tmp_path_factory.mktemp("scripts")
    shutil.copytree(PROGRAMS, folder, dirs_exist_ok=True)
    ranks.ok(
        f"%%distributed\n%cd -q {folder}\nimport os, sys\nsys.path.insert(0, '')\n"
        "port = os.environ['MASTER_PORT']"
    )
    return ranks


@pytest.fixture
def pool(scripts: Notebook) -> Notebook:
    """Return that notebook with its group initialised and torchrun's port."""
    scripts.ok(
        "%%distributed -q\nimport os\nos.environ['MASTER_PORT'] = port\ndist.init_process_group()"
    )
    return scripts


def reduces(pool: Notebook) -> bool:
    return pool.ok(f"%%distributed\n{REDUCE}").lines == ["[0-1] 2"]


def test_a_script_for_torchrun_runs_again_and_again(pool: Notebook) -> None:
    for _ in range(3):
        once = pool.ok("%%distributed\n%run uneven.py").lines
    assert once[-1].endswith("after 4 steps")
    assert pool.ok("%%distributed\nfor _ in range(3):\n    %run uneven.py").lines == once * 3
    pool.ok("%sync")


def test_functions_that_set_up_and_clean_up(pool: Notebook) -> None:
    names = ("demo_basic", "demo_checkpoint", "demo_no_sync")
    calls = "".join(f"ddp.{name}(rank, world_size)\n" for name in names)
    for _ in range(3):
        pool.ok(f"%%distributed\nimport ddp\n{calls}")
    call = "applications.init_process(rank, world_size, applications.run)\n"
    pool.ok(f"%%distributed\nimport applications\n{call * 2}")
    pool.ok("%sync")


@pytest.mark.parametrize(
    ("backend", "arguments"),
    [
        ("gloo", "'gloo', init_method='env://'"),
        ("gloo", "init_method='tcp://127.0.0.1:12355', rank=rank, world_size=world_size"),
        (
            "cpu:gloo",
            "backend='cpu:gloo', timeout=datetime.timedelta(seconds=30), "
            "device_id=torch.device('cpu')",
        ),
        ("gloo", "'gloo', store=dist.HashStore(), rank=rank, world_size=world_size"),
    ],
)
def test_whatever_its_arguments_a_program_gets_the_group(
    pool: Notebook, backend: str, arguments: str
) -> None:
    pool.ok(
        "%%distributed\nimport datetime\ndist.destroy_process_group()\n"
        f"assert not dist.is_initialized()\ndist.init_process_group({arguments})\n"
        f"assert dist.is_initialized() and dist.get_backend() == {backend!r}"
    )
    assert reduces(pool)


def test_a_script_does_not_see_the_backend_that_a_cell_asked_for(
    pool: Notebook, tmp_path: Path
) -> None:
    script = tmp_path / "backend.py"
    script.write_text("import torch.distributed as dist\nprint(dist.get_backend())\n")
    pool.ok("%%distributed\ndist.init_process_group('cpu:gloo')")
    assert pool.ok("%%distributed\nprint(dist.get_backend())").lines == ["[0-1] cpu:gloo"]
    assert pool.ok(f"%dist_run {script}").lines == ["[0-1] gloo"]


def test_what_a_program_says_of_time_limits_holds_until_it_destroys_the_group(
    pool: Notebook,
) -> None:
    limit = "dist.group.WORLD._get_backend(torch.device('cpu')).options._timeout"
    pool.ok(
        f"%%distributed\nimport datetime\nbefore = {limit}\n"
        "dist.init_process_group(timeout=datetime.timedelta(seconds=7))\n"
        f"assert {limit}.seconds == 7\n"
        "dist.destroy_process_group()\ndist.init_process_group()\n"
        f"assert {limit} == before"
    )


def test_after_a_destroy_torch_says_which_call_brings_the_group_back(pool: Notebook) -> None:
    pool.ok("%%distributed\ndist.destroy_process_group()")
    error = pool.fails(f"%%distributed\n{REDUCE}")
    assert "please make sure to call init_process_group" in error
    pool.ok("%sync")
    pool.ok("%%distributed\nassert not dist.is_initialized()\ndist.init_process_group()")
    assert reduces(pool)


def test_groups_of_the_users_own_end_with_the_default_one(pool: Notebook) -> None:
    pool.ok("%%distributed\nown = dist.new_group([0, 1])\ndist.destroy_process_group()")
    error = pool.fails("%%distributed\ndist.init_process_group()\ndist.get_group_rank(own, 0)")
    assert "is not registered" in error
    assert reduces(pool)
    pool.ok("%%distributed\nown = dist.new_group([0, 1])\ndist.destroy_process_group(own)")
    assert reduces(pool)


def test_a_group_that_was_destroyed_cannot_be_destroyed_again(pool: Notebook) -> None:
    pool.ok("%%distributed\nold = dist.group.WORLD\ndist.destroy_process_group(old)")
    error = pool.fails("%%distributed\ndist.destroy_process_group(old)")
    assert "Invalid process group specified" in error
    pool.ok("%%distributed\ndel old\ndist.init_process_group('cpu:gloo')")
    assert reduces(pool)


def test_some_ranks_alone_get_it_without_waiting_for_the_others(pool: Notebook) -> None:
    pool.ok("%%rank 0\ndist.destroy_process_group()\ndist.init_process_group('gloo')")
    pool.ok("%%rank 0\ndist.destroy_process_group()")
    pool.ok("%%rank 0\ndist.init_process_group('gloo')")
    assert reduces(pool)


def test_groups_are_named_alike_after_some_ranks_alone_have_destroyed_theirs(
    pool: Notebook,
) -> None:
    new = "own = dist.new_group([0, 1])\ndist.all_reduce(torch.ones(1), group=own)\n"
    pool.ok(f"%%distributed\n{new}dist.destroy_process_group(own)")
    pool.ok("%%rank 0\ndist.destroy_process_group()\ndist.init_process_group()")
    pool.ok(f"%%distributed\n{new}dist.destroy_process_group(own)")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("'gloo', rank=rank, world_size=4", "called with world_size=4, but this is rank"),
        ("'gloo', rank=0, world_size=2", "called with rank=0, but this is rank 1"),
        ("'mpi'", "called with mpi, but this pool uses gloo"),
    ],
)
def test_another_group_is_refused_in_one_sentence(
    pool: Notebook, arguments: str, sentence: str
) -> None:
    assert sentence in pool.fails(f"%%distributed\ndist.init_process_group({arguments})")
    assert reduces(pool)


def test_torchs_own_errors_have_no_frame_of_ours(pool: Notebook) -> None:
    for call in ("dist.destroy_process_group(3)", "dist.new_group([0, 1], timeout=3)"):
        error = pool.fails(f"%%distributed\n{call}")
        assert call in error and "jupyter_dist" not in error and "hidden" not in error


def test_a_program_that_asks_for_nccl_is_told_that_it_has_gloo(pool: Notebook) -> None:
    result = pool.ok("%%distributed\ndist.init_process_group('nccl')")
    assert "called with nccl, but this pool uses gloo instead" in result.stream("stderr")
    pool.ok("%%distributed\nassert dist.get_backend() == 'gloo'")


def test_meshes_get_the_group_too(pool: Notebook) -> None:
    mesh = "from torch.distributed.device_mesh import init_device_mesh\n"
    mesh += "init_device_mesh('cpu', (2, 1))\ndist.destroy_process_group()"
    for _ in range(2):
        pool.ok(f"%%distributed\n{mesh}")


def test_a_forked_child_makes_a_group_of_its_own(pool: Notebook) -> None:
    pool.ok(
        "%%rank 0\nimport socket\nimport torch.multiprocessing as mp\n"
        "def child(rank, port):\n"
        "    assert dist.get_rank() == 0, 'what a forked DataLoader worker asks'\n"
        "    where = f'tcp://127.0.0.1:{port}'\n"
        "    dist.init_process_group('gloo', init_method=where, rank=rank, world_size=2)\n"
        "    t = torch.ones(1)\n    dist.all_reduce(t)\n    assert t.item() == 2\n"
        "    dist.destroy_process_group()\n"
        "with socket.create_server(('127.0.0.1', 0)) as s:\n    free = s.getsockname()[1]\n"
        "mp.start_processes(child, (free,), 2, start_method='fork')"
    )
    assert reduces(pool)


def test_a_script_that_ranks_start_has_a_rendezvous_of_its_own(pool: Notebook) -> None:
    cell = "%%distributed\nimport sys\n!{sys.executable} windows.py"
    for _ in range(2):
        assert "[0]   SUCCESS: 16 outputs, the first is (3, 4)" in pool.ok(cell).lines
    assert reduces(pool)


def test_sync_with_a_rank_that_is_stuck_ends_and_says_so(pool: Notebook) -> None:
    stuck = (
        "%%rank 1\nimport ctypes\nmutex = ctypes.create_string_buffer(64)\nprint('in')\n"
        "[ctypes.CDLL(None).pthread_mutex_lock(mutex) for _ in '12']"
    )
    result = stop_at(pool, stuck, {1: 5}, locked=1)
    assert "Rank 1 did not stop" in result.error
    pool.ok("%config CellMagics.sync_timeout = 20")
    error = pool.fails("%sync")
    assert "after 20 s" in error and "Rank 1 still runs In" in error
    pool.ok("%dist_restart --ranks 1\n%config CellMagics.sync_timeout = 60")
    pool.ok("%sync")
