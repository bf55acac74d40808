"""GPUs by REST: what there is, the past as JSON, CSV and lines, and Prometheus's metrics."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import time
from typing import Any

import pytest

from jupyter_dist_server.common.policy import PATH
from jupyter_dist_server.jobs.rules.closures import Closure, change_closures

from ..fake_nvml.build import State
from ..server_driver import Server
from ..waiting import wait_for
from .client import NDJSON, Client
from .conftest import samplers, wait_until_nobody_looks

GIB = 1 << 30


def uuids(client: Client) -> list[str]:
    """Return the UUIDs of all GPUs."""
    return [gpu["uuid"] for gpu in client.get("gpus")["gpus"]]


def wait_for_rows(client: Client, rows: int = 1) -> dict[str, Any]:
    """Return what the history has gained once it is so much; asking begins the sampling."""
    route = f"gpus/history?since={time.time()}"

    def gained() -> dict[str, Any] | None:
        found: dict[str, Any] = client.get(route)
        return found if len(found["times"]) >= rows else None

    found: dict[str, Any] = wait_for(gained, "enough samples")
    return found


def test_gpus_are_listed_without_a_sampler(gpu_server: Server, gpu_client: Client) -> None:
    found = gpu_client.get("gpus")
    assert [gpu["index"] for gpu in found["gpus"]] == list(range(8))
    assert found["gpus"][0]["name"] == "NVIDIA H100 80GB HBM3"
    assert found["samples"] == found["processes"] == found["leases"] == {}
    assert found["reason"] is found["trouble"] is None
    assert samplers(gpu_server) == []


def test_history_is_kept_while_it_is_asked_for(gpu_server: Server, gpu_client: Client) -> None:
    history = wait_for_rows(gpu_client)
    names = uuids(gpu_client)
    assert history["step"] == 1
    assert list(history["gpus"]) == names
    assert set(history["gpus"][names[0]]["utilization"]) == {50}

    def sampled() -> Any:
        # Who asks keeps the sampler for a second; `get` may need longer to check the answer.
        gpu_client.raw("GET", "jupyter-dist/gpus/history?since=-1")
        return gpu_client.get("gpus")["samples"]

    samples = wait_for(sampled, "samples")
    assert list(samples) == names
    assert samples[names[7]]["memory_used"] == 8 * GIB
    wait_until_nobody_looks(gpu_server)
    assert gpu_client.get("gpus")["samples"] == {}


def test_a_stretch_of_the_history_of_some_gpus(gpu_client: Client) -> None:
    times = wait_for_rows(gpu_client, 4)["times"]
    names = uuids(gpu_client)
    for query, chosen in (
        ("gpu=0,3", [names[0], names[3]]),
        (f"gpu=5&gpu={names[1]}", [names[5], names[1]]),
        (f"gpu={names[2]},2", [names[2]]),
    ):
        assert list(gpu_client.get(f"gpus/history?{query}")["gpus"]) == chosen
    later = gpu_client.get(f"gpus/history?since={times[2] - 0.1}&gpu=0")
    assert later["times"][:2] == times[2:4]
    assert gpu_client.get(f"gpus/history?since={time.time() + 60}")["times"] == []
    assert times[0] in gpu_client.get("gpus/history?since=-60")["times"]

    stretch = f"since={times[1] - 0.1}&until={times[3] - 0.1}"
    query = f"{stretch}&metrics=power,utilization&gpu=0"
    some = gpu_client.get(f"gpus/history?{query}")
    assert some["times"] == times[1:3]
    assert some["gpus"][names[0]].keys() == {"power", "utilization"}
    lines = gpu_client.call("GET", f"gpus/export.jsonl?{query}").body
    assert [round(line["time"], 3) for line in lines] == times[1:3]
    assert set(lines[0]) == {"time", "index", "uuid", "name", "power", "utilization"}
    table = gpu_client.call("GET", f"gpus/export.csv?{query}").body.splitlines()
    assert table[0].endswith("name, power.draw [W], utilization.gpu [%]")
    assert len(table) == 3

    coarse = gpu_client.get(f"gpus/history?step=2&since={times[0]}&until={times[3] + 0.1}")
    assert coarse["step"] == 2
    assert coarse["times"] == sorted({moment // 2 * 2 for moment in times[:4]})


@pytest.mark.parametrize("route", ["history", "export.csv", "export.jsonl"])
@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ("since=yesterday", "since", "yesterday"),
        ("since=nan", "since", "nan"),
        ("until=tomorrow", "until", "tomorrow"),
        ("since=-10&until=-20", "until", "before since"),
        ("metrics=power,heat", "metrics", "heat"),
        ("gpu=9", "gpu", "GPU 9"),
        ("gpu=0,GPU-none", "gpu", "GPU-none"),
    ],
)
def test_a_bad_question_is_refused_with_the_field_named(
    gpu_client: Client, route: str, query: str, field: str, words: str
) -> None:
    answer = gpu_client.call("GET", f"gpus/{route}?{query}")
    assert (answer.status, answer.body["field"]) == (400, field)
    assert words in answer.body["message"]
    if field == "gpu":
        assert "7 (NVIDIA H100" in answer.body["hint"]


@pytest.mark.parametrize("step", ["0", "-1", "fast", "inf", "5e-324"])
def test_a_bad_step_is_refused(gpu_client: Client, step: str) -> None:
    answer = gpu_client.call("GET", f"gpus/history?step={step}")
    assert (answer.status, answer.body["field"]) == (400, "step")


def test_where_there_is_no_gpu_the_answer_says_why(client: Client) -> None:
    if client.get("gpus")["gpus"]:
        pytest.skip("this machine has GPUs")
    assert client.get("gpus/history")["gpus"] == {}
    answer = client.call("GET", "gpus/history?gpu=0")
    assert answer.status == 400
    assert answer.body["hint"] == client.get("gpus")["reason"]


def scrape(client: Client) -> dict[str, dict[str, float]]:
    """Return our part of ``/metrics``: by name and labels."""
    text = client.raw("GET", "metrics").body
    found: dict[str, dict[str, float]] = {}
    for name, labels, value in re.findall(r"^(\w+)\{(.*)\} (\S+)$", text, re.MULTILINE):
        found.setdefault(name, {})[labels] = float(value)
    return found


def test_prometheus_gets_the_names_of_the_dcgm_exporter(
    gpu_server: Server, gpu_client: Client, gpus: State
) -> None:
    gpus.update(**{"1.throttle": 0x24, "energy": 5_000_000, "ecc_corrected": 3, "gpm": 1})
    gpus.update(gpm_tensor=25)
    gpu_client.raw("GET", "metrics")  # begins to sample
    names = uuids(gpu_client)
    found = wait_for(
        lambda: "DCGM_FI_PROF_SM_ACTIVE" in (seen := scrape(gpu_client)) and seen, "metrics"
    )
    labels = next(iter(found["DCGM_FI_DEV_GPU_UTIL"]))
    assert f'UUID="{names[0]}"' in labels
    assert 'gpu="0"' in labels
    assert 'device="nvidia0"' in labels
    assert 'modelName="NVIDIA H100 80GB HBM3"' in labels
    for name, value in (
        ("DCGM_FI_DEV_GPU_UTIL", 50),
        ("DCGM_FI_DEV_FB_USED", 8 * 1024),
        ("DCGM_FI_DEV_POWER_USAGE", 300),
        ("DCGM_FI_DEV_GPU_TEMP", 40),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 5_000_000),
        ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", 3),
        ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.25),
    ):
        assert list(found[name].values()) == [value] * 8, name
    reasons = [re.findall(r'reason="(.*?)"', key)[0] for key in found["jupyter_dist_gpu_throttled"]]
    assert reasons == ["power cap", "thermal slowdown"]
    wait_until_nobody_looks(gpu_server)  # nor does Prometheus


def test_what_is_in_use_is_told_alike_everywhere(gpu_client: Client, gpus: State) -> None:
    gpus.update(**{"2.memory_used": 40 * GIB, "5.process": "4000001,?,0"})
    names = uuids(gpu_client)
    uses = gpu_client.get("gpus")["in_use"]  # read once, as nobody samples
    assert list(uses) == [names[2], names[5]]
    assert uses[names[2]]["unseen"] and uses[names[2]]["words"].endswith(", 40 GiB")
    assert not uses[names[5]]["unseen"] and uses[names[5]]["pids"] == [4000001]
    assert uses[names[5]]["words"].endswith(", memory unknown")
    assert gpu_client.get("start-schema")["properties"]["num_ranks"]["default"] == 6
    gpu_client.raw("GET", "metrics")  # begins to sample
    found = wait_for(lambda: scrape(gpu_client).get("jupyter_dist_gpu_in_use"), "metrics")
    assert [int(value) for value in found.values()] == [0, 0, 1, 0, 0, 1, 0, 0]
    page = str(gpu_client.call("GET", "").body)
    assert uses[names[2]]["words"] in page and uses[names[5]]["words"] in page


def test_what_is_closed_is_told_everywhere(
    gpu_client: Client, gpu_server: Server, leases: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATH, str(gpu_server.root / "leases" / "policy.toml"))
    names = uuids(gpu_client)
    drained = Closure(frozenset(names[6:7]), "root", "fan")
    later = Closure(frozenset(names[7:]), "root", "", time.time() + 3600, None, "r1")
    change_closures(lambda _: [drained, later])
    closed = gpu_client.get("gpus")["closed"]
    assert closed[names[6]] == {"words": "drained by root: fan", "now": True}
    assert closed[names[7]]["words"].startswith("reserved from ") and not closed[names[7]]["now"]

    def count_free() -> int:
        default: int = gpu_client.get("start-schema")["properties"]["num_ranks"]["default"]
        return default

    # What an earlier test has said of the GPUs may be kept for a moment.
    wait_for(lambda: count_free() == 7, "the drained GPU alone is not offered")
    (row,) = gpu_client.get("queue")["rows"]
    assert (row["id"], row["kind"], row["gpu_uuids"]) == ("r1", "reservation", names[7:])
    page = str(gpu_client.call("GET", "").body)
    assert "not leased; drained by root: fan" in page and "reserved from " in page
    change_closures(lambda _: [])


def test_nothing_old_is_told_as_new_while_the_driver_hangs(gpu_client: Client, gpus: State) -> None:
    name, page = "DCGM_FI_DEV_GPU_UTIL", lambda: gpu_client.call("GET", "").body
    said = r"No new values since \d\d:\d\d\. The NVIDIA driver has not responded for 10"
    with gpu_client.open("GET", "jupyter-dist/gpus/export.csv?follow=1"):  # somebody looks
        wait_for(lambda: name in scrape(gpu_client), "metrics")
        gpus.update(hang="utilization")
        wait_for(lambda: re.search(said, page()), "the sentence")
        assert name not in scrape(gpu_client)
        gpus.update(hang=None)
        wait_for(lambda: name in scrape(gpu_client), "new values")
        assert "No new values" not in page()


def test_prometheus_tells_mig_instances_apart(gpu_client: Client, gpus: State) -> None:
    gpus.write(gpus=1, mig="1g.10gb,2g.20gb")
    gpu_client.raw("GET", "metrics")
    name = "DCGM_FI_DEV_FB_TOTAL"
    found = wait_for(lambda: scrape(gpu_client).get(name), "metrics")
    ids = {re.findall('GPU_I_ID="(.*?)"', labels)[0]: value for labels, value in found.items()}
    instances = [gpu["instance"][0] for gpu in gpu_client.get("gpus")["gpus"]]
    assert ids == {str(instances[0]): 10 * 1024, str(instances[1]): 20 * 1024}
    assert ids.keys() != {"0", "1"}  # these would be their places


def test_the_export_is_like_that_of_nvidia_smi(gpu_client: Client) -> None:
    wait_for_rows(gpu_client)
    answer = gpu_client.call("GET", "gpus/export.csv?gpu=0,3")
    assert 'filename="gpus.csv"' in answer.headers["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.body), skipinitialspace=True))
    assert {row["index"] for row in rows} == {"0", "3"}
    assert rows[-1]["utilization.gpu [%]"] == "50"
    assert rows[-1]["memory.used [MiB]"] == "8192"


def test_the_export_as_lines(gpu_client: Client) -> None:
    wait_for_rows(gpu_client)
    lines = gpu_client.call("GET", "gpus/export.jsonl?gpu=2&since=-60").body
    assert {line["index"] for line in lines} == {2}
    assert lines[-1]["utilization"] == 50


def test_what_a_gpu_did_that_has_fallen_off_the_bus_is_told(
    gpu_client: Client, gpus: State
) -> None:
    with gpu_client.open("GET", "jupyter-dist/gpus/export.jsonl?follow=1&gpu=7") as response:
        lost = json.loads(response.readline())["uuid"]
        gpus.update(**{"7.lost": 1})
        wait_for(lambda: lost not in uuids(gpu_client), "the loss")
        assert 50 in gpu_client.get("gpus/history?since=-600")["gpus"][lost]["utilization"]
        assert lost in gpu_client.call("GET", f"gpus/export.csv?since=-600&gpu={lost}").body


def test_an_export_can_be_followed(gpu_server: Server, gpu_client: Client, gpus: State) -> None:
    """Like ``nvidia-smi -l``: each reading's lines come with it, until the caller leaves."""
    path = f"jupyter-dist/gpus/export.jsonl?follow=1&gpu=1&since={time.time()}"
    with gpu_client.open("GET", path) as response:
        assert response.headers.get_content_type() == NDJSON
        seen = [json.loads(response.readline()) for _ in range(2)]
        gpus.update(**{"1.utilization": 81})
        while seen[-1]["utilization"] != 81:
            seen.append(json.loads(response.readline()))
        times = [line["time"] for line in seen]
        assert times == sorted(set(times))
        assert len(samplers(gpu_server)) == 1
    wait_until_nobody_looks(gpu_server)


