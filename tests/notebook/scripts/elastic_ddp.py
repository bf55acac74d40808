"""A script for torchrun, as PyTorch's tutorial on DistributedDataParallel ends with one."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def train(epochs):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    assert rank == int(os.environ["RANK"]), "torchrun's environment"
    model = DDP(ToyModel())
    optimizer = optim.SGD(model.parameters(), lr=0.001)
    loss_fn = nn.MSELoss()
    for _ in range(epochs):
        optimizer.zero_grad()
        loss_fn(model(torch.randn(20, 10)), torch.randn(20, 5)).backward()
        optimizer.step()
    total = sum(p.sum() for p in model.parameters()).detach()
    highest = total.clone()
    dist.all_reduce(highest, dist.ReduceOp.MAX)
    assert torch.equal(total, highest), "the ranks' models differ"
    dist.destroy_process_group()
    assert not dist.is_initialized()
    print("trained")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    train(parser.parse_args().epochs)
