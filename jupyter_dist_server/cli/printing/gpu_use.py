"""What attempts of a job used of its GPUs, for people to read."""

from __future__ import annotations

from collections.abc import Sequence

from ...common.units import format_bytes, write_limit
from ...jobs.store.attempt import Attempt
from ...jobs.store.slurm_formats import write_moment


def gpu_use(attempts: Sequence[Attempt]) -> tuple[str, str, str]:
    """Return GPU-hours, and the peaks of load and memory of a GPU, over all attempts."""
    hours = sum(_hours(one) for one in attempts)
    seen = [gpu for one in attempts for gpu in one.usage.values()]
    loads = [gpu.load_peak for gpu in seen if gpu.load_peak is not None]
    peak = max((gpu.memory_peak for gpu in seen), default=0)
    memory = format_bytes(peak) if peak else ""
    return f"{hours:.2f}" if hours else "", f"{max(loads)} %" if loads else "", memory


def _hours(attempt: Attempt) -> float:
    if not attempt.started or not attempt.ended:
        return 0.0
    return (attempt.ended - attempt.started) * (attempt.gpus or 0) / 3600


def describe_attempt(attempt: Attempt) -> str:
    """Return one line on an attempt."""
    parts = [attempt.state or "RUNNING"]
    if attempt.started and attempt.ended:
        took = write_limit(attempt.ended - attempt.started)
        parts.append(f"from {write_moment(attempt.started)}, {took}")
    if seen := list(attempt.usage.values()):
        hours, peak, memory = gpu_use([attempt])
        samples = sum(gpu.samples for gpu in seen)
        mean = sum(gpu.load_sum for gpu in seen) / samples
        load = f"GPU load {mean:.0f} % (peak {peak})" if peak else "GPU load unknown"
        parts += [load, *([f"GPU memory up to {memory}"] if memory else [])]
        parts += [f"{hours} GPU-hours"] if hours else []
    return ", ".join(parts)
