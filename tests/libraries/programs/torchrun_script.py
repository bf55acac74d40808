"""A script as torchrun starts it: options, a sampler, snapshots from which it goes on."""

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Line(Dataset):
    """Points of y = 2 x1 - x2 + 0.5."""

    def __init__(self, size):
        generator = torch.Generator().manual_seed(0)
        self.x = torch.rand(size, 2, generator=generator)
        self.y = self.x @ torch.tensor([[2.0], [-1.0]]) + 0.5

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


class Trainer:
    def __init__(self, model, loader, optimizer, snapshot):
        self.rank = int(os.environ["RANK"])
        self.loader, self.optimizer, self.snapshot = loader, optimizer, snapshot
        self.epochs_run = 0
        if snapshot.exists():
            saved = torch.load(snapshot, weights_only=True)
            model.load_state_dict(saved["model"])
            self.epochs_run = saved["epochs"]
        self.model = DistributedDataParallel(model)
        dist.barrier()  # nobody saves before all have read

    def run_epoch(self, epoch):
        self.loader.sampler.set_epoch(epoch)
        total = torch.zeros(1)
        for source, targets in self.loader:
            self.optimizer.zero_grad()
            loss = F.mse_loss(self.model(source), targets)
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        return total.item() / dist.get_world_size() / len(self.loader)

    def train(self, epochs):
        for epoch in range(self.epochs_run, epochs):
            loss = self.run_epoch(epoch)
            if self.rank == 0:
                saved = {"model": self.model.module.state_dict(), "epochs": epoch + 1}
                torch.save(saved, self.snapshot)
            print(f"epoch {epoch}: loss {loss:.5f}")
        dist.barrier()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--snapshot", type=Path, default=Path("snapshot.pt"))
    options = parser.parse_args()

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = Line(512)
    loader = DataLoader(data, batch_size=16, sampler=DistributedSampler(data))
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
    Trainer(model, loader, optimizer, options.snapshot).train(options.epochs)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
