"""Functions that each set up and clean up, as in PyTorch's tutorial on DistributedDataParallel."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP


def setup(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def cleanup():
    dist.destroy_process_group()


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.net1(x).relu())


def step(ddp_model):
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.001)
    optimizer.zero_grad()
    nn.MSELoss()(ddp_model(torch.randn(20, 10)), torch.randn(20, 5)).backward()
    optimizer.step()


def demo_basic(rank, world_size):
    setup(rank, world_size)
    step(DDP(ToyModel()))
    cleanup()


def demo_checkpoint(rank, world_size):
    setup(rank, world_size)
    path = os.path.join(tempfile.gettempdir(), "model.checkpoint")
    ddp_model = DDP(ToyModel())
    if rank == 0:
        torch.save(ddp_model.state_dict(), path)
    dist.barrier()
    ddp_model.load_state_dict(torch.load(path))
    step(ddp_model)
    dist.barrier()
    if rank == 0:
        os.remove(path)
    cleanup()


def demo_own_groups(rank, world_size):
    setup(rank, world_size)
    group = dist.new_group([0, 1])
    local = dist.new_group([0, 1], use_local_synchronization=True) if rank < 2 else None
    if rank < 2:
        tensor = torch.ones(1)
        dist.all_reduce(tensor, group=group)
        dist.all_reduce(tensor, group=local)
        assert tensor.item() == 4
    cleanup()
