"""Scripts of Python run where they lie: beside the modules that they import."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .queue_driver import Queue

PATH = ["--env", f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}"]
TRAIN = "import os, sys, model\nprint(model.NAME, __file__, os.getcwd(), *sys.argv[1:])\n"


def write(folder: Path, script: str = TRAIN) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "model.py").write_text("NAME = 'net'\n")
    path = folder / "train.py"
    path.write_text(script)
    return path


def test_a_script_imports_what_lies_beside_it(queue: Queue) -> None:
    path = write(queue.folder)
    job = queue.submit(*PATH, "train.py", "--lr", "0.1")
    assert queue.ended(job)["name"] == "train.py"
    assert queue.output(job) == f"net {path} {queue.folder} --lr 0.1\n"


def test_a_script_runs_where_it_lies_in_any_working_directory(queue: Queue) -> None:
    path = write(queue.folder / "code")
    (queue.folder / "data").mkdir()
    job = queue.submit(*PATH, "-D", "data", "-o", "../jdist-%j.out", "code/train.py")
    again = queue.submit(*PATH, "--like", job)
    for one in (job, again):
        queue.ended(one)
        assert queue.output(one) == f"net {path} {queue.folder / 'data'}\n"


def test_the_first_line_chooses_the_python_of_a_script(queue: Queue) -> None:
    """The file need not be executable."""
    path = write(queue.folder, f"#!{sys.executable} -B\n{TRAIN}import sys\nprint(sys.flags)\n")
    job = queue.submit("train.py")
    assert queue.ended(job)["spec"]["argv"] == [sys.executable, "-B", str(path)]
    assert "dont_write_bytecode=1" in queue.output(job)


def test_what_is_read_when_a_job_starts(queue: Queue) -> None:
    """A script of Python is read then, as what it imports is; of all others, a copy runs."""
    write(queue.folder)
    shell = queue.folder / "run.sh"
    shell.write_text("echo submitted\n")
    jobs = [queue.submit(*PATH, "-H", name) for name in ("train.py", "run.sh")]
    write(queue.folder, "print('changed')\n")
    shell.write_text("echo changed\n")
    queue.run("release", *jobs)
    for job in jobs:
        queue.ended(job)
    assert [queue.output(job) for job in jobs] == ["changed\n", "submitted\n"]


def test_a_python_that_is_missing_is_named_at_once(queue: Queue) -> None:
    write(queue.folder)
    said = queue.run("submit", "--env", f"PATH={queue.folder}", "train.py", code=2)
    assert "no program of that name in PATH" in said and "python" in said


def test_the_options_of_a_script_are_those_of_the_one_that_torchrun_starts(queue: Queue) -> None:
    sub = queue.folder / "sub"
    write(queue.folder, "#JDIST --job-name outer\n")
    write(sub, "#JDIST --job-name inner\n")
    write(sub / "code", "#JDIST --job-name deep --torchrun\n")
    start = ["-H", "--torchrun", "-D", "sub"]
    jobs = [queue.submit(*start, script) for script in ("train.py", "code/train.py")]
    jobs.append(queue.submit("-H", "--like", jobs[0]))
    assert [queue.show(job)["name"] for job in jobs] == ["inner", "deep", "inner"]
    by_itself = queue.submit("-H", "-D", "sub/code", "sub/code/train.py")
    assert queue.show(by_itself)["spec"]["argv"] == [str(sub / "code" / "train.py")]
