"""Scripts that torchrun starts in jobs: ``jdist why`` and the log say what a cell would say."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest

from jupyter_dist_server.cli.main import main
from jupyter_dist_server.jobs.job_command import evidence_folder
from jupyter_dist_server.jobs.select_jobs import select_one
from jupyter_dist_server.jobs.store.job import Job
from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_folder import store_folder

from ..conftest import pool_folders
from ..fake_nvml.build import State
from ..jobs.conftest import leases as leases
from ..jobs.conftest import queue as queue
from ..jobs.queue_driver import Queue
from ..waiting import wait_for
from . import test_elsewhere, test_mismatch, test_models, test_never_joined, test_order
from .scene import SIZE, Case

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="jobs run on Linux only")

HEAD = (
    "import time, torch, torch.distributed as dist; dist.init_process_group('gloo'); "
    "rank, world_size = dist.get_rank(), dist.get_world_size()\n"
)
END = "\ntime.sleep(600)\n"
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node"]
_ENDS_TORCHRUN = {"exception", "sys.exit", "backward, and an error on a rank"}
"""Scenes in which a rank fails: torchrun ends the others."""
_ASK_USER = {"`input()`", "a breakpoint"}
MODULES = (test_never_joined, test_mismatch, test_order, test_models, test_elsewhere)
SCENES = [
    case
    for module in MODULES
    for case in module.SCENES
    if case.name not in _ENDS_TORCHRUN | _ASK_USER
]
QUICK = {
    "sleeps",
    "a group with a name",
    "another shape",
    "two groups in different orders",
    "backward that a rank leaves out",
    "a DataLoader's worker",
}
"""The scenes that are always run: one of each kind."""


def as_script(case: Case) -> tuple[str, str, str]:
    """Return a scene as a script, and what is said of it.

    A rank that has ended its cell would end its process, and gloo the wait of the others: here it
    goes on with something else.
    """
    script = f"{HEAD}{case.cell}{END}"
    last = script.count("\n")
    return script, *(_of_script(said, last) for said in (case.sentence, case.with_line))


def _of_script(said: str, last: int) -> str:
    at_end = f"in `time.sleep`, scene.py line {last}"
    said = said.replace("it has finished its cell", f"it is {at_end}")
    said = said.replace("they have finished their cells", f"they are {at_end}")
    said = re.sub(r"(Rank \d) never began it: it is in", r"\1 has not begun it: it is in", said)
    said = re.sub(r"(Ranks \S+) never began it: they", r"\1 have not begun it: they", said)
    return re.sub(r"In\[9\] line (\d+)", lambda found: f"scene.py line {int(found[1]) + 1}", said)


def why(*asked: str) -> list[dict[str, Any]]:
    """Return what ``jdist why`` tells, nothing if it refuses."""
    said, refused = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(refused):
        code = main(["why", "--json", *asked])
    found: list[dict[str, Any]] = json.loads(said.getvalue() or "[]")
    stuck = any(one["verdict"] and one["verdict"]["stuck"] for one in found)
    assert code == (2 if refused.getvalue() else int(stuck))
    return found


def until(asked: list[str], *sentences: str) -> dict[str, Any]:
    """Ask until one of the sentences is said."""
    heard: set[str] = set()

    def said() -> dict[str, Any] | None:
        for one in why(*asked):
            text = re.sub(r"#\d+", "#N", one["text"])
            heard.add(text)
            if text.startswith(tuple(filter(None, sentences))):
                return one
        return None

    try:
        found: dict[str, Any] = wait_for(said, " or ".join(sentences))
    except AssertionError:
        raise AssertionError(f"not {sentences}, but {heard}") from None
    return found


@pytest.fixture
def machine(queue: Queue, fake_nvml: State) -> Queue:
    fake_nvml.write(gpus=4)
    return queue


def start(queue: Queue, script: str, *options: str) -> str:
    """Submit a script of three ranks."""
    (queue.folder / "scene.py").write_text(script)
    path = f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}"
    options = ("-c", "0", "-G", str(SIZE), "--env", path, *options)
    return queue.submit("--torchrun", *options, "scene.py")


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if case.name in QUICK else pytest.mark.slow) for case in SCENES],
    ids=lambda case: case.name,
)
def test_a_scene(machine: Queue, case: Case) -> None:
    script, *sentences = as_script(case)
    found = until([start(machine, script)], *sentences)
    assert found["world_size"] == SIZE and found["stacks"].count("(pid ") >= 1


SLEEPS = f"{HEAD}if rank == 1:\n    time.sleep(600)\ndist.all_reduce(torch.ones(20)){END}"
WAITS = (
    "Ranks 0,2 wait in all_reduce #N (20 × float32), "
    "begun by `dist.all_reduce(torch.ones(20))` at scene.py line"
)


def rank_1(found: dict[str, Any]) -> psutil.Process:
    told = re.search(r"^Rank 1 \(pid (\d+)\)", found["stacks"], re.MULTILINE)
    assert told, found["stacks"]
    return psutil.Process(int(told[1]))


def test_a_stopped_rank(machine: Queue) -> None:
    job = start(machine, SLEEPS)
    process = rank_1(until([job], WAITS))
    process.suspend()
    told = "Rank 1 never began it: its process is stopped (SIGSTOP, a debugger)."
    until([job], f"{WAITS} 4. {told}")
    process.resume()
    text = machine.run("why", job, "--native")
    assert "clock_nanosleep" in text
    assert "Rank 1 has not begun it: it is in `time.sleep`, scene.py line 3." in text
    assert f"Rank 1 (pid {process.pid}):\n  scene.py, line 3, in <module>\n" in text


def test_a_rank_in_c_code_that_holds_the_gil(machine: Queue) -> None:
    os.mkfifo("pipe")
    held = (
        "if rank == 1:\n    import ctypes, os\n"
        "    pipe, one = os.open('pipe', os.O_RDWR), ctypes.create_string_buffer(1)\n"
        "    ctypes.PyDLL(None).read(pipe, one, 1)\n"
    )
    job = start(machine, f"{HEAD}{held}dist.all_reduce(torch.ones(20)){END}")
    told = "Rank 1 has not begun it: it is in C code that holds the GIL"
    until([job], f"{WAITS} 6. {told}, scene.py line 5.")
    found = until([job, "--native"], f"{WAITS} 6. {told} (`")
    assert re.search(r"GIL \(`\w*read of libc\S*`\), scene.py line 5", found["text"])


def test_a_script_in_an_environment_without_this_package(machine: Queue) -> None:
    """A signal tells its stack, and nobody its collectives."""
    job = start(machine, f"import sys; sys.modules['jupyter_dist_server'] = None; {SLEEPS}")
    waits = "Ranks 0,2 wait in all_reduce, begun by `dist.all_reduce(torch.ones(20))` at scene.py"
    told = "Rank 1 has not begun it: it is in Python code, scene.py line 3."
    until([job], f"{waits} line 4. {told}")


def test_ranks_that_a_script_spawns(machine: Queue) -> None:
    """They have no variables of torchrun; and a DataLoader's workers are no ranks."""
    script = (
        "import os, time, torch, torch.distributed as dist, torch.multiprocessing as mp\n"
        "class Data(torch.utils.data.Dataset):\n    def __len__(self): return 4\n"
        "    def __getitem__(self, i): return i\n"
        "def work(rank):\n"
        "    dist.init_process_group('gloo', 'tcp://127.0.0.1:' + os.environ['PORT'], "
        "rank=rank, world_size=2)\n"
        "    loader = torch.utils.data.DataLoader(Data(), num_workers=1, "
        "multiprocessing_context='spawn', persistent_workers=True)\n"
        "    for batch in loader: pass\n"
        "    if rank == 1: time.sleep(600)\n"
        "    dist.all_reduce(torch.ones(20))\n"
        "if __name__ == '__main__':\n"
        "    import socket\n    with socket.create_server(('127.0.0.1', 0)) as free:\n"
        "        os.environ['PORT'] = str(free.getsockname()[1])\n"
        "    mp.spawn(work, nprocs=2)\n"
    )
    (machine.folder / "scene.py").write_text(script)
    job = machine.submit("-c", "0", sys.executable, "scene.py")
    found = until(
        [job],
        "Rank 0 waits in all_reduce #N (20 × float32), begun by `dist.all_reduce(torch.ones(20))` "
        "at scene.py line 10. Rank 1 has not begun it: it is in `time.sleep`, scene.py line 9.",
    )
    assert found["world_size"] == 2


