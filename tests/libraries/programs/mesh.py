"""A mesh of two dimensions: tensor parallel within a row, FSDP2 between the rows."""

import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)


def main():
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    row = mesh["dp"].get_local_rank()

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))
    whole = copy.deepcopy(model)
    parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])
    assert model[0].weight.to_local().shape == (8, 8)

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    reference = torch.optim.SGD(whole.parameters(), lr=0.1)
    for step in range(3):
        torch.manual_seed(step)
        x = torch.randn(2, 4, 8)
        optimizer.zero_grad()
        model(x[row]).square().mean().backward()
        optimizer.step()
        reference.zero_grad()
        expected = whole(x).square().mean()
        expected.backward()
        reference.step()
    for name, param in whole.named_parameters():
        torch.testing.assert_close(model.get_parameter(name).full_tensor(), param)
    print(f"loss {expected.item():.4f}, on {mesh.mesh.tolist()}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
