"""What cannot be meant is one clear line and exit code 2; nothing is queued or changed then."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ..waiting import PATIENCE
from .queue_driver import Queue

MANY = [word for name in ("lr", "a", "b") for word in ("--param", f"{name}={','.join('1' * 60)}")]
"""216,000 combinations."""
SUBMIT = [
    [],
    ["--nonsense", "true"],
    ["-G", "x", "true"],
    ["-G", "-1", "true"],
    ["-G", "1", "true"],  # there is no GPU
    ["-G", "9999", "true"],
    ["--gpu-ids", "7", "true"],
    ["-c", "9999", "true"],
    ["-c", "-1", "true"],
    ["--mem", "much", "true"],
    ["--min-gpu-memory", "much", "-G", "1", "true"],
    ["--share", "true"],
    ["-t", "soon", "true"],
    ["-t", "0s", "true"],
    ["--begin", "sometime", "true"],
    ["--begin", "25:00", "true"],
    ["-d", "afterok:99", "true"],
    ["-d", "afterok:1", "true"],  # itself
    ["-d", "later:1", "true"],
    ["-a", "1-3%0", "true"],
    ["-a", "x", "true"],
    ["-a", "0-200000", "true"],
    ["--param", "lr=1", "true"],
    ["--param", "lr", "echo", "{lr}"],
    ["--param", "lr=1", "echo", "{lr}", "{seed}"],
    ["--param", "lr=1,2", "--param", "lr=3", "echo", "{lr}"],
    ["--dry-run", "-a", "0-99999,200000-200001", "true"],
    ["--dry-run", *MANY, "echo", "{lr}", "{a}", "{b}"],
    ["--param-file", "no-such-file", "echo", "{lr}"],
    ["--priority", "high", "true"],
    ["--signal", "NONSENSE", "true"],
    ["--requeue-on", "x", "true"],
    ["--env", "NO_SUCH_VARIABLE", "true"],
    ["--env", "=x", "true"],
    ["--open-mode", "x", "true"],
    ["--max-jobs", "0", "true"],
    ["./no-such-script"],
    ["/no/such/script.sh"],
    ["."],
]
OTHERS = [
    ["nonsense"],
    ["show", "12"],
    ["show"],
    ["logs", "12"],
    ["wait", "nobody"],
    ["cancel"],
    ["cancel", "12"],
    ["hold", "12-14"],
    ["release", "40_3"],
    ["requeue", "@~5"],
    ["update", "-t", "10", "12"],
    ["queue", "-o", "nonsense"],
    ["queue", "--nonsense"],
    ["queue", "-u", "root,nobody-of-this-name"],
    ["history", "-n", "-1"],
    ["notebook", "no-such-notebook.ipynb"],
]


@pytest.mark.parametrize(
    "args", [["submit", *args] for args in SUBMIT] + OTHERS, ids=lambda args: " ".join(args)
)
def test_bad_input_is_one_error_and_queues_nothing(queue: Queue, args: list[str]) -> None:
    said = queue.run(*args, code=2)
    assert said.startswith("jdist: ") and len(said.splitlines()) == 1
    assert json.loads(queue.run("queue", "--json")) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"#!/bin/bash\r\ntrue\r\n", "b.sh has DOS line breaks (\\r\\n). Convert it: "),
        (b"true\r\n", "b.sh has DOS line breaks (\\r\\n). Convert it: "),
        (b"#! /nope/interp -x\n", "The interpreter /nope/interp of b.sh does not exist. "),
    ],
)
def test_a_script_that_nothing_could_run_is_refused(queue: Queue, text: bytes, said: str) -> None:
    (queue.folder / "b.sh").write_bytes(text)
    assert queue.run("submit", "b.sh", code=2).startswith(f"jdist: {said}")
    assert json.loads(queue.run("queue", "--json")) == []


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nix.py"], "There is no file nix.py here, and no program of that name in PATH.\n"),
        (["-D", "/no/folder", "true"], "The folder /no/folder does not exist.\n"),
    ],
)
def test_what_could_not_start_is_refused_unless_a_job_before_it_may_help(
    queue: Queue, args: list[str], said: str
) -> None:
    assert queue.run("submit", *args, code=2) == f"jdist: {said}"
    before = queue.submit("-H", "true")
    queue.submit("-d", f"afterok:{before}", *args)


@pytest.mark.parametrize(
    "args",
    [
        ["-t", "soon"],
        ["--gpus", "99"],
        ["--priority", "high"],
        ["--priority", "4294967296"],
        ["--grace", "-1", "-J", "other"],
        ["-t", "10", "-J", ""],
        [],
    ],
    ids=lambda args: " ".join(args),
)
def test_bad_changes_change_nothing(queue: Queue, args: list[str]) -> None:
    job = queue.submit("-H", "true")
    before = queue.show(job)
    assert queue.run("update", *args, job, code=2).startswith("jdist: ")
    assert queue.show(job) == before


def test_a_working_directory_that_was_deleted(
    queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for args in (["true"], ["-D", "below", "true"]):
        said = queue.run("submit", *args, code=2)
        assert said.startswith("jdist: The working directory was deleted. Change to ")
    assert "./a.sh does not exist" in queue.run("submit", "-D", str(tmp_path), "./a.sh", code=2)
    job = queue.submit("-H", "-D", str(tmp_path), "true")
    assert queue.show(job)["spec"]["cwd"] == str(tmp_path)


@pytest.mark.parametrize(
    ("redirect", "said"),
    [
        (">&-", "jdist: Standard output is closed. Redirect it, such as to /dev/null.\n"),
        ("> /dev/full", "jdist: Nothing more can be written: No space left on device.\n"),
    ],
)
def test_an_output_that_cannot_be_written(queue: Queue, redirect: str, said: str) -> None:
    command = ["sh", "-c", f'"$@" {redirect}', "sh", str(queue.program()), "history"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode and done.stderr == said


def test_jobs_run_on_linux_only(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(sys, "platform", "darwin")
        said = queue.run("submit", "-c", "0", "true", code=2)
    assert said.startswith("jdist: Jobs run on Linux only.")
