"""Functions as in PyTorch's tutorial "Writing Distributed Applications with PyTorch"."""

import os

import torch
import torch.distributed as dist


def run_point_to_point(rank, size):
    tensor = torch.zeros(1)
    if rank == 0:
        tensor += 1
        dist.send(tensor=tensor, dst=1)
    elif rank == 1:
        dist.recv(tensor=tensor, src=0)
    assert rank > 1 or tensor.item() == 1


def run_immediate(rank, size):
    tensor = torch.zeros(1)
    request = None
    if rank == 0:
        tensor += 1
        request = dist.isend(tensor=tensor, dst=1)
    elif rank == 1:
        request = dist.irecv(tensor=tensor, src=0)
    if request:
        request.wait()
    assert rank > 1 or tensor.item() == 1


def run_collective(rank, size):
    group = dist.new_group(list(range(size)))
    tensor = torch.ones(1)
    dist.all_reduce(tensor, op=dist.ReduceOp.SUM, group=group)
    assert tensor.item() == size


def allreduce(send, recv):
    """Add up the tensors of all ranks around a ring."""
    rank, size = dist.get_rank(), dist.get_world_size()
    send_buff, recv_buff, accum = send.clone(), send.clone(), send.clone()
    left, right = (rank - 1 + size) % size, (rank + 1) % size
    for i in range(size - 1):
        out, into = (send_buff, recv_buff) if i % 2 == 0 else (recv_buff, send_buff)
        request = dist.isend(out, right)
        dist.recv(into, left)
        accum += into
        request.wait()
    recv[:] = accum


def run_ring(rank, size):
    result = torch.zeros(2)
    allreduce(torch.full((2,), rank + 1.0), result)
    assert result.tolist() == [size * (size + 1) / 2] * 2


def init_process(rank, size, fn, backend="gloo"):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group(backend, rank=rank, world_size=size)
    fn(rank, size)
    dist.destroy_process_group()
