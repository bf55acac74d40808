"""Each option of programs of gflow and Slurm has an effect, or is named in the answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..fake_nvml.build import State
from ..jobs.queue_driver import Queue
from ..jobs.test_all_options import GBATCH, SBATCH, spellings

OPTIONS = {
    "gqueue": """
-n,--limit=1 --since=1h -r,--sort=id -N,--names=a -P,--project=p -g,--group -t,--tree -T,--tmux
-o,--output=csv --interval=2
""",
    "ginfo": "-v,--verbose -q,--quiet",
    "gflowd": "-c,--config=f --cleanup -v,--verbose -q,--quiet --gpus=0,2",
    "squeue": """
-A,--account=a -a,--all --array-unique --federation --hide --json --local -L,--licenses=l
-M,--clusters=c --noconvert -p,--partition=p -q,--qos=q -R,--reservation=r --sibling -s,--step=1.0
-S,--sort=i -v,--verbose -w,--nodelist=n --yaml
""",
    "scancel": """
-A,--account=a -b,--batch -H,--hurry -i,--interactive -M,--clusters=c -p,--partition=p -Q,--quiet
-q,--qos=q -R,--reservation=r --sibling=c -v,--verbose -w,--nodelist=n --wckey=w
""",
    "sinfo": """
-a,--all -d,--dead -e,--exact --federation -h,--noheader --hide -i,--iterate=1 --json --local
-M,--clusters=c -n,--nodes=n --noconvert -N,--Node -o,--format=%n -O,--Format=Nodes
-p,--partition=p -r,--responding -R,--list-reasons -s,--summarize -S,--sort=n -t,--states=idle
-T,--reservation -v,--verbose --yaml
""",
    "sacct": """
-A,--accounts=a -L,--allclusters -a,--allusers -x,--associations=a -B,--batch-script -M,--clusters=c
-c,--completion -C,--constraints=c -D,--duplicates --env-vars --federation -f,--file=f
-F,--flags=f -g,--gid=1 --group=1 --json -l,--long --local -i,--nnodes=1 -I,--ncpus=1 --noconvert
-N,--nodelist=n -r,--partition=p -q,--qos=q -R,--reason=r -K,--timelimit-max=1
-k,--timelimit-min=1 -T,--truncate --units=G --use-local-uid -v,--verbose -W,--wckeys=w
--whole-hetjob=yes --yaml
""",
    "scontrol": """
-a,--all -d,--details --federation -F,--future --hide --local -M,--cluster=c -Q,--quiet --sibling
-u,--uid=1 -v,--verbose
""",
}
"""Of their ``--help``; those with an effect that other tests see are left out."""
HAVE_EFFECT = {"-n", "--limit", "--since", "-r", "--sort", "-N", "--names", "-P", "--project"}
"""Of ``gqueue``, see below."""


@pytest.mark.parametrize("program", OPTIONS)
def test_an_option_is_used_or_named(queue: Queue, fake_nvml: State, program: str) -> None:
    fake_nvml.write(gpus=1, memory=80 << 30)
    rest = {"scancel": ["1"], "scontrol": ["show", "job"], "gflowd": ["up"]}.get(program, [])
    for option in spellings(OPTIONS[program]):
        if program == "scancel" and not queue.run("squeue", "-h"):
            queue.run("sbatch", "-H", "--wrap", "true")
            rest = [queue.run("squeue", "-h", "-o", "%i").strip()]
        words = option.split() if option[2:3] == " " else [option]
        name, _, value = option.replace(" ", "=").partition("=")
        try:
            said = queue.run(program, *words, *rest)
        except AssertionError as refused:
            assert f"{program} {name} has no translation" in str(refused) or "csv" in str(refused)
            continue
        if program == "gflowd":
            assert f"gflowd {' '.join(words)} up: the queue needs no daemon" in said
        elif not (program == "gqueue" and name in HAVE_EFFECT):
            assert f"jdist: {program} {f'{name} {value}'.rstrip()} is not used.\n" in said


@pytest.mark.parametrize(("program", "options"), [("sbatch", SBATCH), ("gbatch", GBATCH)])
def test_options_when_submitting(
    queue: Queue, fake_nvml: State, monkeypatch: pytest.MonkeyPatch, program: str, options: str
) -> None:
    fake_nvml.write(gpus=2, memory=80 << 30)
    monkeypatch.setenv("HOME", str(queue.folder))
    queue.run("submit", "-H", "-a", "1-2", "true")
    Path("f").write_text("a\n1\n")
    for option in spellings(options):
        name = option.replace("=", " ").split()[0]
        also = {"--shared": ["--gpu-memory=1G", "-g1"]}.get(name, [])
        also = ["--shared", "-g1"] if "gpu-mem" in name else also
        command = ["echo", "{a}" if name in ("--param", "--param-file") else "-x"]
        said = queue.run(program, *also, *option.split(), "--dry-run", *command)
        assert f"{' '.join(command).replace('{a}', '1')}\n" in said, option


def test_lists_are_filtered_sorted_and_cut(queue: Queue) -> None:
    for name, priority in {"b": 1, "a": 3, "c": 2}.items():
        queue.submit("-H", "-J", name, "--priority", str(priority), "--comment", f"p{name}", "true")

    def names(*options: str) -> list[str]:
        return queue.run("gqueue", "-f", "NAME", *options).split()[1:]

    assert names() == names("-r", "id") == ["b", "a", "c"]
    assert names("-r", "name") == ["a", "b", "c"]
    assert names("--sort=priority") == ["a", "c", "b"]
    assert names("-n", "2") == ["b", "a"] and names("--limit=-1") == ["c"]
    assert names("-N", "a,c") == ["a", "c"] and names("-P", "pc") == ["c"]
    assert names("--since", "1h") == ["b", "a", "c"]
    assert names("-s", "Hold") == ["b", "a", "c"] and names("-s", "Queued,Running") == []
    queue.run("gcancel", "1,2")
    assert names("-s", "Cancelled") == names("-c") == ["b", "a"]
    assert names("-a") == ["b", "a", "c"] and names("-j", "3") == ["c"]
    assert names("-u", "all") == ["c"]
    assert json.loads(queue.run("queue", "--json", "-t", "CA"))[0]["state"] == "CANCELLED"
    assert "There is no column X." in queue.run("gqueue", "-f", "X", code=2)


def test_gcancel_and_gjob(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(queue.folder))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert queue.run("gbatch", "echo  hello; echo you").splitlines()[0] == "Submitted batch job 1"
    queue.ended("1")
    assert queue.run("gcancel", "--dry-run", "1") == "Job 1 is COMPLETED.\n"
    assert queue.run_program("gjob", "log", "1") == "hello\nyou\n"
    queue.run("gbatch", "-p", "3", "--begin", "now+1day", "true")
    assert queue.run("gcancel", "--dry-run", "2") == "Job 2 would be cancelled.\n"
    queue.run("gjob", "h", "2")
    queue.run("gjob", "update", "-t", "10", "-p", "7", "2")
    job = queue.show("2")
    assert (job["held"], job["limit"], job["priority"]) == (True, 600.0, 7)
    assert "gjob update -m has no translation" in queue.run("gjob", "u", "-m", "1G", "2", code=2)
    assert "no tmux session" in queue.run("gjob", "attach", "2", code=2)
    assert "Submitted batch job 3\n" in queue.run("gjob", "redo", "-p", "9", "1")
    assert (
        queue.ended("3")["priority"] == 9
        and queue.run_program("gjob", "log", "3") == "hello\nyou\n"
    )
