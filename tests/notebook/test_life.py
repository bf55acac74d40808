"""A pool's life from the notebook: start, mode, status, end; and bad input."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from jupyter_dist_server.agent.zygote import NAME as ZYGOTE

from ..environment import lives, tagged
from ..notebook_driver import Notebook
from ..result import Result
from ..server_driver import START


def rank_processes(notebook: Notebook) -> list[psutil.Process]:
    """Return agents, ranks and what they started: all but kernels, servers and zygotes."""
    found = []
    for process in tagged(notebook.env):
        with suppress(psutil.Error):  # it may end meanwhile
            if process.name() != ZYGOTE and not any(
                "ipykernel_launcher" in a or a == START for a in process.cmdline()
            ):
                found.append(process)
    return found


@pytest.fixture
def pool(notebook: Notebook) -> Notebook:
    """Return the notebook with a pool of two ranks, started if there is none."""
    if notebook.run("%dist_status").status == "error":
        notebook.ok("%dist_init -n 2")
    return notebook


def one_or_two_lines(error: str) -> str:
    """Check that an error is short and shows no traceback of ours."""
    assert 1 <= len(error.splitlines()) <= 2, error
    assert "Traceback" not in error and ".py" not in error
    return error


@pytest.mark.parametrize(
    "cell",
    [
        "%%distributed\n1",
        "%%rank 0\n1",
        "%dist_status",
        "%sync",
        "%dist_interrupt",
        "%dist_shutdown",
        "%dist_restart",
        "%dist_mode -e",
    ],
)
def test_magics_before_init_say_what_to_do(no_pool: Notebook, cell: str) -> None:
    assert "No pool is running.\nStart one with %dist_init." in one_or_two_lines(
        no_pool.fails(cell)
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-n 0", "The number of ranks must be from 1 to 1024, not 0."),
        ("-n x", "invalid int value: 'x'"),
        ("-n -3", "The number of ranks must be from 1 to 1024, not -3."),
        ("--gpu-ids abc", "--gpu-ids must be indices such as 0,3, or UUIDs, not “abc”."),
        ("--gpu-ids abc,def", "not “abc”"),
        ("--backend smoke", "“smoke” is not a supported backend.\nUse one of: gloo, nccl"),
        ("--backend nccl", "The backend nccl needs GPUs. No NVIDIA GPU found.\n"),
        ("--timeout 0", "“timeout” must be a positive number of seconds"),
        ("--start-method magic", "“magic” is not a start method.\nUse one of: fork, spawn."),
        ("--env NOVALUE", "--env must be K=V, not “NOVALUE”."),
        ("--nonsense", "%dist_init has no option “--nonsense”.\nSee %dist_init?"),
        ("--gpus 2", "“--gpus 2”.\nDid you mean -n 2 or --gpu-ids? See %dist_init?"),
        ("--num_ranks=2", "“--num_ranks=2”.\nDid you mean --num-ranks? See %dist_init?"),
        ("-a 10.0.0.1", "--master-addr must be localhost, not 10.0.0.1; for ranks on several"),
    ],
)
def test_bad_options_of_dist_init(no_pool: Notebook, options: str, message: str) -> None:
    before = rank_processes(no_pool)
    assert message in one_or_two_lines(no_pool.fails(f"%dist_init {options}"))
    assert rank_processes(no_pool) == before


def test_every_magic_has_a_help_with_an_example(notebook: Notebook) -> None:
    names = "%dist_init %%distributed %%rank %dist_mode %dist_status %sync %dist_interrupt"
    names += " %dist_push %dist_pull %dist_scatter %dist_gather"
    names += " %dist_check %dist_vars %dist_memory %dist_scaling %dist_links"
    for name in [*names.split(), "%dist_shutdown", "%dist_reset", "%dist_restart"]:
        code = f"get_ipython().inspector._get_info(get_ipython().find_line_magic('{name[1:]}'))"
        if name.startswith("%%"):
            code = code.replace("find_line_magic('%", "find_cell_magic('")
        shown = notebook.ok(f"print({code}['text/plain'])").text
        assert "Examples::" in shown and name in shown, name


def test_start_shows_progress_and_where_ranks_are(no_pool: Notebook) -> None:
    start = "%dist_init --num-processes 2 --gpu-ids 0,1 --start-method spawn --env OF_ITS=own"
    result = no_pool.ok(start)  # a zygote of the same variables has torch
    shown = [m["content"]["data"]["text/plain"] for m in result.messages if is_display(m)]
    assert any("importing torch" in line for line in shown)
    assert any("2 ready" not in line and "ready" in line for line in shown)
    assert re.match(r"2 ranks ready on the CPU \(gloo\) in \d+\.\d s\.", shown[-1])
    assert "GPU IDs are ignored: No NVIDIA GPU found" in shown[-1]
    assert len(result.mime("text/plain")) == 1, "progress must be one line that changes"
    no_pool.ok("%dist_shutdown")  # the next tests use a pool that was not spawned


def is_display(message: dict) -> bool:
    return message["msg_type"] in ("display_data", "update_display_data")


def test_a_second_init_goes_on_with_what_is_asked_for(pool: Notebook) -> None:
    pool.ok("%%distributed\nkept = 7")
    for line in ("%dist_init", "%dist_init -n 2 --backend gloo", "%dist_init -g 0,1 --wait"):
        assert pool.ok(line).lines == ["This notebook's pool of 2 ranks is already running (gloo)."]
    assert pool.ok("%%distributed\nkept").lines == ["[0-1] 7"]
    assert pool.refused("%dist_init -n 0") == "bad_request"
    for line in (
        "--backend nccl",
        "-n 2 --env A=1",
        "--oversubscribe",
        "--start-method spawn",
    ):
        assert pool.refused(f"%dist_init {line}") == "pool_exists"


def test_a_second_init_says_what_runs(pool: Notebook) -> None:
    error = one_or_two_lines(pool.fails("%dist_init -n 3"))
    assert "This notebook already has a pool: 2 ranks, gloo, RUNNING." in error
    assert "%dist_shutdown" in error


def test_ranks_can_be_chosen_in_every_form(pool: Notebook) -> None:
    for choice, ranks in [
        ("0", [0]),
        (" [0,1]", [0, 1]),
        ("[1]", [1]),
        (" 0-1", [0, 1]),
        (" ::2", [0]),
        (" -1", [1]),
    ]:
        line = f"%%rank{choice}" if choice.startswith(("[", " ")) else f"%%rank {choice}"
        assert pool.ok(f"{line}\nprint('r', rank)").lines == [f"[{r}]   r {r}" for r in ranks]
    assert pool.refused("%%rank 7\n1") == "unknown_rank"
    assert "“one” is not a valid choice of ranks." in pool.fails("%%rank one\n1")
    assert "Choose ranks, such as %%rank [0,2] or %%rank 0-2.\nSee %%rank?" in pool.fails(
        "%%rank\n1"
    )
    assert "are required: script.\nSee %dist_run?" in pool.fails("%dist_run")


def test_mode_sends_all_cells_magics_and_commands(pool: Notebook) -> None:
    assert pool.ok("%dist_mode -e").lines == ["Cells run on all ranks."]
    assert pool.ok("y = rank\nprint(y)").lines == ["[0]   0", "[1]   1"]
    assert sorted(pool.ok("!echo $RANK").lines) == ["[0]   0", "[1]   1"]
    timed = pool.ok("# a comment first\n%timeit -n1 -r1 pass").text
    assert timed.startswith("[0"), "alone, or with the other rank if both took as long"
    assert "2 ranks" in pool.ok("%dist_status").text
    assert pool.ok("%dist_mode -d").lines == ["Cells run in the notebook."]
    assert pool.ok("print('here')").lines == ["here"]


def test_status_and_sync(pool: Notebook) -> None:
    lines = pool.ok("%dist_status").lines
    assert re.match(r"Pool p-\w+: 2 ranks, gloo, on ", lines[0])
    assert lines[1].split() == ["rank", "device", "GPU", "pid", "memory", "state"]
    assert re.match(r"0 +cpu +- +\d+ +[\d.]+ MiB +idle for \d+ s", lines[2])
    assert re.match(r"Ranks 0-1 synchronized in [\d.]+ ms\.", pool.ok("%sync").lines[0])


def test_ranks_work_in_the_notebooks_folder_and_see_its_modules(pool: Notebook) -> None:
    pool.ok("from pathlib import Path\nPath('beside.py').write_text('value = 3')")
    here = pool.ok("import os\nprint(os.getcwd())").text.strip()
    result = pool.ok("%%distributed\nimport os, beside\nprint(os.getcwd(), beside.value)")
    assert result.lines == [f"[0-1] {here} 3"]


def test_restart_replaces_every_rank(pool: Notebook) -> None:
    pool.ok("%%distributed\nz = 1")
    before = pool.ok("%%distributed\nimport os\nos.getpid()").lines
    pool.ok("%dist_restart")
    assert pool.ok("%%distributed\nimport os\nos.getpid()").lines != before
    assert "NameError" in pool.fails("%%distributed\nz")
    assert pool.ok("%%distributed\nt = torch.ones(1)\ndist.all_reduce(t)\nt.item()").lines == [
        "[0-1] 2.0"
    ]


def test_who_stops_waiting_for_a_restart_loses_no_variable(pool: Notebook) -> None:
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)"  # its end takes 2 s
    pool.ok(f"%%distributed\nkept = 7\n{deaf}")
    result = pool.run(
        "%dist_restart --ranks 1", until=lambda r: "restarting" in r.shown, act=pool.interrupt
    )
    assert "KeyboardInterrupt" in result.error
    assert pool.ok("%%distributed\n'kept' in globals()").lines == ["[0]   True", "[1]   False"]


def test_shutdown_leaves_no_process_and_no_file(pool: Notebook) -> None:
    pool.ok(
        "%%distributed\nimport subprocess\n"
        "subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "subprocess.Popen(['sleep', '600'])\nNone"
    )
    family = rank_processes(pool)
    assert len(family) == 7, "an agent, two ranks, four sleeps"
    folder = pool_folder(pool)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert pool.ok("%dist_shutdown").lines == ["Stopped 2 ranks."]
    assert not any(map(lives, family))
    assert not folder.exists()
    pool.ok("%dist_init -n 1")  # and the notebook can start again


def pool_folder(notebook: Notebook) -> Path:
    code = "%%rank 0\nimport os\nfrom ipykernel.connect import get_connection_file\n"
    line = notebook.ok(code + "print(get_connection_file())").lines[0]
    return Path(line.split()[-1]).parent


def test_start_methods(no_pool: Notebook) -> None:
    method = "fork" if no_pool.kernel_id else "spawn"  # the agent does it, with a server or without
    no_pool.ok(f"%dist_init -n 2 --start-method {method} --env MARK=here")
    code = "%%distributed\nimport os\nfork = os.environ['MARK'], dist.get_world_size()\nfork"
    assert no_pool.ok(code).lines == ["[0-1] ('here', 2)"]
    command = "%%rank 0\nimport psutil\nprint('rank.main' in ' '.join(psutil.Process().cmdline()))"
    assert no_pool.ok(command).lines == [f"[0]   {method == 'spawn'}"]


def test_variables_and_folders_need_not_be_utf_8(no_pool: Notebook) -> None:
    no_pool.ok("import os, sys\nodd = os.fsdecode(b'caf\\xe9')\nos.makedirs(odd)\nos.chdir(odd)")
    no_pool.ok("os.environ['ODD'] = odd\nsys.path.append(odd)")
    try:
        no_pool.ok("%dist_init -n 1")
        values = "os.path.basename(os.getcwd()), odd, odd in sys.path"
        said = no_pool.ok(f"%%distributed\nimport os, sys\nodd = os.environ['ODD']\n{values}").lines
        assert said == ["[0] " + str(("caf\udce9", "caf\udce9", True))]
    finally:
        no_pool.ok("os.chdir('..')\ndel os.environ['ODD'], sys.path[-1]\nos.rmdir(odd)")


def test_a_start_can_be_cancelled(no_pool: Notebook) -> None:
    before = rank_processes(no_pool)
    result: Result = no_pool.run(
        "%dist_init -n 2 --env OF_ITS=else",  # a zygote of the same variables has torch
        until=lambda r: "importing torch" in r.shown,
        act=no_pool.interrupt,
    )
    assert result.status == "error"
    assert "The start was cancelled, and all its processes have ended." in result.error
    assert rank_processes(no_pool) == before
    assert no_pool.refused("%dist_status") == "no_pool"


def test_a_start_that_takes_too_long_says_so(no_pool: Notebook) -> None:
    error = no_pool.fails("%dist_init -n 2 --timeout 0.1")
    assert "The pool was not ready within 0.1 s: 2 of 2 ranks" in error
    assert "Try again, or set a longer --timeout." in error


def test_a_rank_that_fails_to_start_is_named_with_its_last_words(no_pool: Notebook) -> None:
    before = rank_processes(no_pool)
    error = no_pool.fails("%dist_init -n 2 --env GLOO_SOCKET_IFNAME=nosuchif")
    assert re.match(r"Rank \d did not start: RuntimeError: .* nosuchif\n", error)
    assert "init_process_group" in error or "ProcessGroupGloo(" in error, "its last words"
    assert rank_processes(no_pool) == before


def test_a_bad_thread_limit_is_named(no_pool: Notebook) -> None:
    error = no_pool.fails("%dist_init -n 2 --env OMP_NUM_THREADS=many")
    assert "invalid literal for int() with base 10: 'many'" in error


def test_an_interpreter_without_torch_is_named(no_pool: Notebook, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('no', name='torch')")
    error = one_or_two_lines(no_pool.fails(f"%dist_init -n 2 --env PYTHONPATH={tmp_path}"))
    assert "torch is not installed in the kernel's environment (" in error
    assert "-m pip install torch" in error


def test_broken_torch_is_said(no_pool: Notebook, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise OSError('libtorch.so is damaged')")
    error = no_pool.fails(f"%dist_init -n 2 --env PYTHONPATH={tmp_path}")
    assert "libtorch.so is damaged" in error


def test_reset_from_any_state(notebook: Notebook) -> None:
    assert notebook.ok("%dist_reset").lines == ["Reset complete. Start a new pool with %dist_init."]
    assert notebook.refused("%dist_status") == "no_pool"


def test_loading_again_says_nothing(pool: Notebook) -> None:
    assert "already loaded" not in pool.ok("%load_ext jupyter_dist_server").text
    assert "already loaded" in pool.ok("%load_ext autoreload\n%load_ext autoreload").text
