"""What goes on in notebooks."""

from __future__ import annotations

import re
import statistics
import time

from tests.notebook_driver import Notebook
from tests.result import Result
from tests.server_driver import Server
from tools import demo

from .machine import Machine
from .need import CELL, Figures, holds, need, need_cuda

_TRAIN = """
width = 4096 if device.type == "cuda" else 256
model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(4))).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(512, width, device=device)
"""
_STEPS = """
for _ in range(8):
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
_HANG = """
if rank == 0:
    dist.all_reduce(torch.ones(1, device=device))
    if device.type == "cuda":
        torch.cuda.synchronize()
else:
    import time
    time.sleep(600)
"""
_LOOP = """
a = torch.randn(4096, 4096, device=device, dtype=torch.bfloat16)
kept = 7
print("begun")
while True:
    b = a @ a
"""
_FILL = """
free, _ = torch.cuda.mem_get_info()
half = torch.empty(free // 2, dtype=torch.uint8, device=device)
more = torch.empty(free, dtype=torch.uint8, device=device)
"""
_KEEP = """
free, _ = torch.cuda.mem_get_info()
kept = torch.randint(256, (int(0.3 * free),), dtype=torch.uint8, device=device)
before = int(kept.sum(dtype=torch.int64))
x = torch.ones(8, device=device)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
dist.all_reduce(x)
torch.cuda.synchronize()
"""
_TAKE_MOST = """
free, total = torch.cuda.mem_get_info()
assert free > 0.9 * total, "the parked pool still has memory"
taken = torch.ones(int(0.8 * free), dtype=torch.uint8, device=device)
torch.cuda.synchronize()
"""
_STILL_KEPT = """
x.fill_(21)
graph.replay()
dist.all_reduce(x)
print("kept", int(kept.sum(dtype=torch.int64)) == before, float(y[0]) == 42.0)
"""
_ENDLESS = "\ntorch.cuda._sleep(1 << 38)  # cycles: more than two minutes"
_WHY = re.compile(r"^.*Rank 1 has not begun it.*$", re.MULTILINE)


def start(machine: Machine) -> Figures:
    """Measure from `%dist_init` to the end of the first cell, twice."""
    need_cuda(machine)
    with machine.notebook() as notebook:
        cell = "%%distributed\nprint(int(torch.ones(1, device=device).sum()))"
        found = []
        for _ in range(2):
            seconds = notebook.ok("%dist_init -n 1", timeout=CELL).seconds
            found.append(seconds + notebook.ok(cell, timeout=CELL).seconds)
            again = [notebook.ok("%%distributed\npass").seconds for _ in range(20)]
            notebook.ok("%dist_shutdown", timeout=CELL)
    return {
        "%dist_init to first cell": f"{found[0]:.1f} s",
        "second pool": f"{found[1]:.1f} s",
        "pass": f"{1000 * statistics.median(again):.1f} ms",
    }


def _example(machine: Machine, name: str) -> tuple[str, demo.Pools]:
    shown: list[str] = []
    environment = machine.environment()
    leases = {k: v for k, v in environment.items() if k == "JUPYTER_DIST_LEASES"}
    server = Server(machine.folder / f"server-{name}", demo.EXAMPLES, **leases)
    try:
        notebook = server.notebook()
        try:
            path = demo.EXAMPLES / f"{name}.ipynb"
            pools = demo.play(path, server, notebook, lambda _, result: shown.append(result.shown))
        finally:
            notebook.close()
    finally:
        server.close()
    return "\n".join(shown), pools


def quickstart(machine: Machine) -> Figures:
    """Run the notebook on two ranks, which share a GPU if there is one only."""
    shown, pools = _example(machine, "quickstart")
    demo.check(pools, ranks=2)
    devices = sorted(set(re.findall(r"device (\S+),", shown)))
    return {"ranks": "2", "devices": ", ".join(devices)}


def ddp_digits(machine: Machine) -> Figures:
    """Train with DDP: on NCCL, with a rank for each GPU."""
    shown, pools = _example(machine, "ddp_digits")
    ranks = len(machine.gpus) or 2
    demo.check(pools, ranks)
    is_nccl = "cuda:nccl" in shown
    holds(is_nccl or not machine.has_cuda, f"The process group is not NCCL's: {shown[:300]}")
    accuracy = re.search(r"([\d.]+%) of \d+ test images", shown)
    return {
        "ranks": str(ranks),
        "backend": "NCCL" if is_nccl else "gloo",
        "read correctly": accuracy[1] if accuracy else "?",
    }


def profile(machine: Machine) -> Figures:
    """Profile eight steps of a model."""
    with machine.notebook() as notebook:
        notebook.ok("%dist_init -n 1", timeout=CELL)
        notebook.ok(f"%%distributed{_TRAIN}{_STEPS}", timeout=CELL)
        plain = notebook.ok(f"%%distributed{_STEPS}", timeout=CELL).seconds
        result = notebook.ok(f"%%distributed --profile{_STEPS}", timeout=CELL)
    verdict = next((line for line in result.shown.splitlines() if " % " in line), "")
    holds(verdict, f"The profile has no verdict: {result.shown}")
    return {
        "cell": f"{plain:.2f} s",
        "profiled": f"{result.seconds:.2f} s",
        "verdict": verdict.strip(),
    }


def _hang(machine: Machine, options: str, backend: str) -> Figures:
    with machine.notebook(JUPYTER_DIST_WAIT_LIMIT="2") as notebook:
        notebook.ok(f"%dist_init -n 2 {options}", timeout=CELL)
        group = notebook.ok("%%rank 0\nprint(dist.get_backend())", timeout=CELL).text
        holds(backend in group, f"The process group should be {backend}'s: {group}")
        begun = time.monotonic()
        times: list[float] = []

        def stop() -> None:
            times.append(time.monotonic())
            notebook.interrupt()

        result = notebook.run(
            f"%%distributed{_HANG}",
            timeout=CELL,
            until=lambda shown: bool(_WHY.search(shown.shown)),
            act=stop,
        )
        ended = time.monotonic()
        holds(times, f"No verdict was shown: {result.shown}")
        sentence = _WHY.search(result.shown)
        notebook.ok("%dist_restart", timeout=CELL)
        notebook.ok("%%distributed\ndist.all_reduce(torch.ones(1, device=device))", timeout=CELL)
    return {
        "verdict after": f"{times[0] - begun:.1f} s (limit 2 s)",
        "Stop to the end of the cell": f"{ended - times[0]:.1f} s",
        "verdict": sentence[0].strip() if sentence else "removed when the cell was stopped",
    }


def hang(machine: Machine) -> Figures:
    """Let a rank wait for another on gloo; both share the first GPU, if there is one."""
    return _hang(machine, f"--gpu-ids {machine.gpus[0].index}" if machine.gpus else "", "gloo")


def hang_nccl(machine: Machine) -> Figures:
    """Let a rank wait for another on NCCL."""
    need_cuda(machine)
    need(len(machine.gpus) > 1, "NCCL needs two GPUs for two ranks.")
    first, second = (gpu.index for gpu in machine.gpus[:2])
    return _hang(machine, f"--gpu-ids {first},{second}", "nccl")


def links(machine: Machine) -> Figures:
    """Measure all_reduce between all GPUs."""
    need_cuda(machine)
    need(len(machine.gpus) > 1, "There is only one GPU.")
    with machine.notebook() as notebook:
        notebook.ok("%dist_init", timeout=CELL)
        shown = notebook.ok("%dist_links", timeout=CELL).shown
    return {"%dist_links": "<br>".join(line for line in shown.splitlines() if line.strip())}


def memory(machine: Machine) -> Figures:
    """Run out of memory."""
    need_cuda(machine)
    with machine.notebook() as notebook:
        notebook.ok("%dist_init -n 1", timeout=CELL)
        result = notebook.run(f"%%distributed{_FILL}", timeout=CELL)
        said = re.search(r"torch had allocated [\d.]+ GiB of [\d.]+ GiB on the GPU", result.error)
        named = re.search(r"asked for .+ hold .*half", result.error)
        holds(said and named, f"The error does not say enough: {result.error}")
        notebook.ok("%%distributed\nassert half.numel()", timeout=CELL)
    return {"error after": f"{result.seconds:.1f} s", "it says": said[0] if said else ""}


def _stop(notebook: Notebook) -> float:
    times: list[float] = []

    def press() -> None:
        times.append(time.monotonic())
        notebook.interrupt()

    def begun(result: Result) -> bool:
        return "begun" in result.text

    result = notebook.run(f"%%distributed{_LOOP}", timeout=CELL, until=begun, act=press)
    holds(result.status == "error", f"The cell did not stop: {result.shown}")
    return time.monotonic() - times[0]


def stop(machine: Machine) -> Figures:
    """Press Stop in an endless loop of CUDA kernels; variables stay."""
    need_cuda(machine)
    with machine.notebook() as notebook:
        notebook.ok("%dist_init -n 1", timeout=CELL)
        found = [_stop(notebook) for _ in range(5)]
        kept = notebook.ok("%%distributed\nprint(kept, b.shape[0])", timeout=CELL).text
        holds("7 4096" in kept, f"The variables are gone: {kept}")
    ms = [1000 * one for one in found]
    return {"Stop to the end of the cell": f"{statistics.median(ms):.0f} ms, at most {max(ms):.0f}"}


def park(machine: Machine) -> Figures:
    """Park a pool that has a CUDA graph and a group, use its memory meanwhile, and resume it."""
    need_cuda(machine)
    with machine.notebook() as notebook, machine.notebook() as other:
        notebook.ok("%dist_init -n 1 --park-after 1:00:00", timeout=CELL)
        notebook.ok(f"%%distributed{_KEEP}", timeout=CELL)
        parked = notebook.ok("%dist_park", timeout=CELL)
        holds("Parked:" in parked.shown, f"It was not parked: {parked.shown}")
        other.ok("%dist_init -n 1", timeout=CELL)
        other.ok(f"%%distributed{_TAKE_MOST}", timeout=CELL)
        other.ok("%dist_shutdown", timeout=CELL)
        resumed = notebook.ok("%dist_resume", timeout=CELL)
        kept = notebook.ok(f"%%distributed{_STILL_KEPT}", timeout=CELL).text
        holds("kept True True" in kept, f"What was on the GPU is not the same: {kept}")
        notebook.ok(f"%%distributed{_ENDLESS}", timeout=CELL)
        busy = notebook.fails("%dist_park", timeout=CELL)
        holds("still runs what was launched on it" in busy, f"Refused with: {busy}")
        notebook.ok("%dist_shutdown", timeout=CELL)
        _park_two(notebook)
    return {
        "park 30 % of the GPU's memory": f"{parked.seconds:.1f} s",
        "resume": f"{resumed.seconds:.1f} s",
    }


def _park_two(notebook: Notebook) -> None:
    """Park two ranks that share a GPU, by gloo."""
    notebook.ok("%dist_init -n 2 --gpu-ids 0 --park-after 1:00:00", timeout=CELL)
    notebook.ok(
        "%%distributed\nx = torch.full((1 << 28,), float(rank), device=device)", timeout=CELL
    )
    notebook.ok("%dist_park", timeout=CELL)
    kept = notebook.ok(
        "%%distributed\nprint('kept', bool((x == rank).all()))\ndist.barrier()", timeout=CELL
    ).text
    holds(kept.count("kept True") == 2, f"What was on the GPU is not the same: {kept}")
