"""What ``--json`` prints: of each command the same fields as by REST."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jupyter_dist_server.cli.main import COMMANDS, options_of
from jupyter_dist_server.jobs.submit.job_options import Parser

from ..jobs.queue_driver import Queue
from ..server.openapi import validate_named


def jobs_of(queue: Queue, *args: str, code: int = 0) -> list[dict[str, Any]]:
    """Run a command; return the jobs that it tells of, which are as REST describes them."""
    found = json.loads(queue.run(*args, "--json", code=code))
    jobs: list[dict[str, Any]] = found["jobs"] if isinstance(found, dict) else found
    for job in jobs:
        job.pop("attempts", None)
        validate_named("Job", job)
    return jobs


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_every_command_knows_json() -> None:
    for name in COMMANDS.keys() - {"mcp"}:  # whose output is JSON in any case
        parser = Parser(prog=name, add_help=False)
        options_of(name)(parser)
        assert "--json" in parser.format_help(), name


def test_changes_tell_how_jobs_are_then_and_what_was_left(queue: Queue) -> None:
    (made,) = json.loads(queue.run("submit", "--json", "-H", "-J", "a", "true"))
    job = made["label"]
    assert jobs_of(queue, "hold", job)[0]["held"] is True
    assert jobs_of(queue, "release", job)[0]["held"] is False
    queue.ended(job)
    told = json.loads(queue.run("hold", "--json", job, code=2))
    assert told["left"] == [f"Job {job} cannot be held: it is COMPLETED."]
    told = json.loads(queue.run("cancel", "--json", job))
    assert told["left"] == [f"Job {job} had ended: COMPLETED."]
    assert jobs_of(queue, "requeue", job)[0]["attempt"] == 2
    assert jobs_of(queue, "update", "-J", "b", job)[0]["name"] == "b"
    assert jobs_of(queue, "wait", job)[0]["state"] == "COMPLETED"
    waits = queue.submit("-H", "true")
    assert jobs_of(queue, "wait", "--timeout", "0", waits, code=124)[0]["state"] == "PENDING"
    assert jobs_of(queue, "cancel", waits)[0]["state"] == "CANCELLED"
    assert jobs_of(queue, "wait", waits, code=1)[0]["state"] == "CANCELLED"


def test_a_dry_run(queue: Queue) -> None:
    told = json.loads(queue.run("submit", "--dry-run", "--json", "--param", "x=1,2", "echo", "{x}"))
    validate_named("DryRun", told)
    assert (told["count"], told["commands"]) == (2, ["echo 1", "echo 2"])
    Path("n.ipynb").write_text("{}")
    told = json.loads(queue.run("notebook", "--dry-run", "--json", "n.ipynb"))
    assert told["count"] == 1
    assert len(queue.run("queue").splitlines()) == 1, "nothing is queued"


def test_output_in_pieces_and_a_job_that_is_waited_for(queue: Queue) -> None:
    first, *pieces, last = lines_of(queue.run_program("run", "--json", "printf", "a\\r\\303\\244"))
    assert (first["label"], last["state"]) == (last["label"], "COMPLETED")
    assert "".join(piece["text"] for piece in pieces) == "a\rä"
    job = last["label"]
    for args in (["logs"], ["logs", "-f"]):
        (piece,) = lines_of(queue.run_program(*args, "--json", job))
        assert piece == {"offset": 0, "next": 4, "size": 4, "replaced": False, "text": "a\rä"}
    *_, last = lines_of(queue.run_program("run", "--json", "false", code=1))
    assert (last["state"], last["exit_code"]) == ("FAILED", 1)


def test_following_folds_progress_bars_and_reads_errors(queue: Queue) -> None:
    code = "printf '1%%\\r2%%\\rdone\\n'; echo problem >&2"
    job = queue.submit("-e", "err", "sh", "-c", code)
    assert queue.run_program("logs", "-f", job) == "done\n"
    assert "1%" in queue.run_program("logs", "-f", "--raw", job)
    assert queue.run_program("logs", "-f", "-e", job) == "problem\n"
