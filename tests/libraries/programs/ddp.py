"""Three demonstrations of DDP, each of which sets its process group up and cleans it away."""

import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP

CHECKPOINT = Path(tempfile.gettempdir()) / "ddp-tutorial.checkpoint"


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
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def step(model, rank):
    """Train one step on data of this rank's own; return the loss of all."""
    torch.manual_seed(100 + rank)
    loss_fn = nn.MSELoss()
    optimizer = optim.SGD(model.parameters(), lr=0.001)
    optimizer.zero_grad()
    loss = loss_fn(model(torch.randn(20, 10)), torch.randn(20, 5))
    loss.backward()
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size()


def assert_same_everywhere(model):
    mine = torch.cat([param.detach().flatten() for param in model.parameters()])
    all_of_them = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(all_of_them, mine)
    assert all(torch.equal(mine, theirs) for theirs in all_of_them)


def demo_basic(rank, world_size):
    setup(rank, world_size)
    torch.manual_seed(rank)  # DDP starts everywhere from the parameters of rank 0
    ddp_model = DDP(ToyModel())
    loss = step(ddp_model, rank)
    assert_same_everywhere(ddp_model)
    cleanup()
    return loss


def demo_checkpoint(rank, world_size):
    setup(rank, world_size)
    ddp_model = DDP(ToyModel())
    if rank == 0:
        torch.save(ddp_model.state_dict(), CHECKPOINT)
    dist.barrier()
    ddp_model.load_state_dict(torch.load(CHECKPOINT, map_location="cpu", weights_only=True))
    loss = step(ddp_model, rank)
    assert_same_everywhere(ddp_model)
    dist.barrier()
    if rank == 0:
        CHECKPOINT.unlink()
    cleanup()
    return loss


def demo_no_sync(rank, world_size):
    """Accumulate gradients: only the second backward exchanges them."""
    setup(rank, world_size)
    torch.manual_seed(0)
    ddp_model, alone = DDP(ToyModel()), ToyModel()
    alone.load_state_dict(ddp_model.module.state_dict())
    with ddp_model.no_sync():
        ddp_model(torch.full((4, 10), rank + 1.0)).sum().backward()
    ddp_model(torch.full((4, 10), rank + 2.0)).sum().backward()
    for other in range(world_size):
        for offset in (1.0, 2.0):
            (alone(torch.full((4, 10), other + offset)).sum() / world_size).backward()
    for param, expected in zip(ddp_model.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(param.grad, expected.grad)
    cleanup()


if __name__ == "__main__":
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    basic, checkpoint = demo_basic(rank, world_size), demo_checkpoint(rank, world_size)
    demo_no_sync(rank, world_size)
    print(f"losses {basic:.4f} and {checkpoint:.4f}")
