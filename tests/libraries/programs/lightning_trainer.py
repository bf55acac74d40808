"""Lightning: a `Trainer` with DDP fits, and validates with a metric of all ranks."""

import os
import tempfile

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
        self.accuracy = MulticlassAccuracy(3, average="micro")

    def training_step(self, batch, _):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("loss", loss, sync_dist=True)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.accuracy(self.net(x), y)
        self.log("accuracy", self.accuracy)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.05)


class Data(L.LightningDataModule):
    def setup(self, stage):
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(120, 4, generator=generator)
        self.data = TensorDataset(x, x[:, :3].argmax(dim=1))

    def train_dataloader(self):
        return DataLoader(self.data, batch_size=10, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.data, batch_size=10)


def main():
    L.seed_everything(0, verbose=False)
    size = int(os.environ["WORLD_SIZE"])
    trainer = L.Trainer(
        accelerator="cpu",
        devices=size,
        strategy="ddp",
        max_epochs=4,
        default_root_dir=tempfile.gettempdir(),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Classifier()
    trainer.fit(model, Data())
    assert trainer.world_size == size and trainer.global_rank == int(os.environ["RANK"])
    assert trainer.num_training_batches == 120 // (10 * size)
    accuracy = trainer.callback_metrics["accuracy"].item()
    assert accuracy > 0.7, accuracy
    weights = trainer.strategy.all_gather(model.net[0].weight)
    assert all(torch.equal(theirs, weights[0]) for theirs in weights)
    print(f"accuracy {accuracy:.4f}, loss {trainer.callback_metrics['loss'].item():.4f}")


if __name__ == "__main__":
    main()