def test_the_log_says_why_ranks_wait_and_that_they_go_on(machine: Queue) -> None:
    go_on = SLEEPS.replace("time.sleep(600)", "while not os.path.exists('go'): time.sleep(0.1)", 1)
    job = start(machine, f"import os\n{go_on}", "--env", "JUPYTER_DIST_WAIT_LIMIT=2")
    machine.until(job, "RUNNING")
    wait_for(lambda: "[jdist: Ranks 0,2 wait in all_reduce" in machine.output(job), "the verdict")
    assert "Rank 1 has not begun it: it is in" in machine.output(job)
    assert machine.output(job).endswith(f"\nAll stacks: jdist why {job}]\n")
    (machine.folder / "go").touch()
    wait_for(lambda: "[jdist: The ranks no longer wait.]" in machine.output(job), "the end of it")


def test_a_job_that_its_time_limit_ends_says_why_its_ranks_waited(machine: Queue) -> None:
    job = start(machine, SLEEPS, "-t", "10")
    until([job], WAITS)
    # It looks each 10 s, and last 10 s before the end, when two looks must lie 10 s apart.
    seconds = round(time.time() - machine.show(job)["started"]) + 45
    machine.run("update", job, "--time", f"{seconds // 60}:{seconds % 60:02}")
    told = machine.ended(job)
    assert told["state"] == "TIMEOUT"
    assert told["detail"].startswith("The time limit was reached. Ranks 0,2 wait in all_reduce")


