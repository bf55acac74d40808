"""DataLoader with worker processes, started in every way, and a sampler that divides the data."""

import multiprocessing
import os
import sys

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Squares(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        return index * index, os.getpid()


def main():
    dist.init_process_group("gloo")
    data = Squares()
    methods = sys.argv[1:] or multiprocessing.get_all_start_methods()
    for method in methods:
        sampler = DistributedSampler(data, seed=1)
        loader = DataLoader(
            data,
            batch_size=3,
            sampler=sampler,
            num_workers=1,
            multiprocessing_context=method,
            persistent_workers=True,
        )
        for epoch in range(2):
            sampler.set_epoch(epoch)
            values, pids = [torch.cat(parts) for parts in zip(*loader, strict=True)]
            assert len(set(pids.tolist())) == 1 and os.getpid() not in pids
            parts = [torch.empty_like(values) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, values)
            gathered = torch.cat(parts).sort().values
            assert gathered.tolist() == [i * i for i in range(24)]
    print(f"all {len(gathered)} samples by {', '.join(methods)}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
