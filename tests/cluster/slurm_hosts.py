"""Debian's Slurm on our hosts: its controller, and a `slurmd` on each."""

from __future__ import annotations

import secrets
import shutil
import subprocess

from ..waiting import wait_for
from .hosts import Hosts, why_no_hosts

NEEDED = ("munged", "slurmctld", "slurmd", "salloc", "srun")
CONF = """
ClusterName=jdist
SlurmctldHost=controller({net}.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={base}/run/munge.socket
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool-%n
SlurmctldPidFile={base}/run/slurmctld.pid
SlurmdPidFile={base}/run/slurmd-%n.pid
SlurmctldLogFile={base}/log/slurmctld.log
SlurmdLogFile={base}/log/slurmd-%n.log
SlurmctldPort={port}
SlurmdPort=16818
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_min_interval=0
MpiDefault=none
ReturnToService=2
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES:8
"""
NODE = "NodeName=n{number} NodeAddr={net}.{number} NodeHostname=n{number} CPUs=2 State=UNKNOWN"


def why_not() -> str:
    """Say why there can be no Slurm here; empty if there can."""
    if missing := [name for name in NEEDED if not shutil.which(name)]:
        return f"needs {', '.join(missing)}: apt-get install slurm-wlm munge"
    return why_no_hosts()


def start_slurm(hosts: Hosts) -> None:
    """Start Slurm, and wait until its nodes are there."""
    nodes = "\n".join(NODE.format(net=hosts.net, number=number) for number in hosts.numbers)
    conf = hosts.base / "slurm.conf"
    # Below those that the system gives to others until slurmctld listens.
    port = 20_000 + secrets.randbelow(10_000)
    conf.write_text(CONF.format(base=hosts.base, net=hosts.net, nodes=nodes, port=port))
    hosts.variables["SLURM_CONF"] = str(conf)
    for name in ("state", *(f"spool-n{number}" for number in hosts.numbers)):
        (hosts.base / name).mkdir()
    run = hosts.base / "run"
    key = run / "munge.key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log"}
    options = [f"--{option}={run}/munge.{end}" for option, end in files.items()]
    options.append(f"--seed-file={run}/munge.seed")
    hosts.daemon("munged", "munged", "--foreground", "--force", *options)
    wait_for((run / "munge.socket").exists, "the start of munged")
    start = "hostname controller; exec slurmctld -c -D"
    hosts.daemon("slurmctld", "unshare", "--uts", "sh", "-c", start)
    for number in hosts.numbers:
        command = hosts.command(number, "slurmd", "-D", "-N", f"n{number}")
        hosts.daemon(f"slurmd{number}", *command)
    try:
        wait_for(lambda: f"idle {len(hosts.numbers)}" in _idle(hosts), "the start of Slurm")
    except AssertionError as error:  # the folder goes with the hosts
        logs = sorted((hosts.base / "log").iterdir())
        said = (f"{log.name}:\n{log.read_text(errors='replace')[-2000:]}" for log in logs)
        raise AssertionError("\n".join([str(error), *said])) from error


def _idle(hosts: Hosts) -> str:
    words = ("sinfo", "--noheader", "--format=%T %D")
    return subprocess.run(words, env=hosts.environment, capture_output=True, text=True).stdout
