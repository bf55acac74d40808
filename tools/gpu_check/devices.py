"""What the driver and nvidia-smi say, and the tests that need them."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

from jupyter_dist_server.gpus.readers.read_gpu_state import read_gpu_state
from tests.gpus.held_memory import on_gpu

from .machine import ROOT, Machine
from .need import CELL, Figures, holds, need, need_cuda

_LOAD = """
a = torch.randn(8192, 8192, device="cuda:0", dtype=torch.bfloat16)
while True:
    for _ in range(50):
        b = a @ a
    torch.cuda.synchronize()
"""


def lease(machine: Machine) -> Figures:
    """Let two notebooks want the same GPU."""
    need(machine.gpus, machine.inventory.reason or "There is no GPU.")
    start = f"%dist_init -n 1 --gpu-ids {machine.gpus[0].index}"
    with machine.notebook() as one, machine.notebook() as other:
        one.ok(start, timeout=CELL)
        said = other.fails(start, timeout=CELL)
        holds("leased by" in said, f"The second notebook is not told of the lease: {said}")
        one.ok("%dist_shutdown", timeout=CELL)
        after = other.ok(start, timeout=CELL).seconds
    return {
        "refused with": said.splitlines()[0].strip(),
        "start after the release": f"{after:.1f} s",
    }


def telemetry(machine: Machine) -> Figures:
    """Compare our values with those of nvidia-smi, on a busy GPU."""
    need(shutil.which("nvidia-smi"), "There is no nvidia-smi.")
    need_cuda(machine)
    gpu = machine.gpus[0]
    fields = "utilization.gpu,memory.used,temperature.gpu,power.draw"
    query = [f"--query-gpu={fields}", "--format=csv,noheader,nounits", f"--id={gpu.uuid}"]
    with on_gpu(gpu, 2**31, _LOAD):
        end = time.monotonic() + 30
        while True:  # until the driver's window is full of this load
            ours = asyncio.run(read_gpu_state()).samples[gpu.uuid]
            if float(ours.get("utilization") or 0) > 80 or time.monotonic() > end:
                break
        said = subprocess.run(["nvidia-smi", *query], check=True, capture_output=True, text=True)
        theirs = [float(value) for value in said.stdout.split(",")]
    mine = [
        float(ours.get("utilization") or 0),
        float(ours.get("memory_used") or 0) / 2**20,
        float(ours.get("temperature") or 0),
        float(ours.get("power") or 0),
    ]
    allowed = [20, 1024, 10, max(60, 0.25 * theirs[3])]
    names = ["utilization, %", "memory, MiB", "temperature, °C", "power, W"]
    rows = list(zip(names, mine, theirs, allowed, strict=True))
    for name, here, there, most in rows:
        holds(abs(here - there) <= most, f"{name}: {here:g}, but nvidia-smi says {there:g}.")
    return {name: f"{here:g} (nvidia-smi: {there:g})" for name, here, there, _ in rows}


def tests(machine: Machine) -> Figures:
    """Run all tests that need a GPU."""
    need_cuda(machine)
    left = machine.seconds_left()
    report = machine.folder / "junit.xml"
    command = [sys.executable, "-m", "pytest", "-m", "gpu", f"--junitxml={report}", "-q"]
    try:
        subprocess.run([*command, "tests/gpus", "tests/pools"], cwd=ROOT, timeout=left)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"They took longer than the {left:.0f} s that were left.") from None
    cases = list(ElementTree.parse(report).iter("testcase"))
    bad = [one.get("name") for one in cases if {part.tag for part in one} & {"failure", "error"}]
    skipped = sum(one.find("skipped") is not None for one in cases)
    holds(cases and not bad, f"{len(bad)} of {len(cases)} failed: {', '.join(map(str, bad))}")
    return {"passed": str(len(cases) - skipped), "skipped": str(skipped)}
