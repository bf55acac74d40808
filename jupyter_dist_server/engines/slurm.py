"""Slurm: agents are job steps of the allocation in which we run.

See https://slurm.schedmd.com/srun.html and https://slurm.schedmd.com/scontrol.html.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import subprocess
from collections.abc import Mapping

from ..common.errors import DistError
from ..common.inside_slurm import is_inside
from ..common.patience import patience
from .engine import Node, Program

_GOES_ON = ("RUNNING", "STOPPED", "SUSPENDED")
"""States of a job that still has its nodes."""
_STEP = (
    "srun",
    "--overlap",  # with the step that we may run in ourselves
    "--nodes=1",
    "--ntasks=1",
    "--mem=0",  # all of what the job has there
    "--cpu-bind=none",
    "--mpi=none",
    "--export=ALL",
    "--unbuffered",
    "--job-name=jupyter-dist",
)
_OPTION = re.compile(
    r"SLURM_(GPUS|GPUS_PER_\w+|GPU_BIND|GRES|TRES_\w+|CPUS_PER_\w+|NTASKS_PER_\w+|LABELIO)"
    r"|SRUN_CPUS_PER_TASK"
)
"""Variables of a job that srun reads as its own options, which would limit or change the step."""


class Slurm:
    """The nodes of one allocation."""

    name = "slurm"
    gives_gpus = False
    """Whether it decides which GPUs the ranks on other nodes get."""

    def is_around(self, environment: Mapping[str, str]) -> bool:
        """Tell whether an environment is that of a job."""
        return is_inside(environment) and bool(environment.get("SLURM_JOB_NODELIST"))

    def job(self, environment: Mapping[str, str]) -> str:
        """Return the ID of the job; empty if there is none."""
        return environment["SLURM_JOB_ID"] if is_inside(environment) else ""

    def nodes(self, environment: Mapping[str, str], python: str) -> list[Node]:
        """Return the nodes of the allocation; raise `DistError` if Slurm does not tell them."""
        listed = environment.get("SLURM_JOB_NODELIST", "")
        if not self.is_around(environment):
            raise DistError(
                "no_nodes",
                "The engine slurm needs a Slurm allocation, and this notebook is in none.",
                "Start JupyterLab inside one: salloc -N2, then srun --overlap -N1 --pty jupyter "
                "lab.",
                field="engine",
            )
        try:
            shown = subprocess.run(
                ["scontrol", "--oneliner", "show", "node", listed],
                env=dict(environment),
                capture_output=True,
                text=True,
                timeout=patience.program,
                check=True,
            ).stdout
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", None) or str(error)
            raise DistError(
                "engine_failed",
                f"Slurm does not show the nodes {listed} of this job: {str(said).strip()}.",
                "Check that “scontrol show node” works on this machine.",
            ) from error
        here = environment.get("SLURMD_NODENAME"), socket.gethostname().partition(".")[0]
        nodes = []
        for line in shown.splitlines():
            fields = dict(re.findall(r"\b(NodeName|NodeAddr|NodeHostName|Gres)=(\S+)", line))
            if fields:
                name = fields["NodeName"]
                is_here = name == here[0] or (not here[0] and fields.get("NodeHostName") == here[1])
                address = _resolved(str(fields.get("NodeAddr", name)))
                nodes.append(Node(name, address, is_here, _gpus(fields.get("Gres", ""))))
        return nodes

    def on_node(
        self, node: str, command: list[str], gpus: int, environment: Mapping[str, str]
    ) -> Program:
        """Return a step of the job that runs a command, with all the job's GPUs and cores there."""
        options = {name: value for name, value in environment.items() if _OPTION.fullmatch(name)}
        if options:  # programs there may read them
            command = ["env", *(f"{name}={value}" for name, value in options.items()), *command]
        kept = {name: environment[name] for name in environment.keys() - options.keys()}
        return [*_STEP, f"--nodelist={node}", *command], kept


def has_ended(job: str) -> bool:
    """Tell whether a job has ended, as far as Slurm says so in time."""
    try:
        asked = subprocess.run(
            ["squeue", "--noheader", "--format=%T", f"--jobs={job}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patience.busy_answer,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    if asked.returncode:
        return "Invalid job id" in asked.stderr
    # Tasks of an array, and components of a heterogeneous job, have a line each.
    return not set(asked.stdout.split()).intersection(_GOES_ON)


def _gpus(resources: str) -> int:
    """Count the GPUs in resources such as ``gpu:h100:8(S:0-1),shard:16``."""
    return sum(map(int, re.findall(r"\bgpu(?::[^:,()]+)?:(\d+)", resources)))


def _resolved(address: str) -> str:
    try:
        found = socket.getaddrinfo(address, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        raise DistError(
            "engine_failed",
            f"Slurm gives the address {address} for a node, which cannot be resolved: {error}.",
            "Check the cluster's host names.",
        ) from error
    resolved = str(found[0][4][0])
    if ipaddress.ip_address(resolved).is_loopback:  # Debian's /etc/hosts has 127.0.1.1
        raise DistError(
            "engine_failed",
            f"The node address {address} in Slurm is {resolved} on this machine, which other "
            "nodes cannot reach.",
            "Correct /etc/hosts, or set NodeAddr in slurm.conf.",
        )
    return resolved
