"""The activity of SMs, tensor cores and DRAM: NVML's GPU performance monitoring, from Hopper on.

See https://docs.nvidia.com/deploy/nvml-api/group__GPM.html.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pynvml

from ..metrics import Value
from ..nvml import UNSUPPORTED, Device, Failure, query

METRICS = {
    "sm_active": pynvml.NVML_GPM_METRIC_SM_UTIL,
    "tensor_active": pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL,
    "dram_active": pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL,
}


class Gpm:
    """The monitoring of one GPU or MIG instance in one session of NVML."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._last: Any = None
        self._spare: Any = None

    def read(self) -> Sequence[Value] | Failure:
        """Return the percentages of `METRICS` since the last call; `None` at the first."""
        if self._spare is None:
            sample = self._allocate()
            if isinstance(sample, Failure):
                return sample
            self._spare = sample
        taken = self._take(self._spare)
        if isinstance(taken, Failure):
            return taken
        before, self._last = self._last, self._spare
        self._spare = before
        if before is None:
            return [None] * len(METRICS)
        return _between(before, self._last)

    def _allocate(self) -> Any:
        support = query("nvmlGpmQueryDeviceSupport", self._device.whole)
        if isinstance(support, Failure):
            return support
        return query("nvmlGpmSampleAlloc") if support.isSupportedDevice else UNSUPPORTED

    def _take(self, sample: Any) -> Any:
        if self._device.mig is None:
            return query("nvmlGpmSampleGet", self._device.handle, sample)
        instance = query("nvmlDeviceGetGpuInstanceId", self._device.handle)
        if isinstance(instance, Failure):
            return instance
        return query("nvmlGpmMigSampleGet", self._device.whole, instance, sample)

    def close(self) -> None:
        """Free the samples."""
        for sample in (self._last, self._spare):
            if sample is not None:
                query("nvmlGpmSampleFree", sample)
        self._last = self._spare = None


def _between(before: Any, now: Any) -> Sequence[Value] | Failure:
    question = pynvml.c_nvmlGpmMetricsGet_t()
    question.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    question.numMetrics = len(METRICS)
    question.sample1, question.sample2 = before, now
    for place, metric in enumerate(METRICS.values()):
        question.metrics[place].metricId = metric
    answer = query("nvmlGpmMetricsGet", question)
    if isinstance(answer, Failure):
        return answer
    cells = answer.metrics[: len(METRICS)]
    return [None if cell.nvmlReturn or math.isnan(cell.value) else cell.value for cell in cells]
