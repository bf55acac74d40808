"""Distributed checkpoints: a model in shards is saved, and loaded by one that is not."""

import shutil
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.fsdp import fully_shard

FOLDER = Path(tempfile.gettempdir()) / "dcp-tutorial"


class AppState(Stateful):
    """What is saved and loaded together."""

    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def state_dict(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer}

    def load_state_dict(self, state):
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )


def make(seed, shard):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 4))
    if shard:
        fully_shard(model)
    return model, torch.optim.AdamW(model.parameters(), lr=0.1)


def train(model, optimizer):
    torch.manual_seed(3)
    model(torch.rand(8, 6)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def output(model):
    return model(torch.linspace(0, 1, 6).reshape(1, 6)).detach()


def main():
    dist.init_process_group("gloo")
    model, optimizer = make(seed=0, shard=True)
    train(model, optimizer)
    saved = output(model)
    dcp.save({"app": AppState(model, optimizer)}, checkpoint_id=FOLDER / "step-1")
    assert len(list((FOLDER / "step-1").glob("*.distcp"))) == dist.get_world_size()

    train(model, optimizer)
    later = output(model)
    assert not torch.equal(saved, later)
    writing = dcp.async_save({"app": AppState(model, optimizer)}, checkpoint_id=FOLDER / "step-2")
    writing.result()

    for name, expected in (("step-1", saved), ("step-2", later)):
        for shard in (True, False):
            model, optimizer = make(seed=9, shard=shard)
            dcp.load({"app": AppState(model, optimizer)}, checkpoint_id=FOLDER / name)
            torch.testing.assert_close(output(model), expected)
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(FOLDER)
    print(f"loaded what was saved: {saved.sum().item():.4f}, {later.sum().item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
