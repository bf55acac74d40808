"""What CUDA_VISIBLE_DEVICES leaves of the GPUs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from jupyter_dist_server.gpus.cuda_visible_devices import narrow
from jupyter_dist_server.gpus.inventory import Gpu, Inventory


def whole(index: int, uuid: str = "", name: str = "H100", sms: int = 132, mhz: int = 1980) -> Gpu:
    uuid = uuid or f"GPU-{index}{index}aa-bbcc"
    return Gpu(index, uuid, name, 80, f"{index:02}", "9.0", sm_count=sms, clock_max=mhz)


def part(index: int, place: int) -> Gpu:
    """Return a MIG instance whose ids are 7, 8, … and 0."""
    parent = f"GPU-{index}{index}aa-bbcc"
    uuid = f"MIG-{index}{place}dd-eeff"
    return Gpu(index, uuid, "MIG", 10, f"{index:02}", "9.0", place, parent, instance=(7 + place, 0))


FOUR = Inventory(tuple(whole(i) for i in range(4)), driver="580", problems=("GPU 4 is lost.",))
DIVIDED = Inventory((part(0, 0), part(0, 2), whole(1), part(2, 1), whole(3)))
WHOLE_MASKS = {
    "2": "2",
    "3,1": "3 1",
    " 3 , 1 ": "3 1",
    "+1,2": "1 2",
    "1gpu,2x": "1 2",
    "01": "1",
    # up to the first that does not exist
    "0,2,-1,1": "0 2",
    "1,9,2": "1",
    "1,,2": "1",
    "0,": "0",
    "1,GPU-22aa,3": "1",
    "-1": "",
    "x": "",
    "none": "",
    "9": "",
    "": "",
    # UUIDs, and as much of their beginning as is needed
    "GPU-22aa-bbcc": "2",
    "GPU-22,GPU-0": "2 0",
    "GPU-": "",
    "GPU-22,1": "2",
    "GPU-22, GPU-0": "2",
    "gpu-22": "",
    "GPU-77,GPU-2": "",
    " GPU-22": "",
    # twice means never
    "1,1": "",
    "0,1,0": "",
    "GPU-2,GPU-22": "",
}


def labels(inventory: Inventory) -> str:
    return " ".join(gpu.label for gpu in inventory.gpus)


@pytest.mark.parametrize(("mask", "left"), WHOLE_MASKS.items())
def test_indices_and_uuids(mask: str, left: str) -> None:
    found = narrow(FOUR, {"CUDA_VISIBLE_DEVICES": mask})
    assert labels(found) == left
    assert bool(found.reason) == (not left)
    assert found.driver == "580"
    assert found.problems[0] == "GPU 4 is lost.", "what was wrong before still is"


def test_torch_reads_all_of_them_the_same_way() -> None:
    code = (
        "import json, os, sys, torch\n"
        "masks, uuids = json.load(sys.stdin)\n"
        "read = []\n"
        "for mask in masks:\n"
        "    os.environ['CUDA_VISIBLE_DEVICES'] = mask\n"
        "    ids = torch.cuda._parse_visible_devices()\n"
        "    if ids and isinstance(ids[0], str):\n"
        "        ids = torch.cuda._transform_uuid_to_ordinals(ids, uuids)\n"
        "    for place, one in enumerate(ids):\n"  # as torch.cuda._device_count_nvml
        "        if one >= len(uuids):\n"
        "            ids = ids[:place]\n"
        "            break\n"
        "    read.append(' '.join(map(str, ids)))\n"
        "print(json.dumps(read))\n"
    )
    asked = json.dumps([list(WHOLE_MASKS), [gpu.uuid for gpu in FOUR.gpus]])
    answer = subprocess.run(
        [sys.executable, "-c", code], input=asked, capture_output=True, text=True, check=True
    )
    assert dict(zip(WHOLE_MASKS, json.loads(answer.stdout), strict=True)) == WHOLE_MASKS


@pytest.mark.parametrize(
    ("mask", "left"),
    [
        ("MIG-02dd-eeff", "0:2"),
        ("MIG-21", "2:1"),
        # CUDA shows a process only the first of these; each rank can have one
        ("MIG-02,MIG-21", "0:2 2:1"),
        ("MIG-0", ""),
        ("MIG-02,GPU-11", "0:2"),
        # the first MIG instance stands for its GPU
        ("GPU-00", "0:0"),
        ("GPU-11,GPU-22", "1 2:1"),
        ("GPU-", ""),
        # and comes after the whole GPUs when they are counted
        ("0", "1"),
        ("1,2,3", "3 0:0 2:1"),
        ("4", ""),
    ],
)
def test_mig(mask: str, left: str) -> None:
    found = narrow(DIVIDED, {"CUDA_VISIBLE_DEVICES": mask})
    assert labels(found) == left
    assert bool(found.reason) == (not left)


def test_no_mask_and_no_gpu_change_nothing() -> None:
    assert narrow(FOUR, {}) is FOUR
    nothing = Inventory(reason="There is none.")
    assert narrow(nothing, {"CUDA_VISIBLE_DEVICES": "0"}) is nothing


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        ("", "CUDA_VISIBLE_DEVICES is empty, so CUDA uses no GPU."),
        ("-1", "CUDA_VISIBLE_DEVICES='-1' lists no GPU of this machine."),
        ("7", "CUDA_VISIBLE_DEVICES='7' lists no GPU of this machine."),
        ("1,1", "CUDA_VISIBLE_DEVICES='1,1' lists a GPU twice, so CUDA uses no GPU."),
    ],
)
def test_the_reason_why_none_is_left(mask: str, words: str) -> None:
    assert narrow(FOUR, {"CUDA_VISIBLE_DEVICES": mask}).reason == words


@pytest.mark.parametrize(
    ("mask", "told"), [("0,9,1", "'9'"), ("0,x", "'x'"), ("0,-1,1", ""), ("0,", ""), ("0,1", "")]
)
def test_a_mask_that_is_cut_short_is_told(mask: str, told: str) -> None:
    problems = narrow(FOUR, {"CUDA_VISIBLE_DEVICES": mask}).problems[1:]
    assert len(problems) == bool(told)
    assert all(f"only up to {told}, because" in problem for problem in problems)


DIFFERENT = Inventory((whole(0, name="T4", sms=40, mhz=1590), whole(1), whole(2)))


@pytest.mark.parametrize("order", [None, "FASTEST_FIRST", "nonsense"])
def test_different_gpus_are_counted_from_the_fastest(order: str | None) -> None:
    environment = {"CUDA_VISIBLE_DEVICES": "0,2"} | ({"CUDA_DEVICE_ORDER": order} if order else {})
    found = narrow(DIFFERENT, environment)
    assert labels(found) == "1 0"
    assert "0 means GPU 1, 1 means GPU 2, 2 means GPU 0" in found.problems[0]
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in found.problems[0]


@pytest.mark.parametrize(
    ("inventory", "environment", "left"),
    [
        (DIFFERENT, {"CUDA_VISIBLE_DEVICES": "0,2", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, "0 2"),
        (DIFFERENT, {"CUDA_VISIBLE_DEVICES": "GPU-00,GPU-22"}, "0 2"),
        (FOUR, {"CUDA_VISIBLE_DEVICES": "0,2", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, "0 2"),
    ],
)
def test_where_the_order_is_sure_nothing_is_said(
    inventory: Inventory, environment: dict[str, str], left: str
) -> None:
    found = narrow(inventory, environment)
    assert labels(found) == left
    assert found.problems == inventory.problems
