"""The states of a job and why it waits or ended, in Slurm's words."""

from __future__ import annotations

PENDING, CONFIGURING, RUNNING, COMPLETING = "PENDING", "CONFIGURING", "RUNNING", "COMPLETING"
COMPLETED, FAILED, CANCELLED, TIMEOUT = "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"
OUT_OF_MEMORY, NODE_FAIL = "OUT_OF_MEMORY", "NODE_FAIL"

ACTIVE = (CONFIGURING, RUNNING, COMPLETING)
"""A runner has it."""
ENDED = (COMPLETED, FAILED, CANCELLED, TIMEOUT, OUT_OF_MEMORY, NODE_FAIL)
"""Only a requeue changes it."""
FAILURES = (FAILED, TIMEOUT, OUT_OF_MEMORY, NODE_FAIL)
"""It ended, and neither went well nor was cancelled."""
NOT_STARTED = "Cancelled before it started."
"""The detail of a cancelled job whose code has not run."""
LETTERS = {
    PENDING: "PD",
    CONFIGURING: "CF",
    RUNNING: "R",
    COMPLETING: "CG",
    COMPLETED: "CD",
    FAILED: "F",
    CANCELLED: "CA",
    TIMEOUT: "TO",
    OUT_OF_MEMORY: "OOM",
    NODE_FAIL: "NF",
}
"""As ``squeue`` shows them."""
MOVES = {
    PENDING: (CONFIGURING, CANCELLED, FAILED),
    CONFIGURING: (RUNNING, PENDING, CANCELLED, FAILED),
    RUNNING: (COMPLETING, *ENDED),
    COMPLETING: ENDED,
} | dict.fromkeys(ENDED, (PENDING,))
"""The next states of each state."""
