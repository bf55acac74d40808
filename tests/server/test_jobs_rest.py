"""The queue over REST and the stream: the same jobs as ``jdist``'s, and no secret of theirs."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.common.processes.control_groups import usable_cores
from jupyter_dist_server.jobs.submit.job_request import JobRequest

from ..server_driver import Server
from ..waiting import wait_for
from .client import NDJSON, Client
from .openapi import answer_schema, validate
from .stream import connect, read, read_until


def submit(client: Client, *command: str, **options: Any) -> str:
    body = {"command": list(command), "cpus": 0} | options
    label: str = client.post("jobs", body, 201)["jobs"][0]["label"]
    return label


def job(client: Client, label: str) -> dict[str, Any]:
    (found,) = client.get(f"jobs/{label}")["jobs"]
    return dict(found)


def follow(client: Client, label: str) -> list[dict[str, Any]]:
    """Return all pieces of a job's output, until it has ended."""
    answer = client.call("GET", f"jobs/{label}/log?follow=1")
    assert answer.status == 200, answer.body
    return list(answer.body)


def test_a_job_runs_and_its_secrets_stay(client: Client, server: Server) -> None:
    secret = "swordfish"
    code = "echo got ${#SECRET}; exit 3"
    label = submit(client, "sh", "-c", code, env=[f"SECRET={secret}"], name="fails")
    assert "".join(piece["text"] for piece in follow(client, label)) == "got 9\n"
    ended = job(client, label)
    assert (ended["state"], ended["reason"], ended["exit_code"]) == ("FAILED", "NonZeroExitCode", 3)
    told = [client.get(route) for route in ("jobs?name=fails&states=F", "queue", f"jobs/{label}")]
    assert told[0]["count"] == 1
    assert secret not in json.dumps(told)
    (store,) = Path(server.env["XDG_STATE_HOME"]).glob("jupyter-dist/*/queue.db")
    assert store.stat().st_mode & 0o77 == 0
    with sqlite3.connect(store) as db:
        assert not [line for line in db.iterdump() if secret in line]
    kept = [path for path in store.parent.glob("secrets/*") if secret in path.read_text()]
    assert [path.stat().st_mode & 0o777 for path in kept] == [0o600], "it was there to be told"


def test_the_newest_ends_can_come_first(client: Client) -> None:
    first, second = (submit(client, "true", name="ends", hold=True) for _ in range(2))
    for label in (second, first):
        client.call("DELETE", f"jobs/{label}")

    def newest(order: str) -> str:
        (found,) = client.get(f"jobs?name=ends&last=1{order}")["jobs"]
        return str(found["label"])

    assert [newest(order) for order in ("", "&order=id", "&order=ended")] == [second, second, first]
    answer = client.call("GET", "jobs?order=name")
    assert (answer.status, answer.body["field"]) == (400, "order")


