"""Transformers: `tp_plan="auto"` loads a share of a small Llama on each rank."""

import os
import shutil
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

FOLDER = Path(tempfile.gettempdir()) / "small-llama"


def main():
    dist.init_process_group("gloo")
    if os.environ["RANK"] == "0":
        torch.manual_seed(0)
        sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
        config = LlamaConfig(vocab_size=64, num_attention_heads=4, **sizes)
        LlamaForCausalLM(config).save_pretrained(FOLDER)
    dist.barrier()

    whole = AutoModelForCausalLM.from_pretrained(FOLDER)
    model = AutoModelForCausalLM.from_pretrained(FOLDER, tp_plan="auto")
    projection = model.model.layers[0].mlp.up_proj.weight
    held = projection.to_local() if hasattr(projection, "to_local") else projection
    assert held.shape == (32 // dist.get_world_size(), 16), held.shape

    tokens = torch.arange(10).reshape(1, 10)
    with torch.no_grad():
        torch.testing.assert_close(model(tokens).logits, whole(tokens).logits)
    told = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
    words = model.generate(tokens, **told)[0, 10:].tolist()
    assert words == whole.generate(tokens, **told)[0, 10:].tolist()
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(FOLDER)
    print(f"goes on with {words}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
