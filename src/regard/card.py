"""The model card: what a folder's README.md says about the model in it."""

from pathlib import Path
from typing import Any

from regard import folder, storage
from regard.config import Config, model_name
from regard.training.loop import Validation


def write(to: Path, config: Config, about: dict[str, Any], validation: Validation) -> None:
    """Write README.md."""
    lines = [
        f"# {to.name}",
        "",
        f"A `{model_name(config.model)}` model of {about['parameters']:,} parameters, trained with Regard.",
        "",
        "```",
        f'regard translate {to} "your text"',
        f"regard score {to} TEST.source TEST.target",
        "```",
        "",
        "| | |",
        "|---|---|",
        f"| trained on | {about['data']} |",
        f"| validated on | {about['valid']} |",
        f"| steps | {about['step']:,}: {about['finished']} |",
        f"| validation loss, perplexity | {validation.loss:.3f}, {validation.perplexity:.2f} |",
        f"| validation BLEU, chrF (greedy, {config.train.validate_sentences} sentences) "
        f"| {validation.bleu:.1f}, {validation.chrf:.1f} |",
        "",
        "All settings are in `config.json`; how the training went is in `log.jsonl`. To translate, the folder needs "
        "only `config.json`, `model.safetensors` and the tokenizer; `checkpoints/` and `cache/` serve to go on training.",
        "",
    ]
    storage.write_file(to / folder.CARD, "\n".join(lines).encode())
