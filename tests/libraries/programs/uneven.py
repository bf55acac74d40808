"""Ranks with different numbers of batches, joined, and an optimizer whose state is in shards."""

import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    model = DistributedDataParallel(model)
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=torch.optim.Adam, lr=0.1
    )
    batches = torch.ones(3 + rank, 5, 4)
    steps = 0
    with Join([model, optimizer]):
        for batch in batches:
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
            steps += 1
    assert steps == 3 + rank

    mine = torch.cat([param.detach().flatten() for param in model.parameters()])
    weights = [torch.empty_like(mine) for _ in range(world_size)]
    dist.all_gather(weights, mine)
    assert all(torch.equal(theirs, mine) for theirs in weights)
    optimizer.consolidate_state_dict(to=0)
    if rank == 0:
        assert len(optimizer.state_dict()["state"]) == 4
    print(f"weights sum up to {mine.sum().item():.4f} after {world_size + 2} steps")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
