"""FSDP2: a small transformer in shards trains like the whole one, and its state comes together."""

import copy

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    set_model_state_dict,
)
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, Shard

WORDS, WIDTH, LENGTH = 32, 16, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.feed_forward = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.feed_forward(x)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Block() for _ in range(2))
        self.output = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.output(x)


def batch(step, rank):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randint(WORDS, (4, LENGTH), generator=generator)


def loss_of(model, tokens):
    return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def main():
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = Transformer()
    whole = copy.deepcopy(model)

    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    assert isinstance(model, FSDPModule)
    for param in model.parameters():
        assert isinstance(param, DTensor) and param.placements == (Shard(0),)
        assert param.to_local().numel() < param.numel()

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    reference = torch.optim.SGD(whole.parameters(), lr=0.1, momentum=0.9)
    for step in range(4):
        loss = loss_of(model, batch(step, rank))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

        everything = torch.cat([batch(step, other) for other in range(world_size)])
        loss_of(whole, everything).backward()
        nn.utils.clip_grad_norm_(whole.parameters(), 1.0)
        reference.step()
        reference.zero_grad()

    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    state = get_model_state_dict(model, options=options)
    if rank == 0:  # the others get nothing
        for name, param in whole.state_dict().items():
            torch.testing.assert_close(state[name], param, rtol=1e-3, atol=1e-4)

    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(model, state, options=options)
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    print(f"loss {mean.item() / world_size:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
