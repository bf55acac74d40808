"""Transformers: a `Trainer` fits a small Llama, evaluates it, saves it, and goes on from there."""

import shutil
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

FOLDER = Path(tempfile.gettempdir()) / "trainer"


class Counting(torch.utils.data.Dataset):
    """Sequences in which each number follows the one before it."""

    def __len__(self):
        return 48

    def __getitem__(self, index):
        tokens = (torch.arange(8) + index) % 16
        return {"input_ids": tokens, "labels": tokens}


def model():
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=16, num_attention_heads=2, **sizes))


def main():
    arguments = TrainingArguments(
        FOLDER,
        use_cpu=True,
        num_train_epochs=3,
        per_device_train_batch_size=4,
        learning_rate=1e-2,
        eval_strategy="epoch",
        save_strategy="epoch",
        report_to="none",
        disable_tqdm=True,
    )
    trainer = Trainer(model(), arguments, train_dataset=Counting(), eval_dataset=Counting())
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    after = trainer.evaluate()["eval_loss"]
    assert after < before - 0.5, (before, after)
    assert trainer.state.global_step == 3 * 48 // (4 * dist.get_world_size())

    trainer = Trainer(model(), arguments, train_dataset=Counting(), eval_dataset=Counting())
    trainer.train(resume_from_checkpoint=True)
    assert trainer.state.global_step == 3 * 48 // (4 * dist.get_world_size())
    assert trainer.evaluate()["eval_loss"] < before - 0.5

    losses = [None] * dist.get_world_size()
    dist.all_gather_object(losses, (before, after))
    assert set(losses) == {(before, after)}
    if dist.get_rank() == 0:
        shutil.rmtree(FOLDER)
    print(f"loss {before:.4f} at first, {after:.4f} at last")


if __name__ == "__main__":
    main()
