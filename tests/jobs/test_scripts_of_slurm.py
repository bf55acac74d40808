"""Scripts and habits of Slurm work here, or are told why not; see docs/job-scripts.md."""

from __future__ import annotations

import codecs
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.processes.control_groups import usable_memory
from jupyter_dist_server.common.units import read_limit
from jupyter_dist_server.jobs.store.slurm_formats import read_moment
from jupyter_dist_server.jobs.submit.script_directives import read_directives
from jupyter_dist_server.jobs.submit.submission import read_array

from ..fake_nvml.build import State
from ..waiting import wait_for
from .queue_driver import JDIST, Queue


def script(text: str, name: str = "job.sh") -> str:
    Path(name).write_text(f"#!/bin/bash\n{text}\n")
    return name


def printed(queue: Queue, *args: str) -> list[str]:
    """Return what a job prints, which has to succeed."""
    job = queue.submit(*args)
    assert queue.ended(job)["state"] == "COMPLETED", queue.output(job)
    return queue.output(job).splitlines()


def test_the_variables_that_scripts_read_are_set(queue: Queue, fake_nvml: State) -> None:
    fake_nvml.write(gpus=3, memory=80 << 30)
    here = os.getcwd()
    script("""#SBATCH --chdir=/
cd $SLURM_SUBMIT_DIR; mkdir -p out/$SLURM_JOB_ID; pwd; ls out
echo $OMP_NUM_THREADS $SLURM_CPUS_PER_TASK $SLURM_CPUS_ON_NODE $SLURM_JOBID $SLURM_JOB_NAME
echo $SLURM_GPUS $SLURM_GPUS_ON_NODE $SLURM_JOB_GPUS $SLURM_SUBMIT_HOST $SLURMD_NODENAME
SLURM_OWN=1; echo ${SLURM_OWN}
echo ${SLURM_JOB_NODELIST} ${SLURM_PROCID-none} ${SLURM_NTASKS:-none} $SLURM_LOCALID-none
: ${SLURM_STEP_ID:=0} $SLURM_STEP_ID ${SLURM_NNODES}""")
    said = queue.run("submit", "-o", f"{here}/out-%j", "-c", "1", "--gpu-ids", "1,2", "job.sh")
    assert said.splitlines()[0] == (
        "jdist: Nothing sets SLURM_LOCALID, SLURM_NNODES, which job.sh reads."
    )
    assert queue.ended("1")["state"] == "COMPLETED"
    host = os.uname().nodename
    assert Path("out-1").read_text().splitlines() == [
        here,
        "1",
        "1 1 1 job.sh",
        f"2 2 1,2 {host} {host}",
        "1",
        f"{host} none none -none",
    ]


def test_the_variables_of_arrays_and_dependencies(queue: Queue) -> None:
    first = queue.submit("true")
    queue.submit("-H", "-a", "2,5-9:2", "-d", f"afterany:{first}", "env")
    queue.run("release", "2_5")
    queue.ended("2_5")
    found = dict(line.split("=", 1) for line in Path("jdist-2_5.out").read_text().splitlines())
    names = ("JOB_ID", "TASK_ID", "TASK_COUNT", "TASK_MIN", "TASK_MAX")
    assert [found[f"SLURM_ARRAY_{name}"] for name in names] == ["2", "5", "4", "2", "9"]
    assert found["SLURM_JOB_DEPENDENCY"] == f"afterany:{first}"
    assert "SLURM_GPUS" not in found


def test_a_job_that_submits_gives_its_own_numbers_to_none(queue: Queue) -> None:
    jdist = f"{sys.executable} -c {JDIST!r}"
    script(f"{jdist} submit -o inner printenv SLURM_JOB_ID")
    assert printed(queue, "job.sh") == ["Submitted job 2."]
    queue.ended("2")
    assert Path("inner").read_text() == "2\n"


