"""What is made of the words of an agent that did not start; `tests/cluster` has real ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_dist_server.common.protocol.node_messages import decode_node_orders
from jupyter_dist_server.engines.start_failures import ended_allocation, why_not_started

INSTALL = "Run on n2: /p/python -m pip install jupyter-dist-server==1.0"


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        (
            "slurmstepd: error: execve(): /p/python: No such file or directory",
            "On node n2, Python cannot be started: /p/python.",
            "Set another path with --python.",
        ),
        (
            "ModuleNotFoundError: No module named 'jupyter_dist_server'",
            "On node n2, jupyter-dist-server is not installed in /p/python.",
            INSTALL,
        ),
        (
            "ModuleNotFoundError: No module named 'msgspec'",
            "On node n2, the module msgspec is not installed in /p/python.",
            INSTALL,
        ),
        (
            "ModuleNotFoundErrorsrun: error: n2: task 0: Exited with exit code 1\n"
            ": No module named 'jupyter_dist_server'",
            "On node n2, jupyter-dist-server is not installed in /p/python.",
            INSTALL,
        ),
        (
            "Traceback (most recent call last):",
            "The pool's agent did not start on node n2.",
            "same Python environment",
        ),
        (
            "Traceback (most recent call last):\n  File ...\nOSError: [Errno 28] No space left",
            "The pool's agent did not start on node n2.",
            "Its last lines say why",
        ),
        (
            "Traceback (most recent call last):\n  File ...\nzmq.error.ZMQError: Cannot assign "
            "requested address (addr='tcp://10.0.0.1:*')",
            "The pool's agent did not start on node n2.",
            "Its last lines say why",
        ),
        (
            "srun: error: Unable to create step for job 2: Requested node configuration",
            "The pool's agent did not start on node n2.",
            "Its last lines say why",
        ),
        (
            "srun: error: Slurm job 2 has expired",
            "The allocation (Slurm job 2) has ended.",
            "Get another allocation",
        ),
        (
            "srun: error: Unable to confirm allocation for job 2: Invalid job id specified",
            "The allocation (Slurm job 2) has ended.",
            "Get another allocation",
        ),
        (
            "slurmstepd-n2: error: *** STEP 2.0 ON n2 CANCELLED AT 2026-11-24T22:59:38 "
            "DUE TO TIME LIMIT ***",
            "Slurm has cancelled the pool's step of job 2 on node n2 due to time limit.",
            "Get another allocation",
        ),
    ],
)
def test_what_is_wrong_is_named(said: str, message: str, hint: str) -> None:
    reason = why_not_started("n2", "/p/python", "1.0", ["before", said])
    assert reason.message == message
    assert hint in reason.hint
    assert reason.stderr == ["before", said]


def test_another_version_is_named() -> None:
    with pytest.raises(ValueError) as refused:
        decode_node_orders(b'{"version": "1.0", "and": "what we do not know"}', "0.9")
    reason = why_not_started("n2", "/p/python", "1.0", [str(refused.value)])
    expected = "Node n2 has jupyter-dist-server 0.9 in /p/python, the notebook 1.0."
    assert (reason.message, reason.hint) == (expected, INSTALL)


@pytest.mark.parametrize(
    ("squeue", "has_ended"),
    [
        ("echo RUNNING", False),
        ("echo SUSPENDED", False),
        ("echo COMPLETED; echo RUNNING", False),
        ("echo COMPLETING", True),
        ("true", True),
        ("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", True),
        ("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1", False),
    ],
)
def test_a_cancelled_step_is_no_end_of_its_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squeue: str, has_ended: bool
) -> None:
    program = tmp_path / "squeue"
    program.write_text(f"#!/bin/sh\n[ $3 = --jobs=7 ] || exit 2\n{squeue}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    said = ["exit code 1", "Slurm has cancelled the pool's step of job 7 on its node n2"]
    assert ended_allocation(said) == ("7" if has_ended else "")
    assert ended_allocation(["the allocation (Slurm job 8) has ended"]) == "8"
    assert ended_allocation(["its node n2 has been unreachable since 12:00:00"]) == ""
