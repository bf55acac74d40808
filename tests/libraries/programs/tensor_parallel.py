"""Tensor parallel and sequence parallel: split layers compute what the whole ones do."""

import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.down(torch.relu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, width=16, classes=8):
        super().__init__()
        self.first = FeedForward(width)
        self.second = FeedForward(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.second(self.first(x)))


def main():
    dist.init_process_group("gloo")
    world_size = dist.get_world_size()
    mesh = init_device_mesh("cpu", (world_size,), mesh_dim_names=("tp",))

    rows = torch.arange(8.0 * world_size).reshape(2 * world_size, 4)
    sharded = distribute_tensor(rows, mesh, [Shard(0)])
    assert sharded.to_local().shape == (2, 4)
    assert torch.equal(sharded.redistribute(mesh, [Replicate()]).to_local(), rows)
    assert torch.equal((sharded @ sharded.T).full_tensor(), rows @ rows.T)

    torch.manual_seed(0)
    model = Model()
    whole = copy.deepcopy(model)
    plan = {"head": ColwiseParallel(use_local_output=False)}
    plan["first.up"] = plan["second.up"] = ColwiseParallel()
    plan["first.down"] = RowwiseParallel(output_layouts=Shard(1))
    # The second block's norm works on a part of the sequence.
    plan["second"] = PrepareModuleInput(
        input_layouts=Shard(1), desired_input_layouts=Shard(1), use_local_output=False
    )
    plan["second.norm"] = SequenceParallel()
    plan["second.up"] = ColwiseParallel(input_layouts=Shard(1))
    plan["second.down"] = RowwiseParallel()
    parallelize_module(model, mesh, plan)
    assert isinstance(model.first.up.weight, DTensor)
    assert model.first.up.weight.to_local().shape == (64 // world_size, 16)

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
    reference = torch.optim.AdamW(whole.parameters(), lr=1e-2, foreach=False)
    for step in range(3):
        torch.manual_seed(step)  # all ranks of a mesh's dimension get the same input
        x, target = torch.randn(4, 2 * world_size, 16), torch.randint(8, (8 * world_size,))
        with loss_parallel():
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1), target)
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        expected = nn.functional.cross_entropy(whole(x).flatten(0, 1), target)
        expected.backward()
        reference.step()
        reference.zero_grad()
        torch.testing.assert_close(loss.full_tensor(), expected)
    for name, param in whole.named_parameters():
        ours = model.get_parameter(name).detach()
        ours = ours.full_tensor() if isinstance(ours, DTensor) else ours
        torch.testing.assert_close(ours, param, rtol=1e-3, atol=1e-4)
    print(f"loss {expected.item():.4f}, as without a mesh")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