@pytest.fixture
def no_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide Slurm's programs, if they are installed."""
    folders = []
    for number, folder in enumerate(os.environ["PATH"].split(os.pathsep)):
        if Path(folder, "srun").exists():
            without = tmp_path / f"path-{number}"
            without.mkdir()
            for program in Path(folder).iterdir():
                if program.name != "srun":
                    (without / program.name).symlink_to(program)
            folder = str(without)
        folders.append(folder)
    monkeypatch.setenv("PATH", os.pathsep.join(folders))


@pytest.mark.usefixtures("no_slurm")
def test_srun_runs_one_task_in_place(queue: Queue) -> None:
    script("srun -l --cpu-bind=none --mem 1G -n1 --chdir=/ echo one task\nsrun pwd")
    said = printed(queue, "job.sh")
    assert said == ["srun: not used here: -l --cpu-bind --mem", "one task", os.getcwd()]
    script("#SBATCH --ntasks=4\nsrun python train.py --lr 0.1")
    refused = queue.run("submit", "job.sh", code=2)
    assert "job.sh starts 4 tasks by srun. There is no Slurm here." in refused
    assert "jdist submit --torchrun -G 4 train.py" in refused
    script("N=3\nsrun -n $N true")
    job = queue.submit("job.sh")
    assert queue.ended(job)["state"] == "FAILED"
    assert "Use jdist submit --torchrun -G 3 instead." in queue.output(job)


