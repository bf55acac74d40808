"""What is made of the words of an agent that did not start; `tests/cluster` has real ones."""

from __future__ import annotations

import pytest

from jupyter_dist_server.common.protocol.node_agents.node_orders import decode_node_orders
from jupyter_dist_server.engines.start_failures import why_not_started

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
            "Traceback (most recent call last):",
            "The pool's agent did not start on node n2.",
            "same Python environment",
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