def test_following_is_said_with_one(gpu_client: Client) -> None:
    answer = gpu_client.call("GET", "gpus/export.csv?follow=yes")
    assert (answer.status, answer.body["field"]) == (400, "follow")
    answer = gpu_client.call("GET", "gpus/export.csv?follow=1&until=-1")
    assert (answer.status, answer.body["field"]) == (400, "until")


def test_a_pool_has_its_gpu_for_itself(gpu_client: Client, gpus: State) -> None:
    kernel = gpu_client.raw("POST", "api/kernels", body={"name": "python3"}).body["id"]
    # What the notebook's own kernel has on a GPU is no reason to refuse that; what others have is.
    ours, others = gpu_client.pid_of(kernel), os.getpid()
    gpus.update(**{"0.process": f"{ours},{3 * GIB}", "1.process": f"{others},{3 * GIB}"})
    refused = gpu_client.post("pools", {"num_ranks": 1, "gpu_ids": [1]}, 409)
    assert refused["code"] == "gpus_taken"
    assert f"pid {others}" in refused["message"]

    pool = gpu_client.start(kernel_id=kernel, num_ranks=1, gpu_ids=[0])
    (rank,) = pool["ranks"]
    assert (rank["gpu"]["label"], pool["leases"]) == ("0", "exclusive")
    taken = gpu_client.post("pools", {"num_ranks": 1, "gpu_ids": [0]}, 409)
    assert taken["code"] == "gpus_taken"

    gpus.update(**{"0.process": f"{rank['pid']},{5 * GIB}"})
    uuid = rank["gpu"]["uuid"]

    def on_gpu() -> list[dict[str, Any]]:
        gpu_client.get("gpus/history?since=-1")  # as somebody has to be interested
        processes: list[dict[str, Any]] = gpu_client.get("gpus")["processes"].get(uuid, [])
        return [row["who"] for row in processes if row["pid"] == rank["pid"]]

    assert wait_for(on_gpu, "the process") == [{"kind": "rank", "pool": pool["id"], "rank": 0}]
    assert gpu_client.get("gpus")["leases"][uuid]["pool"] == pool["id"]
    gpu_client.raw("DELETE", f"api/kernels/{kernel}")
    wait_for(lambda: not gpu_client.get("gpus")["leases"], "the end of the lease")
