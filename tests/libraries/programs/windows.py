"""Windows of an image, computed on all ranks and gathered on the first, for torchrun."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=4)
    parser.add_argument("--num_workers", type=int, default=0)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    windows = TensorDataset(torch.arange(16.0).reshape(16, 1).repeat(1, 3))
    loader = DataLoader(
        windows,
        batch_size=options.batch_size,
        num_workers=options.num_workers,
        sampler=DistributedSampler(windows, shuffle=False),
    )
    debug = os.environ.get("TORCH_DISTRIBUTED_DEBUG")
    each = len(loader.sampler)  # type: ignore[arg-type]
    print(
        f"{world_size} ranks, {each} windows each, batches of {options.batch_size}, debug {debug}"
    )
    model = torch.nn.Linear(3, 12)
    with torch.no_grad():
        own = [model(batch).reshape(-1, 3, 4) for (batch,) in loader]
    every: list[list[torch.Tensor]] = [[] for _ in range(world_size)]
    dist.all_gather_object(every, own)
    if rank == 0:
        outputs = torch.cat([part for parts in every for part in parts])
        print(f"SUCCESS: {len(outputs)} outputs, the first is {tuple(outputs[0].shape)}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