def test_a_form_is_told_what_can_be_asked_for(client: Client) -> None:
    fields = client.get("submit-schema")["properties"]
    assert set(fields) <= set(JobRequest.__struct_fields__)
    assert list(fields)[:4] == ["command", "notebook", "gpus", "time"]
    assert fields["gpus"]["x-option"] == "--gpus"
    # Its words are not those of the command's help, which would repeat the title.
    assert fields["begin"]["description"].startswith("Such as now+2hours")
    page = Path(__file__).parents[2].joinpath("docs", "cli.md").read_text()
    assert all(f"{field['x-option']}" in page for field in list(fields.values())[2:])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "command"),
        ({"command": ["./no-such-script"]}, "command"),
        ({"notebook": "missing.ipynb"}, "notebook"),
        ({"command": ["true"], "venv": "no/env"}, "venv"),
        ({"command": ["true"], "time": "soon"}, "time"),
        ({"command": ["true"], "mem": "much"}, "mem"),
        ({"command": ["true"], "begin": "soon"}, "begin"),
        ({"command": ["true"], "cpus": 9999}, "cpus"),
        ({"command": ["true"], "dependency": "afterok:99999"}, "dependency"),
        ({"command": ["true"], "param": ["lr=1,2"]}, "param"),
        ({"command": ["true"], "gpus": 999}, "gpus"),
        ({"command": ["true"], "min_gpu_memory": "20G"}, "min_gpu_memory"),
        ({"command": ["true"], "share": True, "gpu_memory": "20G"}, "share"),
    ],
)
def test_a_refusal_names_the_field(client: Client, body: Any, field: str) -> None:
    assert client.call("POST", "jobs/plan", body=body).body["field"] == field


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "bad_option"),
        ({"command": []}, "bad_option"),
        ({"command": "true"}, "bad_request"),
        ({"command": ["true"], "color": "red"}, "bad_request"),
        ({"command": ["true"], "time": "soon"}, "bad_time"),
        ({"command": ["true"], "cpus": 9999}, "too_large"),
        ({"command": ["true"], "gpus": "2"}, "bad_request"),
        ({"command": ["true"], "share": True, "gpu_memory": "20G"}, "bad_option"),
        ({"command": ["true"], "priority": 2**70}, "bad_option"),
        ({"command": ["true"], "mem": "much"}, "bad_size"),
        ({"command": ["true"], "begin": "now+999999999999weeks"}, "bad_time"),
        ({"command": ["true"], "dependency": "afterok:99999"}, "unknown_job"),
        ({"command": ["true"], "array": "1-3%0"}, "bad_array"),
        ({"command": ["true"], "array": "99999999999999999999"}, "bad_array"),
        ({"command": ["echo", "{lr}"], "param": ["seed=1"]}, "bad_parameter"),
        ({"command": ["./no-such-script"]}, "bad_script"),
        ({"command": ["a\0b"]}, "bad_request"),
        ({"command": ["true"], "name": "\ud800"}, "bad_request"),
    ],
)
def test_bad_input_is_said_as_in_a_terminal(client: Client, body: Any, code: str) -> None:
    before = client.get("jobs")["count"]
    for route in ("jobs", "jobs/plan"):
        answer = client.call("POST", route, body=body)
        assert (answer.status, answer.body["code"]) == (404 if code == "unknown_job" else 400, code)
        assert answer.body["message"].endswith(".")
    assert client.get("jobs")["count"] == before


def test_everything_that_can_be_done_to_a_job(client: Client, server: Server) -> None:
    code = "trap 'echo saved' USR1; echo up $JDIST_ATTEMPT; while [ ! -e go ]; do sleep 0.05; done"
    label = submit(client, "sh", "-c", code, hold=True, key="all")
    assert submit(client, "sh", "-c", code, hold=True, key="all") == label
    client.call("PATCH", f"jobs/{label}", body={"time": "2:00:00", "priority": 4, "name": "new"})
    client.call("PATCH", f"jobs/{label}", body={"comment": "mine", "grace": 5, "gpus": 0})
    changed = job(client, label)
    assert (changed["spec"]["comment"], changed["spec"]["grace"]) == ("mine", 5.0)
    for field in ("priority", "grace", "gpus"):
        refused = client.call("PATCH", f"jobs/{label}", body={field: 2**70})
        assert (refused.status, refused.body["field"]) == (400, field)
    assert (changed["limit"], changed["priority"], changed["name"]) == (7200.0, 4, "new")
    assert client.call("PATCH", f"jobs/{label}", body={"time": "soon"}).status == 400
    client.post(f"jobs/{label}/release", status=202)
    seen = ""
    with client.open("GET", f"jupyter-dist/jobs/{label}/log?follow=1") as pieces:
        schema = answer_schema("GET", f"jupyter-dist/jobs/{label}/log", 200, NDJSON)
        while line := pieces.readline():
            piece = json.loads(line)
            validate(schema or {}, piece)
            if piece["text"].startswith("up"):
                assert client.post(f"jobs/{label}/hold", status=202)["left"]
                assert not client.post(f"jobs/{label}/signal", {"signal": "USR1"}, 202)["left"]
            if "saved" in piece["text"]:
                (server.root / "go").touch()
            seen += piece["text"]
    assert seen.startswith("up 1\n") and seen.endswith("saved\n")
    (server.root / "go").unlink()
    client.post(f"jobs/{label}/requeue", status=202)
    assert client.call("DELETE", f"jobs/{label}?now=1").status == 202
    follow(client, label)
    assert job(client, label)["state"] == "CANCELLED"
    assert client.call("DELETE", f"jobs/{label}").body["left"] == [
        f"Job {label} had ended: CANCELLED."
    ]
    assert client.call("POST", f"jobs/{label}/signal", body={"signal": "NO"}).status == 400


