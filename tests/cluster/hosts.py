"""Two hosts on this machine: each has a network, a host name and temporary folder of its own.

They are joined by a bridge, with Debian's Slurm on them: its controller, and a `slurmd` each.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

from ..waiting import wait_for

NEEDED = ("ip", "nsenter", "unshare", "munged", "slurmctld", "slurmd", "salloc", "srun")
SLURM_CONF = """
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
SlurmctldPort=16817
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
NodeName=n1 NodeAddr={net}.1 NodeHostname=n1 CPUs=2 State=UNKNOWN
NodeName=n2 NodeAddr={net}.2 NodeHostname=n2 CPUs=2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES:8
"""


def why_not() -> str:
    """Say why there can be no such hosts here; empty if there can."""
    if os.geteuid() != 0:
        return "needs root, for network namespaces"
    if missing := [name for name in NEEDED if not shutil.which(name)]:
        return f"needs {', '.join(missing)}: apt-get install iproute2 slurm-wlm munge"
    made = subprocess.run(["unshare", "--net", "--uts", "--mount", "true"], capture_output=True)
    return "" if made.returncode == 0 else f"no namespaces here: {made.stderr.decode().strip()}"


class Hosts:
    """Two hosts, ``n1`` and ``n2``."""

    def __init__(self) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="jh-"))
        self._tag = secrets.token_hex(2)
        self._net = f"10.{100 + secrets.randbelow(100)}.{secrets.randbelow(250)}"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._namespaces: list[subprocess.Popen[bytes]] = []
        for name in ("run", "log", "state", "spool-n1", "spool-n2", "tmp", "home"):
            (self.base / name).mkdir()
        try:
            self._make_network()
            self._start_slurm()
        except BaseException:
            self.close()
            raise

    def _make_network(self) -> None:
        bridge = f"jb{self._tag}"
        _run("ip", "link", "add", bridge, "type", "bridge")
        _run("ip", "addr", "add", f"{self._net}.254/24", "dev", bridge)
        _run("ip", "link", "set", bridge, "up")
        for number in (1, 2):
            # The hosts last as long as this process; each has files of its own in its /…/tmp.
            made = f"hostname n{number} && mount -t tmpfs tmpfs {self.base}/tmp && echo made"
            host = subprocess.Popen(
                ["unshare", "--net", "--uts", "--mount", "sh", "-c", f"{made} && exec cat"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            self._namespaces.append(host)
            assert host.stdout and host.stdout.readline() == b"made\n"
            pid, link = str(host.pid), f"{self.link(number)}"
            _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", pid)
            _run("ip", "link", "set", link, "master", bridge, "up")
            for words in (
                "link set lo up",
                f"addr add {self._net}.{number}/24 dev eth0",
                "link set eth0 up",
            ):
                self.run(number, "ip", *words.split())

    def link(self, number: int) -> str:
        """Return the end of a host's cable that is in the bridge."""
        return f"jv{self._tag}{number}"

    def cut(self, number: int) -> None:
        """Pull a host's cable."""
        _run("ip", "link", "set", self.link(number), "down")

    def mend(self, number: int) -> None:
        """Plug it in again."""
        _run("ip", "link", "set", self.link(number), "up")

    @property
    def environment(self) -> dict[str, str]:
        """Return what programs on the hosts need."""
        ours = {"SLURM_CONF": str(self.base / "slurm.conf"), "HOME": str(self.base / "home")}
        return {**os.environ, **ours, "TMPDIR": str(self.base / "tmp")}

    def command(self, number: int, *words: str) -> list[str]:
        """Return a command that runs another one on a host."""
        pid = str(self._namespaces[number - 1].pid)
        return ["nsenter", f"--target={pid}", "--net", "--uts", "--mount", *words]

    def run(self, number: int, *words: str) -> str:
        """Run a command on a host, and return what it says."""
        return _run(*self.command(number, *words), env=self.environment)

    def folders(self, number: int) -> list[str]:
        """Return the private folders of pools on a host."""
        return [
            name
            for name in self.run(number, "ls", str(self.base / "tmp")).split()
            if "jdist" in name
        ]

    def _daemon(self, name: str, *words: str) -> None:
        with (self.base / "log" / f"{name}.out").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=self.environment,
                    start_new_session=True,
                )
            )

    def _start_slurm(self) -> None:
        (self.base / "slurm.conf").write_text(SLURM_CONF.format(base=self.base, net=self._net))
        run = self.base / "run"
        key = run / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log"}
        options = [f"--{option}={run}/munge.{end}" for option, end in files.items()]
        options.append(f"--seed-file={run}/munge.seed")
        self._daemon("munged", "munged", "--foreground", "--force", *options)
        wait_for((run / "munge.socket").exists, "the start of munged")
        start = "hostname controller; exec slurmctld -c -D"
        self._daemon("slurmctld", "unshare", "--uts", "sh", "-c", start)
        for number in (1, 2):
            self._daemon(
                f"slurmd{number}", *self.command(number, "slurmd", "-D", "-N", f"n{number}")
            )
        idle = ["sinfo", "--noheader", "--format=%T %D"]
        wait_for(lambda: "idle 2" in self._ask(*idle), "the start of Slurm")

    def _ask(self, *words: str) -> str:
        asked = subprocess.run(words, env=self.environment, capture_output=True, text=True)
        return asked.stdout

    def close(self) -> None:
        """Remove all that was made."""
        for process in [*reversed(self._processes), *self._namespaces]:
            process.terminate()
        for process in [*self._processes, *self._namespaces]:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for link in (self.link(1), self.link(2), f"jb{self._tag}"):
            subprocess.run(["ip", "link", "del", link], capture_output=True, check=False)
        shutil.rmtree(self.base, ignore_errors=True)


def _run(*words: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return done.stdout
