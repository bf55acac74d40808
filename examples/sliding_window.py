"""Run a convolutional model over a photo, window by window, on every rank.

The photo is cut into 48 overlapping windows, a ``DistributedSampler`` deals them
out, each rank runs the model on its share, and rank 0 collects all 48 results and
puts the picture together again. Run it with as many processes as you like::

    torchrun --nproc-per-node=2 examples/sliding_window.py
    python examples/sliding_window.py

``sliding_window.ipynb`` does the same work with the same functions, cell by cell.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from sklearn.datasets import load_sample_image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Sampler

# A quarter of one 8-bit grey level: room for TF32 and bfloat16, no more.
TOLERANCE = 1e-3


def load_photo() -> Tensor:
    """Load scikit-learn's bundled photo ``china.jpg``.

    Returns
    -------
    Tensor
        The photo, shape ``(3, height, width)``, values from 0 to 1.
    """
    pixels = torch.tensor(load_sample_image("china.jpg"))
    return pixels.permute(2, 0, 1).float() / 255


class Windows(Dataset[tuple[int, Tensor]]):
    """Overlapping windows that together cover a photo.

    Parameters
    ----------
    photo : Tensor
        The photo to cut up, shape ``(channels, height, width)``.
    size : int
        Height and width of a window.
    rows, columns : int
        How many windows to spread over the height and over the width.
    """

    def __init__(self, photo: Tensor, size: int = 96, rows: int = 6, columns: int = 8) -> None:
        _, height, width = photo.shape
        tops = np.linspace(0, height - size, rows).round().astype(int)
        lefts = np.linspace(0, width - size, columns).round().astype(int)
        self.photo = photo
        self.places = [
            (slice(top, top + size), slice(left, left + size))
            for top in tops.tolist()
            for left in lefts.tolist()
        ]

    def __len__(self) -> int:
        """Return the number of windows."""
        return len(self.places)

    def __getitem__(self, index: int) -> tuple[int, Tensor]:
        """Return a window together with its index."""
        rows, columns = self.places[index]
        return index, self.photo[:, rows, columns]

    def stitch(self, results: Tensor) -> Tensor:
        """Put results back where their windows came from, averaging overlaps.

        Parameters
        ----------
        results : Tensor
            One result per window, in order, each the shape of its window.

        Returns
        -------
        Tensor
            A picture the shape of the photo.
        """
        total = torch.zeros_like(self.photo)
        count = torch.zeros_like(self.photo)
        for (rows, columns), result in zip(self.places, results, strict=True):
            total[:, rows, columns] += result
            count[:, rows, columns] += 1
        return total / count


class Filter(nn.Module):
    """A small convolutional model with fixed weights: equal in every process."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 5, padding=2, padding_mode="replicate"),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1, padding_mode="replicate"),
            nn.ReLU(),
            nn.Conv2d(16, 3, 3, padding=1, padding_mode="replicate"),
        )

    def forward(self, windows: Tensor) -> Tensor:
        """Add the layers' response to the windows."""
        filtered: Tensor = windows + self.layers(windows)
        return filtered.clamp(0, 1)


@torch.inference_mode()
def run_windows(
    model: nn.Module,
    windows: Windows,
    device: torch.device,
    sampler: Sampler[int] | None = None,
    *,
    batch_size: int = 4,
    amp: bool = False,
) -> tuple[Tensor, Tensor]:
    """Run the model on the windows that the sampler picks.

    Parameters
    ----------
    model : nn.Module
        The model; it must be on `device`.
    windows : Windows
        All windows of the photo.
    device : torch.device
        Where to compute.
    sampler : Sampler, optional
        Picks this rank's windows. Without one, all windows are run.
    batch_size : int
        Windows per step.
    amp : bool
        Compute in bfloat16 where PyTorch holds that to be safe.

    Returns
    -------
    indices : Tensor
        Which windows were run.
    results : Tensor
        The model's result for each of them, on the CPU.
    """
    indices, results = [], []
    for index, batch in DataLoader(windows, batch_size, sampler=sampler):
        with torch.autocast(device.type, torch.bfloat16, enabled=amp):
            result = model(batch.to(device))
        indices.append(index)
        results.append(result.float().cpu())
    return torch.cat(indices), torch.cat(results)


def gather_in_order(indices: Tensor, results: Tensor, total: int) -> Tensor | None:
    """Collect every rank's results on rank 0, in the windows' order.

    Where the windows don't divide evenly, the sampler hands some out twice; going by
    index, each still counts once.

    Parameters
    ----------
    indices, results : Tensor
        What `run_windows` returned on this rank.
    total : int
        The number of windows.

    Returns
    -------
    Tensor or None
        All results on rank 0, None on the other ranks.
    """
    parts: list[Any] = [None] * dist.get_world_size()
    first = dist.get_rank() == 0
    dist.gather_object((indices, results), parts if first else None)
    if not first:
        return None
    found = {
        int(index): result
        for part_indices, part_results in parts
        for index, result in zip(part_indices, part_results, strict=True)
    }
    return torch.stack([found[index] for index in range(total)])


def pick_device() -> torch.device:
    """Pick this process's GPU by ``LOCAL_RANK``, or the CPU where there is none.

    Returns
    -------
    torch.device
        The device; processes share GPUs if there are fewer GPUs than processes.
    """
    if not torch.cuda.is_available():
        return torch.device("cpu")
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local_rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def start_process_group() -> None:
    """Join torchrun's process group, or form a group of one without torchrun."""
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:
        store = dist.HashStore()  # type: ignore[attr-defined]
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)


def main(arguments: list[str] | None = None) -> int:
    """Run the windows on all ranks and compare with one process doing them all.

    Parameters
    ----------
    arguments : list of str, optional
        The command line, by default that of the process.

    Returns
    -------
    int
        The exit status: 1 if rank 0 finds the two pictures to differ, otherwise 0.
    """
    parser = argparse.ArgumentParser(description="Run a model over a photo's windows.")
    parser.add_argument("--batch-size", type=int, default=4, help="windows per step")
    parser.add_argument("--amp", action="store_true", help="compute in bfloat16")
    options = parser.parse_args(arguments)

    device = pick_device()
    ours = not dist.is_initialized()
    if ours:
        start_process_group()
    rank = dist.get_rank()

    windows = Windows(load_photo())
    model = Filter().to(device)
    sampler: DistributedSampler[int] = DistributedSampler(windows, shuffle=False)
    indices, share = run_windows(model, windows, device, sampler, **vars(options))
    print(f"rank {rank}: {len(indices)} of {len(windows)} windows on {device}")
    results = gather_in_order(indices, share, total=len(windows))

    status = 0
    if results is not None:
        _, alone = run_windows(model, windows, device, **vars(options))
        difference = (windows.stitch(results) - windows.stitch(alone)).abs().max()
        same = bool(difference <= TOLERANCE)
        print(
            f"{'SUCCESS' if same else 'FAILURE'}: {len(results)} results of shape "
            f"{tuple(results[0].shape)}; the picture differs from that of a single "
            f"process by at most {difference:.1e}"
        )
        status = 0 if same else 1
    if ours:
        dist.destroy_process_group()
    return status


if __name__ == "__main__":
    sys.exit(main())