def test_output_comes_in_bounded_pieces_whatever_it_is(client: Client) -> None:
    code = "import sys; sys.stdout.buffer.write(b'\\xff\\x00' + 'ä'.encode() * 100_000)"
    label = submit(client, "python", "-c", code)
    pieces = follow(client, label)
    assert "".join(piece["text"] for piece in pieces) == "\ufffd\0" + "ä" * 100_000
    assert max(len(piece["text"]) for piece in pieces) <= 65536
    last = client.get(f"jobs/{label}/log?offset=-4")
    assert (last["text"], last["next"], last["size"]) == ("ää", 200_002, 200_002)
    assert client.get(f"jobs/{label}/log?offset={last['next']}")["text"] == ""
    assert client.call("GET", f"jobs/{label}/log?offset=x").status == 400


def test_the_page_of_a_job(client: Client) -> None:
    first = submit(client, "true", name="first")
    follow(client, first)
    code = "import sys; sys.stdout.write('ä' * 50_000 + '\\n' + 'line\\n' * 50_000 + 'Last')"
    label = submit(client, "python", "-c", code, dependency=f"afterany:{first}", env=["SECRET=x"])
    follow(client, label)
    told = client.get(f"jobs/{label}/details")
    (upon,) = told["dependencies"]
    assert (upon["label"], upon["name"], upon["state"]) == (first, "first", "COMPLETED")
    assert (upon["dependency"], upon["any"]) == (f"afterany:{first}", False)
    either = [f"after:{first}+5", f"afterok:{first}"]
    other = submit(client, "true", dependency="?".join(either), hold=True)
    upon = client.get(f"jobs/{other}/details")["dependencies"]
    assert [(one["dependency"], one["any"]) for one in upon] == [(one, True) for one in either]
    client.call("DELETE", f"jobs/{other}")
    assert told["request"] == {
        "command": ["python", "-c", code],
        "chdir": told["job"]["spec"]["cwd"],
        "cpus": 0,
        "dependency": f"afterany:{first}",
    }
    assert told["notebook"] is None and told["error"] is None
    assert "SECRET" in told["variables"] and told["attempts"][0]["state"] == "COMPLETED"
    assert told["job"]["label"] == label and told["command"][0] == "python"
    place, texts = 350_005, []
    while place:
        piece = client.get(f"jobs/{label}/lines?before={place}")
        assert (piece["next"], piece["size"]) == (place, 350_005)
        assert len(piece["text"].encode()) <= 65536 + 6  # a long line is cut anywhere
        place = piece["offset"]
        texts.insert(0, piece["text"])
    assert "".join(texts).endswith("\nline\nline\nLast")
    found = client.get(f"jobs/{label}/lines?find=last")
    assert (found["text"], found["offset"], found["found"]) == ("Last", 350_001, True)
    assert not client.get(f"jobs/{label}/lines?find=nothing")["found"]
    assert client.get(f"jobs/{label}/lines?offset={found['next']}")["text"] == ""
    assert client.call("GET", f"jobs/{label}/lines?before=x").status == 400


def test_errors_in_a_file_of_their_own(client: Client) -> None:
    label = submit(client, "sh", "-c", "echo well; echo badly >&2", error="%j.err")
    follow(client, label)
    told = client.get(f"jobs/{label}/details")
    assert told["error"] == os.path.join(told["job"]["spec"]["cwd"], f"{label}.err")
    assert client.get(f"jobs/{label}/lines")["text"] == "well\n"
    assert client.get(f"jobs/{label}/lines?error=1")["text"] == "badly\n"


def test_a_job_says_what_asks_for_one_like_it(client: Client, server: Server) -> None:
    (server.root / "run.sh").write_text("#SBATCH --job-name=named\necho $1 $KEY")
    label = submit(
        client, "./run.sh", "{lr}", param=["lr=1,2"], env=["KEY=secret"], export="ALL,B=secret"
    )
    follow(client, f"{label.partition('_')[0]}_1")
    told = client.get(f"jobs/{label.partition('_')[0]}_1/details")
    asked = told["request"]
    assert asked["command"] == [str(server.root / "run.sh"), "{lr}"]
    assert (asked["param"], asked["name"], asked["export"]) == (["lr=2"], "named", "ALL")
    assert "secret" not in json.dumps(told)
    again = client.post("jobs", asked, 201)["jobs"][0]
    pieces = follow(client, again["label"])
    assert "".join(piece["text"] for piece in pieces) == "2\n"
    whole = label.partition("_")[0]
    assert client.post("jobs/plan", {"like": whole})["count"] == 2
    assert client.post("jobs/plan", {"like": f"{whole}_1"})["count"] == 1
    array = submit(client, "true", array="3-4", hold=True)
    assert client.get(f"jobs/{array}/details")["request"]["array"] == "3"