def test_srun_of_a_real_slurm_stays(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path("bin/srun")
    real.parent.mkdir()
    real.write_text("#!/bin/sh\necho the real one\n")
    real.chmod(0o755)
    monkeypatch.setenv("PATH", f"{real.parent.absolute()}:{os.environ['PATH']}")
    script("srun -n 4 true")
    assert printed(queue, "job.sh") == ["the real one"]


def test_exported_variables(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "own")
    show = ["sh", "-c", 'echo "$CLASSES|$MINE|$HOME"']
    home = os.environ["HOME"]
    assert printed(queue, "--export", "ALL,CLASSES='cat,dog'", *show) == [f"cat,dog|own|{home}"]
    assert printed(queue, "--export", 'CLASSES="a b",MINE', *show) == [f"a b|own|{home}"]
    assert printed(queue, "--export", "ALL,NOT_SET", *show) == [f"|own|{home}"]
    assert printed(queue, "--export", "NIL", "/bin/sh", "-c", 'echo "$MINE|$HOME"') == ["|"]
    assert "Close the quotation mark." in queue.run("submit", "--export", "A='b", "true", code=2)


def test_zero_means_no_limit_and_all_memory(queue: Queue) -> None:
    job = queue.submit("-H", "--time=0", "--mem=0", "true")
    assert queue.show(job)["limit"] is None
    assert queue.show(job)["memory"] == usable_memory()
    assert read_limit("00:00:00") is None


def test_when_a_job_begins_in_words() -> None:
    now = datetime(2026, 11, 27, 14, 20).timestamp()

    def begins(text: str) -> str:
        return datetime.fromtimestamp(read_moment(text, now)).isoformat(" ", "minutes")[5:]

    for text, moment in {
        "tomorrow": "11-28 00:00",
        "today": "11-27 14:20",
        "midnight": "11-28 00:00",
        "noon": "11-28 12:00",
        "fika": "11-27 15:00",
        "Teatime": "11-27 16:00",
        "now+1hour": "11-27 15:20",
        "now + 2 days": "11-29 14:20",
        "16:00": "11-27 16:00",
        "4PM": "11-27 16:00",
        "4:30am": "11-28 04:30",
        "12/24/26": "12-24 00:00",
        "122426": "12-24 00:00",
        "2026-12-24T06:00": "12-24 06:00",
    }.items():
        assert begins(text) == moment, text
    with pytest.raises(DistError, match="“someday” is not a time"):
        read_moment("someday", time.time())


def test_wrapped_commands_and_scripts_from_standard_input(queue: Queue) -> None:
    assert printed(queue, "--wrap", "python -c 'print(1)'") == ["1"]
    assert queue.show("1")["name"] == "wrap"
    assert "not both" in queue.run("submit", "--wrap", "true", "false", code=2)
    given = "#!/bin/bash\n#SBATCH -J piped\necho from a pipe\n"
    command = [sys.executable, "-c", JDIST, "submit"]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    assert done.stdout == "Submitted job 2.\n", done.stderr
    assert queue.ended("2")["state"] == "COMPLETED"
    assert queue.output("2") == "from a pipe\n" and queue.show("2")["name"] == "piped"
    kept = {*queue.folder.rglob("scripts/*")}
    for more in (["--dry-run"], ["-c", "-1"], ["--param", "x=1"]):
        subprocess.run([*command, *more], input=given, capture_output=True, text=True, check=False)
    assert {*queue.folder.rglob("scripts/*")} == kept, "what was not queued leaves no script"
    queue.run("submit", "--like", "2")
    assert queue.ended("3")["state"] == "COMPLETED"
    done = subprocess.run(command, input="", capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "There is no command." in done.stderr


def test_options_in_the_environment(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "SBATCH_TIMELIMIT": "10",
        "SBATCH_JOB_NAME": "theirs",
        "JDIST_JOB_NAME": "ours",
        "SBATCH_PARTITION": "long",
        "SBATCH_REQUEUE": "1",
    }.items():
        monkeypatch.setenv(name, value)
    script("#SBATCH -t 20\n#SBATCH --comment below")
    said = queue.run("submit", "-H", "job.sh")
    assert "jdist: SBATCH_PARTITION is not used." in said
    job = queue.show("1")
    assert (job["limit"], job["name"], job["spec"]["comment"]) == (600.0, "ours", "below")
    assert job["spec"]["requeue"] > 0
    queue.submit("-H", "-t", "5", "-J", "given", "job.sh")
    job = queue.show("2")
    assert (job["limit"], job["name"]) == (300.0, "given")


def test_a_byte_order_mark_hides_nothing(queue: Queue) -> None:
    script("#SBATCH -J marked\necho works")
    Path("job.sh").write_bytes(codecs.BOM_UTF8 + Path("job.sh").read_bytes())
    assert printed(queue, "job.sh") == ["works"]
    assert queue.show("1")["name"] == "marked"


def test_a_wrong_part_of_an_array_is_named() -> None:
    for text, part in {"5-3,7": "“5-3” in “5-3,7”", "1,x": "“x” in", "1-4%0": "“%0” in"}.items():
        with pytest.raises(DistError, match=part):
            read_array(text)
    assert read_array("1-3,7%2") == ([1, 2, 3, 7], 2)


def test_lines_that_come_too_late_are_named(tmp_path: Path) -> None:
    path = tmp_path / "job.sh"
    path.write_text("#!/bin/bash\n#SBATCH -G 1\n\necho\n#SBATCH -t 5\n#JDIST --hold\n")
    assert read_directives(path) == (
        ["--gpus", "1"],
        ["Lines 5, 6 of job.sh are not used: options come before the first command."],
    )
    path.write_text("#!/bin/bash\n#SBATCH --gres=shard:4\n")
    assert read_directives(path) == (["--gpus", "1", "--share", "--gpu-memory", "4G"], [])


def test_slips_are_answered_with_what_was_meant(queue: Queue) -> None:
    assert "Did you mean jdist queue?" in queue.run("submit", "queue", code=2)
    assert "Did you mean jdist logs 3?" in queue.run("submit", "logs", "3", code=2)
    said = queue.run("submit", "python train.py --lr 0.1", code=2)
    assert "Leave out the quotation marks: jdist submit python train.py --lr 0.1" in said
    wait_for(lambda: queue.run("queue").count("\n") == 1, "that nothing was queued")
