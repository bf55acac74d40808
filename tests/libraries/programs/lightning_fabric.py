"""Lightning Fabric: one's own loop, with DDP and a checkpoint."""

import os
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from lightning.fabric import Fabric
from torch.utils.data import DataLoader, TensorDataset

CHECKPOINT = Path(tempfile.gettempdir()) / "fabric.ckpt"


def main():
    fabric = Fabric(accelerator="cpu", devices=int(os.environ["WORLD_SIZE"]), strategy="ddp")
    fabric.launch()
    fabric.seed_everything(0, verbose=False)
    x = torch.randn(40, 2)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = fabric.setup(model, optimizer)
    loader = fabric.setup_dataloaders(DataLoader(TensorDataset(x, x.sum(1, True)), batch_size=5))
    assert len(loader) == 40 // (5 * fabric.world_size)
    for _ in range(4):
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(inputs), targets)
            fabric.backward(loss)
            optimizer.step()

    state = {"model": model, "optimizer": optimizer}
    fabric.save(CHECKPOINT, state)
    weight = model.weight.detach().clone()
    with torch.no_grad():
        model.weight.zero_()
    fabric.load(CHECKPOINT, state)
    assert torch.equal(model.weight, weight)
    weights = fabric.all_gather(weight)
    assert all(torch.equal(theirs, weight) for theirs in weights)
    mean = fabric.all_reduce(loss.detach(), reduce_op="mean").item()
    fabric.barrier()
    if fabric.is_global_zero:
        CHECKPOINT.unlink()
    print(f"loss {mean:.5f} in {fabric.world_size} processes")


if __name__ == "__main__":
    main()
