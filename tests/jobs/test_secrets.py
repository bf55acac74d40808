"""Values of variables and parameters with names of secrets: the job has them, nobody else."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_dist_server.jobs.store.secret_values import MASK, hide_secrets
from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_folder import store_folder

from .queue_driver import OTHER, Queue

SECRET = "hf_VerySecretValue"


def files_with_secret(folder: Path) -> list[Path]:
    """Return the files of a queue, without what its jobs wrote, that have the value in them."""
    found = [path for path in (folder / "jupyter-dist").rglob("*") if path.is_file()]
    return [path for path in found if SECRET.encode() in path.read_bytes()]


def all_said(queue: Queue, job: str) -> str:
    commands = [["show", job], ["show", "--json", job], ["history"], ["history", "--json"]]
    commands += [["queue", "-u", "all"], ["queue", "--json"]]
    return "".join(queue.run(*command) for command in commands)


@pytest.mark.parametrize("given", ["shell", "--env", "--export", "script"])
def test_a_variable(queue: Queue, given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = ["sh", "-c", 'echo "[$HF_TOKEN]"; echo $NAME']
    if given == "shell":
        monkeypatch.setenv("HF_TOKEN", SECRET)
    if given == "script":
        lines = [
            f"#JDIST --env NAME=plain --env HF_TOKEN={SECRET} -t 5",
            'echo "[$HF_TOKEN]"; echo $NAME',
        ]
        Path("job.sh").write_text("\n".join(lines))
        job = ["job.sh"]
    options = [] if given in ("shell", "script") else [given, f"HF_TOKEN={SECRET}"]
    options += [] if given == "script" else ["--env", "NAME=plain"]
    said = queue.run("submit", "--dry-run", *options, *job)
    id = queue.submit(*options, *job)
    assert queue.ended(id)["state"] == "COMPLETED"
    assert queue.output(id) == f"[{SECRET}]\nplain\n"
    said += all_said(queue, id)
    assert SECRET not in said
    assert f"HF_TOKEN={MASK}" in said
    (found,) = files_with_secret(queue.folder)
    assert stat.S_IMODE(found.stat().st_mode) == 0o600
    assert found.parent.name == "secrets"
    queue.run("requeue", id)
    queue.ended(id)
    assert queue.output(id) == f"[{SECRET}]\nplain\n" * 2


def test_parameters(queue: Queue) -> None:
    given = ["--param", f"api_key={SECRET},{SECRET}2", "--param", "max_tokens=5"]
    job = ["echo", "{api_key}", "{max_tokens}"]
    said = queue.run("submit", "--dry-run", *given, *job)
    array = queue.submit(*given, *job)
    queue.run("wait", array)
    files = [queue.folder / f"jdist-{array}_{task}.out" for task in (0, 1)]
    assert [file.read_text() for file in files] == [f"{SECRET} 5\n", f"{SECRET}2 5\n"]
    said += all_said(queue, array)
    assert SECRET not in said
    assert f"echo '{MASK}1' 5" in said
    assert [path.parent.name for path in files_with_secret(queue.folder)] == ["secrets"]
    refused = queue.run("submit", "--like", f"{array}_1", code=2)
    assert "A secret of the other job is hidden" in refused
    again = queue.submit("-H", "--like", array, "--param", "api_key=x", "--param", "max_tokens=6")
    assert queue.show(again)["params"] == {"api_key": MASK, "max_tokens": "6"}


def test_a_script_from_standard_input(queue: Queue) -> None:
    script = f"#JDIST --env HF_TOKEN={SECRET}\necho $HF_TOKEN\n"
    done = subprocess.run(
        [queue.program(), "submit", "--parsable"], input=script, text=True, stdout=subprocess.PIPE
    )
    id = done.stdout.strip()
    queue.ended(id)
    assert queue.output(id) == f"{SECRET}\n"
    found = files_with_secret(queue.folder)
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600}


def test_a_value_with_commas(queue: Queue) -> None:
    job = queue.submit("--export", f"ALL,HF_TOKEN='a,{SECRET}'", "sh", "-c", "echo $HF_TOKEN")
    queue.ended(job)
    assert queue.output(job) == f"a,{SECRET}\n"
    assert [path.parent.name for path in files_with_secret(queue.folder)] == ["secrets"]


def test_the_file_is_lost(queue: Queue) -> None:
    job = queue.submit("-H", "--env", f"HF_TOKEN={SECRET}", "true")
    (kept,) = files_with_secret(queue.folder)
    kept.unlink()
    queue.run("release", job)
    ended = queue.ended(job)
    assert (ended["state"], ended["reason"]) == ("FAILED", "JobLaunchFailure")
    assert f"The secrets of the job in {kept} cannot be read" in ended["detail"]
    queue.run("show", job)


def test_names_of_secrets() -> None:
    names = "HF_TOKEN aws_secret_access_key PGPASSWORD OPENAI_API_KEY_2 GOOGLE_CREDENTIALS ApiKey"
    others = "MAX_TOKENS TOKENIZERS_PARALLELISM KEYBOARD PATH PASS"
    shown, _, hidden = hide_secrets(dict.fromkeys(f"{names} {others}".split(), "x"), [{}])
    assert sorted(hidden.environment) == sorted(names.split())
    assert {name for name in shown if shown[name] == MASK} == {*names.split()}


def test_jobs_of_an_older_version(queue: Queue) -> None:
    """Their values are with the other variables."""
    from jupyter_dist_server.jobs.store.job import Job, Spec

    queue.submit("true")
    store = Store(store_folder())
    spec = Spec(argv=["sh", "-c", "echo $HF_TOKEN"], cwd=str(queue.folder))
    environment = {"HF_TOKEN": SECRET, "PATH": os.environ["PATH"]}
    (id,) = store.submit([Job(params={}, name="old", spec=spec)], "old", environment=environment)
    store.close()
    queue.ended(str(id))
    assert queue.output(str(id)) == f"{SECRET}\n"


@pytest.fixture
def reachable(leases: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    """Return a queue whose folder others can reach."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    monkeypatch.chdir(folder)
    ours = Queue(folder)
    yield ours
    ours.end()
    shutil.rmtree(folder)


@pytest.mark.root
def test_another_user_reads_nothing(reachable: Queue) -> None:
    """Neither in our files nor of our processes, while the job runs."""
    told = json.loads(
        reachable.run("submit", "--json", "--env", f"HF_TOKEN={SECRET}", "--param", "n=1", "sleep",
                      "{n}00")
    )  # fmt: skip
    reachable.until(told[0]["label"], "RUNNING")
    as_other = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups"]
    look = f"grep -rs {SECRET[:-1]}[e] {reachable.folder} /proc/[0-9]*/environ /proc/[0-9]*/cmdline"
    assert files_with_secret(reachable.folder)

    def said(command: Callable[[str], list[str]]) -> str:
        return subprocess.run(command(look), capture_output=True, text=True).stdout

    assert SECRET in said(lambda line: ["sh", "-c", line]), "we read it ourselves"
    assert said(lambda line: [*as_other, "sh", "-c", line]) == ""