def test_all_tasks_are_counted_also_those_that_are_not_listed(client: Client) -> None:
    array = submit(client, "false", array="0-1000", hold=True).removesuffix("_0")
    told = client.get(f"jobs/{array}")
    assert (len(told["jobs"]), told["count"], told["states"]) == (1000, 1001, {"PENDING": 1001})
    assert told["last_failure"] is None
    client.post(f"jobs/{array}_1000/release", None, 202)
    follow(client, f"{array}_1000")
    told = client.get(f"jobs/{array}?first=1")
    assert ([job["label"] for job in told["jobs"]], told["count"]) == ([f"{array}_0"], 1001)
    assert told["states"] == {"PENDING": 1000, "FAILED": 1}
    assert told["last_failure"]["label"] == f"{array}_1000"
    client.call("DELETE", f"jobs/{array}")


def test_a_value_with_a_comma_stays_one_value(client: Client, server: Server) -> None:
    (server.root / "rows.csv").write_text('shape\n"3,4"\n"5,6"\n')
    asked = {"command": ["echo", "{shape}"], "param_file": "rows.csv", "hold": True}
    first, second = (job["label"] for job in client.post("jobs", asked, 201)["jobs"])
    again = client.get(f"jobs/{second}/details")["request"]
    assert again["command"] == ["echo", "5,6"] and not again.keys() & {"param", "param_file"}
    plan = client.post("jobs/plan", again)
    assert (plan["count"], plan["commands"]) == (1, ["echo 5,6"])
    for label in (first, second):
        client.call("DELETE", f"jobs/{label}")


def test_a_job_says_which_notebook_it_writes(client: Client, server: Server) -> None:
    (server.root / "deep").mkdir()
    (server.root / "deep" / "fit.ipynb").write_text("{}")
    asked = {"notebook": "deep/fit.ipynb", "hold": True, "chdir": "deep", "parameter": ["lr=1"]}
    label = client.post("jobs", asked, 201)["jobs"][0]["label"]
    told = client.get(f"jobs/{label}/details")
    assert told["notebook"] == f"deep/fit-{label}.ipynb"
    notebook = str(server.root / "deep" / "fit.ipynb")
    assert told["request"]["notebook"] == notebook and "command" not in told["request"]
    assert client.post("jobs/plan", told["request"])["count"] == 1
    client.call("DELETE", f"jobs/{label}")


def test_a_job_runs_in_the_environment_of_a_kernel(client: Client, server: Server) -> None:
    field = client.get("submit-schema")["properties"]["kernel"]
    assert field["x-labels"][field["enum"].index("python3")].startswith("Python 3")
    code = "import sys; print(sys.executable)"
    label = submit(client, "python", "-c", code, kernel="python3", env=["PATH=/usr/bin"])
    pieces = follow(client, label)
    assert os.path.realpath("".join(one["text"] for one in pieces).strip()) == os.path.realpath(
        sys.executable
    )
    refused = client.call("POST", "jobs/plan", body={"command": ["true"], "kernel": "nothing"})
    assert (refused.status, refused.body["field"]) == (400, "kernel")


def test_what_would_become_of_a_job(client: Client) -> None:
    now = client.post("jobs/plan", {"command": ["true"], "cpus": 0})
    assert (now["starts_now"], now["count"], now["commands"]) == (True, 1, ["true"])
    words = ["python", "-c", "print('a b')", "{lr}"]
    (told,) = client.post("jobs/plan", {"command": words, "param": ["lr=$1"]})["commands"]
    assert shlex.split(told) == [*words[:3], "$1"] and "'$1'" in told
    cores = usable_cores()
    running = submit(client, "sleep", "1000", cpus=cores, time="10")
    wait_for(lambda: job(client, running)["state"] == "RUNNING", "it to run")
    later = client.post("jobs/plan", {"command": ["true"], "param": []})
    client.call("DELETE", f"jobs/{running}?now=1")
    assert (later["starts_now"], later["place"], later["reason"]) == (False, 1, "Resources")
    held = client.post("jobs/plan", {"command": ["true"], "hold": True})
    assert (held["starts_now"], held["reason"]) == (False, "JobHeldUser")


