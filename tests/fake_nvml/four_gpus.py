"""A machine with four GPUs that only pretends to have them, for pools of the test's own process."""

from __future__ import annotations

from jupyter_dist_server.gpus.inventory import Gpu, Inventory

MACHINE = {"gpus": 4, "name": "NVIDIA H100 80GB HBM3", "memory": 80 * 2**30}
NAMES = ["GPU-fake-0", "GPU-fake-1", "GPU-fake-2", "GPU-fake-3"]
FOUR = Inventory(tuple(Gpu(index, name, "", 0, "", "") for index, name in enumerate(NAMES)))
