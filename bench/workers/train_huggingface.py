"""MarianMTModel's training step: its own model, fused AdamW, and torch's label-smoothed cross-entropy."""

from typing import Any

import torch
from torch.nn import CrossEntropyLoss
from torch.nn.utils import clip_grad_norm_

from bench import marian, sizes, worker
from bench.batches import torch_batches


def prepare(settings: dict[str, Any]) -> Any:
    """A new model with its optimiser, and the batches."""
    batches, vocabulary = torch_batches(settings["batches"])
    torch.manual_seed(1)
    model = marian.build(settings["model"], vocabulary, settings["attention"]).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=sizes.RATE, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    measure = CrossEntropyLoss(ignore_index=sizes.PAD, label_smoothing=sizes.SMOOTHING)
    low = settings["precision"] == "bfloat16"

    def step(number: int) -> int:
        batch = batches[number]
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            logits = model(
                input_ids=batch.source,
                attention_mask=(batch.source != sizes.PAD).long(),
                decoder_input_ids=batch.target[:, :-1].contiguous(),
                use_cache=False,
            ).logits
            loss = measure(logits.flatten(0, 1), batch.target[:, 1:].flatten())
        loss.backward()
        clip_grad_norm_(model.parameters(), sizes.CLIP)
        optimizer.step()
        optimizer.zero_grad()
        return int(batch.tokens)

    return lambda order: worker.timed_steps(step, len(batches))


if __name__ == "__main__":
    worker.serve(prepare)
