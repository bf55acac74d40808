"""Pipeline parallel: each rank has a stage of the model, and micro-batches go through them."""

import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    SplitPoint,
    pipeline,
)

WIDTH, MICRO_BATCHES = 8, 4


class Model(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(layers))
        )

    def forward(self, x):
        return self.layers(x)


def train(stage, schedule_type, x, target):
    """Run one batch; return the losses of its micro-batches, on the last rank."""
    schedule = schedule_type(stage, MICRO_BATCHES, loss_fn=nn.functional.mse_loss)
    losses = []
    if stage.is_first and stage.is_last:
        schedule.step(x, target=target, losses=losses)
    elif stage.is_first:
        schedule.step(x)
    elif stage.is_last:
        schedule.step(target=target, losses=losses)
    else:
        schedule.step()
    return losses


def main():
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    whole = Model(layers=world_size)
    x, target = torch.randn(16, WIDTH), torch.randn(16, WIDTH)
    expected = nn.functional.mse_loss(whole(x), target)
    expected.backward()

    for schedule_type in (ScheduleGPipe, Schedule1F1B):
        # Cut by hand.
        part = copy.deepcopy(whole.layers[rank])
        part.zero_grad()
        stage = PipelineStage(part, rank, world_size, torch.device("cpu"))
        losses = train(stage, schedule_type, x, target)
        if rank == world_size - 1:
            torch.testing.assert_close(torch.stack(losses).mean(), expected)
        torch.testing.assert_close(part[0].weight.grad, whole.layers[rank][0].weight.grad)

    # Cut by torch, which traces the model.
    whole.zero_grad()
    split = {f"layers.{i}": SplitPoint.BEGINNING for i in range(1, world_size)}
    pipe = pipeline(whole, mb_args=(x.chunk(MICRO_BATCHES)[0],), split_spec=split)
    losses = train(pipe.build_stage(rank, torch.device("cpu")), ScheduleGPipe, x, target)
    mean = torch.stack(losses).mean().detach() if losses else torch.empty(())
    dist.broadcast(mean, src=world_size - 1)
    torch.testing.assert_close(mean, expected.detach())
    print(f"loss {mean.item():.4f} through {world_size} stages")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
