"""Writing distributed applications: messages, groups, an all-reduce of one's own, and training."""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, Subset, TensorDataset


def blocking_message(rank, size):
    """Pass a number from the first process to the second."""
    tensor = torch.zeros(1)
    if rank == 0:
        tensor += 1
        dist.send(tensor=tensor, dst=1)
    elif rank == 1:
        dist.recv(tensor=tensor, src=0)
    assert tensor.item() == (1 if rank < 2 else 0)


def immediate_message(rank, size):
    """Do the same without waiting at once."""
    tensor = torch.zeros(1)
    request = None
    if rank == 0:
        tensor += 1
        request = dist.isend(tensor=tensor, dst=1)
    elif rank == 1:
        request = dist.irecv(tensor=tensor, src=0)
    if request:
        request.wait()
    assert tensor.item() == (1 if rank < 2 else 0)


def sum_in_a_group(rank, size):
    """Sum in a group of the first two."""
    group = dist.new_group([0, 1])
    tensor = torch.ones(1)
    if rank < 2:
        dist.all_reduce(tensor, op=dist.ReduceOp.SUM, group=group)
    assert tensor.item() == (2 if rank < 2 else 1)
    if rank < 2:  # which alone need to know of this one
        local = dist.new_group([0, 1], use_local_synchronization=True)
        dist.all_reduce(tensor, group=local)
        assert tensor.item() == 4


def ring_all_reduce(sent):
    """Sum over all processes, each talking to its neighbours only."""
    rank, size = dist.get_rank(), dist.get_world_size()
    total, passing, arriving = sent.clone(), sent.clone(), torch.zeros_like(sent)
    for _ in range(size - 1):
        request = dist.isend(passing, (rank + 1) % size)
        dist.recv(arriving, (rank - 1) % size)
        request.wait()
        total += arriving
        passing.copy_(arriving)
    return total


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, kernel_size=3)
        self.full = nn.Linear(4 * 3 * 3, 4)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv(x), 2))
        return F.log_softmax(self.full(x.flatten(1)), dim=1)


def images(count=256):
    """Return pictures of 8 x 8, with one bright quarter that is to be found."""
    generator = torch.Generator().manual_seed(7)
    labels = torch.randint(4, (count,), generator=generator)
    pictures = 0.1 * torch.randn(count, 1, 8, 8, generator=generator)
    for picture, label in zip(pictures, labels, strict=True):
        row, column = divmod(int(label), 2)
        picture[0, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] += 1
    return TensorDataset(pictures, labels)


def average_gradients(model):
    size = float(dist.get_world_size())
    for param in model.parameters():
        dist.all_reduce(param.grad.data, op=dist.ReduceOp.SUM)
        param.grad.data /= size


def train(rank, size):
    """Distributed synchronous SGD."""
    torch.manual_seed(1234)
    data = images()
    part = Subset(data, range(rank, len(data), size))
    loader = DataLoader(part, batch_size=64 // size, shuffle=True)
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    losses = []
    for _ in range(6):
        epoch_loss = torch.zeros(1)
        for pictures, labels in loader:
            optimizer.zero_grad()
            loss = F.nll_loss(model(pictures), labels)
            epoch_loss += loss.detach()
            loss.backward()
            average_gradients(model)
            optimizer.step()
        dist.all_reduce(epoch_loss)
        losses.append(epoch_loss.item() / size / len(loader))
    assert losses[-1] < 0.5 * losses[0], losses
    weights = [None] * size
    dist.all_gather_object(weights, [p.tolist() for p in model.parameters()])
    assert all(theirs == weights[0] for theirs in weights)
    return losses[-1]


def run(rank, size):
    blocking_message(rank, size)
    immediate_message(rank, size)
    sum_in_a_group(rank, size)
    sent = torch.arange(3.0) + rank
    expected = torch.arange(3.0) * size + sum(range(size))
    assert torch.equal(ring_all_reduce(sent), expected)
    print(f"trained to a loss of {train(rank, size):.4f}")


def init_process(rank, size, fn, backend="gloo"):
    """Initialize the distributed environment."""
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group(backend, rank=rank, world_size=size)
    fn(rank, size)
    dist.destroy_process_group()


if __name__ == "__main__":
    init_process(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), run)
