"""The model card: what a folder's README.md says about the model in it."""

from pathlib import Path
from typing import Any

from regard.config import Config, model_name
from regard.folder import layout
from regard.system import storage
from regard.training.validation import SCORES, Validation


def write(to: Path, config: Config, about: dict[str, Any], validation: Validation, example: str) -> None:
    """Write README.md."""
    lines = [
        f"# {to.name}",
        "",
        f"A `{model_name(config.model)}` model of {about['parameters']:,} parameters, trained with Regard.",
        "",
        "```",
        example.replace("DIR", str(to)),
        f"regard score {to} TEST",
        "```",
        "",
        "| | |",
        "|---|---|",
        f"| trained on | {about['data']} |",
        f"| validated on | {about['valid']} |",
        f"| steps | {about['step']:,}: {about['finished']} |",
        f"| validation loss, perplexity | {validation.loss:.3f}, {validation.perplexity:.2f} |",
        *(f"| validation {SCORES[name]} | {score:.2f} |" for name, score in validation.scores.items()),
        "",
        "All settings are in `config.json`; how the training went is in `log.jsonl`. To be used, the folder needs "
        "only `config.json`, `model.safetensors` and the tokenizer; `checkpoints/` and `cache/` serve to go on training.",
        "",
    ]
    storage.write_file(to / layout.CARD, "\n".join(lines).encode())