async def test_the_stream_tells_what_happens_to_jobs(client: Client) -> None:
    stream = await connect(client)
    await stream.write_message(json.dumps({"watch": ["jobs"]}))
    first = (await read_until(stream, lambda frame: frame["type"] == "jobs"))[-1]
    assert first["events"] == []
    label = submit(client, "true")
    events: list[dict[str, Any]] = []
    while not events or events[-1]["state"] != "COMPLETED":
        frame = await read(stream)
        events += [one for one in frame.get("events", ()) if one["label"] == label]
    assert [one["state"] for one in events] == ["PENDING", "CONFIGURING", "RUNNING", "COMPLETED"]
    assert events[0]["seq"] > first["seq"]
    stream.close()


async def test_the_stream_counts_the_jobs_that_wait(client: Client) -> None:
    before = submit(client, "true", hold=True)
    stream = await connect(client)
    await stream.write_message(json.dumps({"watch": ["jobs"]}))
    first = (await read_until(stream, lambda frame: frame["type"] == "jobs"))[-1]
    submit(client, "echo", "{seed}", hold=True, param=["seed=1,2"])
    more = first["pending"] + 2
    await read_until(stream, lambda frame: frame.get("pending") == more)
    client.call("DELETE", f"jobs/{before}")
    await read_until(stream, lambda frame: frame.get("pending") == more - 1)
    stream.close()


def test_secrets_are_hidden(client: Client) -> None:
    body = {"command": ["echo", "{api_key}"], "param": ["api_key=abcdef"], "hold": True}
    body |= {"env": ["HF_TOKEN=abcdef"]}
    label = client.post("jobs", body, 201)["jobs"][0]["label"]
    told = [client.post("jobs/plan", body), client.get(f"jobs/{label}"), client.get("queue")]
    told.append(client.get(f"jobs/{label}/details"))
    assert "abcdef" not in json.dumps(told)
    assert told[-1]["command"] == ["echo", "••••"]
    assert "HF_TOKEN" in told[-1]["variables"]


def test_why_ranks_wait_is_told_of_running_ranks(client: Client, server: Server) -> None:
    code = (
        "import torch.distributed as dist, time; dist.init_process_group('gloo')\n"
        "print('up', flush=True)\n"
        "time.sleep(600) if dist.get_rank() else dist.barrier()\n"
    )
    Path(server.root, "hangs.py").write_text(code)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    ranks = submit(client, *torchrun, "--nproc-per-node", "2", "hangs.py")

    def told() -> dict[str, Any] | None:
        answer = client.call("GET", f"jobs/{ranks}/verdict")
        if answer.status == 200:
            (launch,) = answer.body["launches"]
            return launch if launch["text"].startswith("Rank 0 waits in barrier") else None
        assert answer.body["code"] in ("job_not_running", "no_ranks")
        return None

    launch = wait_for(told, "the verdict")
    assert "Rank 1 has not begun it: it is in `time.sleep`, hangs.py line 3." in launch["text"]
    assert launch["verdict"]["ranks"] == [1] and not launch["verdict"]["remedies"]
    assert "hangs.py, line 3, in <module>" in launch["stacks"]
    client.call("DELETE", f"jobs/{ranks}?now=1")
    wait_for(lambda: job(client, ranks)["ended"], "its end")
    answer = client.call("GET", f"jobs/{ranks}/verdict")
    assert (answer.status, answer.body["code"]) == (409, "job_not_running")


def test_a_requeue_takes_those_along_that_were_cancelled(client: Client, server: Server) -> None:
    first = submit(client, "sh", "-c", "test -e there")
    kill = {"kill_on_invalid_dep": "yes", "dependency": f"afterok:{first}"}
    second = submit(client, "true", **kill)
    follow(client, second)
    assert job(client, second)["state"] == "CANCELLED"
    (server.root / "there").touch()
    client.post(f"jobs/{first}/requeue?cascade=1", status=202)
    follow(client, second)
    assert job(client, second)["state"] == "COMPLETED"