def test_a_job_can_be_left_as_it_is(machine: Queue) -> None:
    (machine.folder / "show.py").write_text("import os, sys; print(sys.path[1], *os.environ)")
    job = machine.submit("-c", "0", "--no-why", sys.executable, "show.py")
    machine.ended(job)
    assert not re.search("on_path|JUPYTER_DIST_EVIDENCE|TORCH_FR", machine.output(job))


def test_the_sitecustomize_of_a_user_runs_too(machine: Queue) -> None:
    own = machine.folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys; sys.set_by_me = __file__")
    (machine.folder / "show.py").write_text("import sys; print(sys.set_by_me)")
    job = machine.submit("-c", "0", "--env", f"PYTHONPATH={own}", sys.executable, "show.py")
    machine.ended(job)
    assert machine.output(job) == f"{own / 'sitecustomize.py'}\n"


@pytest.fixture
def own_torchrun(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Three ranks that are no job."""
    (tmp_path / "scene.py").write_text(SLEEPS)
    command = [sys.executable, *TORCHRUN, str(SIZE), "scene.py"]
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True) as torchrun:
        yield torchrun
        for process in psutil.Process(torchrun.pid).children(recursive=True):
            process.kill()
        torchrun.kill()


def test_a_torchrun_of_ones_own(own_torchrun: subprocess.Popen[bytes]) -> None:
    """Only py-spy sees it: the stacks tell the waits, and nobody the collectives."""
    told = "Ranks 0,2 wait in all_reduce, begun by `dist.all_reduce(torch.ones(20))` at scene.py"
    until(["--pid", str(own_torchrun.pid)], f"{told} line 4.")


def test_without_py_spy_it_is_said_what_is_missing(
    own_torchrun: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    cannot = "No verdict: what ranks 0-2 do cannot be seen (py-spy is not installed; its process"
    until(["--pid", str(own_torchrun.pid)], cannot)


def test_the_pool_of_a_notebook_that_is_a_job(machine: Queue) -> None:
    before = pool_folders()
    cells = [
        "%load_ext jupyter_dist_server",
        "%dist_init -n 2",
        "%%distributed\nimport time\nif rank == 0:\n    dist.all_reduce(torch.ones(20))\n"
        "else:\n    time.sleep(600)",
    ]
    written = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, cells)])
    nbformat.write(written, machine.folder / "hangs.ipynb")
    options = ["--parsable", "--kernel", "python3", "--gpu-ids", "0,1"]
    job = machine.run("notebook", *options, "hangs.ipynb").strip()
    waits = (
        "Rank 0 waits in all_reduce #N (20 × float32), begun by `dist.all_reduce(torch.ones(20))`"
    )
    there = "at In[3] line 4. Rank 1 has not begun it: it is in `time.sleep`, In[3] line 6."
    found = until([job], f"{waits} {there}")
    assert found["text"].endswith(there), "no cell can be stopped"
    assert found["pool"].startswith("p-") and found["world_size"] == 2
    assert "In[3], line 6" in found["stacks"]
    assert machine.run("why", job).startswith(f"Pool {found['pool']}:\nRank 0 waits in")
    machine.run("cancel", job)
    machine.ended(job)
    wait_for(lambda: pool_folders() <= before, "the end of the pool")


def test_what_has_no_ranks(machine: Queue) -> None:
    job = machine.submit("-c", "0", "sleep", "600")
    machine.until(job, "RUNNING")
    assert f"Job {job} has no ranks now" in machine.run("why", job, code=2)
    machine.run("cancel", job)
    machine.ended(job)
    assert f"Job {job} is not running: CANCELLED" in machine.run("why", job, code=2)


def test_what_a_rank_starts_is_no_rank_and_what_has_ended_is_forgotten(machine: Queue) -> None:
    child = f"{sys.executable} -c 'import os; print(os.environ.get(\"JUPYTER_DIST_EVIDENCE\"))'"
    (machine.folder / "rank.py").write_text(f"import os, torch.distributed; os.system({child!r})")
    command = f"RANK=0 WORLD_SIZE=1 {sys.executable} rank.py; echo done; exec sleep 600"
    job = machine.submit("-c", "0", "--env", "JUPYTER_DIST_WAIT_LIMIT=2", "sh", "-c", command)
    machine.until(job, "RUNNING")
    wait_for(lambda: machine.output(job) == "None\ndone\n", "its output")
    folder = evidence_folder(machine_job(machine, job), os.environ)
    wait_for(lambda: folder.is_dir() and not [*folder.iterdir()], "its files to be removed")


def machine_job(queue: Queue, label: str) -> Job:
    with contextlib.closing(Store(store_folder())) as store:
        return select_one(store, label)
