"""Accelerate: a training loop with accumulated gradients, metrics of all ranks, and its state."""

import shutil
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object, set_seed
from torch.utils.data import DataLoader, TensorDataset

FOLDER = Path(tempfile.gettempdir()) / "accelerate-state"


def dataset(size=50):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(size, 3, generator=generator)
    return TensorDataset(x, x.sum(dim=1, keepdim=True), torch.arange(size))


def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    set_seed(1)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=100)
    training = DataLoader(dataset(), batch_size=5, shuffle=True)
    evaluation = DataLoader(dataset(), batch_size=4)
    model, optimizer, training, evaluation, scheduler = accelerator.prepare(
        model, optimizer, training, evaluation, scheduler
    )
    assert accelerator.num_processes > 1, "it has not seen the other ranks"

    for _ in range(3):
        model.train()
        for x, y, _ in training:
            with accelerator.accumulate(model):
                loss = F.mse_loss(model(x), y)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 5.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()

    model.eval()
    errors, seen = [], []
    for x, y, index in evaluation:
        with torch.no_grad():
            squares = (model(x) - y).square()
        squares, index = accelerator.gather_for_metrics((squares, index))
        errors.append(squares)
        seen.extend(index.tolist())
    assert sorted(seen) == list(range(50)), "what fills the last batch up is not counted"
    error = torch.cat(errors).mean().item()

    folder = broadcast_object_list([str(FOLDER)])[0]
    accelerator.save_state(folder)
    accelerator.wait_for_everyone()
    weights = accelerator.unwrap_model(model).weight.detach().clone()
    with torch.no_grad():
        accelerator.unwrap_model(model).weight.zero_()
    accelerator.load_state(folder)
    assert torch.equal(accelerator.unwrap_model(model).weight, weights)

    with accelerator.split_between_processes(list(range(5))) as mine:
        squares = [number**2 for number in mine]
    assert gather_object(squares) == [0, 1, 4, 9, 16]
    assert all(row == weights.tolist() for row in gather_object([weights.tolist()]))
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        shutil.rmtree(FOLDER)
    print(f"error {error:.5f} of {accelerator.num_processes} processes")
    accelerator.end_training()


if __name__ == "__main__":
    main()
