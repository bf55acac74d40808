"""Each option of ``sbatch`` and ``gbatch`` has an effect, or is named as not used."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_dist_server.jobs.submit.script_directives import read_directives

SBATCH = """
-a,--array=1-3 -A,--account=a --bb=x --bbf=x -b,--begin=now --comment=c --cpu-freq=low
-c,--cpus-per-task=2 -d,--dependency=singleton --deadline=1 --delay-boot=1 -D,--chdir=/ -e,--error=f
--export=ALL --export-file=f --get-user-env --gid=1 --gres=gpu:1 --gres-flags=x -H,--hold
--ignore-pbs -i,--input=f -J,--job-name=n -k,--no-kill -L,--licenses=l -M,--clusters=c
--container=c -m,--distribution=block --mail-type=END --mail-user=u --mcs-label=m -n,--ntasks=1
--nice=5 --no-requeue --ntasks-per-node=1 -N,--nodes=1 -o,--output=f --open-mode=append
-O,--overcommit -p,--partition=p --parsable --power=level --priority=3 --profile=all
--propagate=ALL -q,--qos=q -Q,--quiet --reboot --requeue -s,--oversubscribe -S,--core-spec=1
--signal=USR1@60 --spread-job --switches=1 --thread-spec=1 -t,--time=5 --time-min=1 --uid=1
--use-min-nodes -v,--verbose -W,--wait --wckey=w --cluster-constraint=c --contiguous
-C,--constraint=c -F,--nodefile=f --mem=1G --mincpus=1 --reservation=r --tmp=1 -w,--nodelist=h
-x,--exclude=h --exclusive --mem-per-cpu=1G --sockets-per-node=1 --cores-per-socket=1
--threads-per-core=1 --ntasks-per-core=1 --ntasks-per-socket=1 --hint=x --mem-bind=x
--cpus-per-gpu=1 -G,--gpus=1 --gpu-bind=x --gpu-freq=x --gpus-per-node=1 --gpus-per-socket=1
--gpus-per-task=1 --mem-per-gpu=1G
"""
"""Of ``sbatch --help``, 22.05, with a value where one is needed; without --wrap, for commands."""
GBATCH = """
--begin=now -c,--conda-env=e -g,--gpus=1 --gres=1 --shared -p,--priority=3 --nice=3
-d,--depends-on=1 --dependency=1 --depends-on-all=1,2 --depends-on-any=1,2 --no-auto-cancel
--array=1-3 -t,--time=5 --time-limit=5 --timelimit=5 -m,--memory=1G --max-mem=1G --max-memory=1G
--gpu-memory=1G --max-gpu-mem=1G --max-gpu-memory=1G -n,--name=n --job-name=n --auto-close
--param=a=1,2 --dry-run --max-concurrent=2 --max-retries=2 --param-file=f --name-template=t
-P,--project=p --notify-email=m --notify-on=done
"""
"""Of ``gbatch --help``, gflow of August 2026."""
ALREADY_SO = {"--no-requeue", "--no-auto-cancel"}
"""What jobs do here without being asked."""


def spellings(options: str) -> list[str]:
    """Return each option by its short and its long name."""
    found = []
    for one in options.split():
        names, equals, value = one.partition("=")
        for name in names.split(","):
            found.append(f"{name} {value}" if len(name) == 2 and value else name + equals + value)
    return found


@pytest.mark.parametrize(
    ("kind", "option"),
    [("#SBATCH", one) for one in spellings(SBATCH)]
    + [("# GFLOW", one) for one in spellings(GBATCH)],
)
def test_an_option_is_used_or_named(tmp_path: Path, kind: str, option: str) -> None:
    path = tmp_path / "job.sh"
    path.write_text(f"#!/bin/bash\n{kind} {option}\ntrue\n")
    used, notices = read_directives(path)
    name = option.replace("=", " ").split()[0]
    if name in ALREADY_SO:
        assert (used, notices) == ([], [])
    elif not used:
        assert len(notices) == 1 and f" {name} " in notices[0] and "is not used" in notices[0]
