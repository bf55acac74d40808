"""Why an agent did not start on a node, or ended there, from the output of its processes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..common.protocol.failure_reason import Reason
from ..common.protocol.node_messages import NO_FOLDER, OTHER_VERSION
from .slurm import has_ended

_HINT = "That node needs the same Python environment as the notebook, at the same path."
_LOOK = "Its last lines say why; if there are none, check that the node can be reached."
_ENDED = re.compile(r"(?:Slurm job|allocation for job) (\d+)(?: has expired|: Invalid job id)")
_CANCELLED = re.compile(r"\*\*\* STEP (\d+)\S* ON \S+ CANCELLED AT \S+(?: DUE TO (.+?))? \*\*\*")
_SAID_ENDED = re.compile(r"the allocation \(Slurm job (\d+)\) has ended")
_SAID_CANCELLED = re.compile(r"Slurm has cancelled the pool's step of job (\d+) on ")
"""What `why_cancelled` returns."""
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^'.]+)")
_NO_PYTHON = re.compile(r"No such file or directory|not found|Permission denied|Exec format error")
_SRUN = re.compile(r"srun: .*(\n|$)")
"""A message of srun, which may be in the middle of a line of the agent."""
_NO_FOLDER = re.compile(rf"{NO_FOLDER}(.+)(?:\n(.*))?")
_SYSTEM = re.compile(r"^\S*Error: (?:\[Errno \d+\]|.*\(addr=)", re.MULTILINE)
"""An error of the operating system: Python could read all modules. The last is from ZeroMQ."""
_PACKAGE = "jupyter_dist_server"


def why_cancelled(said: list[str]) -> str:
    """Return how Slurm says that it ended the agent's step, with a place for the node; else ""."""
    text = "\n".join(said)
    if ended := _ENDED.search(text):
        return f"the allocation (Slurm job {ended[1]}) has ended"
    if cancelled := _CANCELLED.search(text):
        due = f" due to {cancelled[2].lower()}" if cancelled[2] else ""
        return f"Slurm has cancelled the pool's step of job {cancelled[1]} on {{node}}{due}"
    return ""


def ended_allocation(causes: Iterable[str]) -> str:
    """Return the Slurm job whose end took nodes away, by how their ranks died; else ""."""
    text = "\n".join(causes)
    if ended := _SAID_ENDED.search(text):
        return ended[1]
    cancelled = _SAID_CANCELLED.search(text)
    return cancelled[1] if cancelled and has_ended(cancelled[1]) else ""


def why_not_started(node: str, python: str, version: str, said: list[str]) -> Reason:
    """Return what is wrong on a node, and how to fix it, from the last lines of its processes."""
    text = "\n".join(said)
    install = f"Run on {node}: {python} -m pip install jupyter-dist-server=={version}"
    own = _SRUN.sub("", text)
    module = _NO_MODULE.search(own)
    other = re.search(OTHER_VERSION.format(theirs=".*", ours=r"(\d[\w.+!-]*)"), own)
    if cancelled := why_cancelled(said).format(node=f"node {node}"):
        message = f"{cancelled[0].upper()}{cancelled[1:]}."
        hint = "Get another allocation, and start the notebook in it."
    elif module and module[1] == _PACKAGE:
        message = f"On node {node}, jupyter-dist-server is not installed in {python}."
        hint = install
    elif module:
        message = f"On node {node}, the module {module[1]} is not installed in {python}."
        hint = f"{_HINT} {install}"
    elif folder := _NO_FOLDER.search(own):
        message = f"The pool's agent did not start on node {node}. {folder[1]}"
        hint = folder[2] or _LOOK
    elif other:
        message = (
            f"Node {node} has jupyter-dist-server {other[1]} in {python}, the notebook {version}."
        )
        hint = install
    elif python in text and _NO_PYTHON.search(text):
        message = f"On node {node}, Python cannot be started: {python}."
        hint = f"{_HINT} Set another path with --python."
    else:
        message = f"The pool's agent did not start on node {node}."
        is_ours = ("Traceback" in text or python in text) and not _SYSTEM.search(own)
        hint = _HINT if is_ours else _LOOK
    return Reason("node_failed", message, hint, stderr=said)
