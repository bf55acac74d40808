"""torch.compile around a DDP model: the compiled step does what the plain one does."""

import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 2))
    plain = DistributedDataParallel(copy.deepcopy(model))
    compiled = torch.compile(DistributedDataParallel(model))
    torch.manual_seed(rank)
    x = torch.randn(4, 8)
    for trained in (plain, compiled):
        optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            loss = trained(x).square().mean()
            loss.backward()
            optimizer.step()
    for param, expected in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(param, expected)
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    print(f"loss {mean.item() / world_size:.4f}, compiled and not")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
