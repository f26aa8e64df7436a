"""One model of several: the mean of their weights (Wortsman et al. 2022). It costs no more to use than one of them."""

from collections.abc import Sequence
from pathlib import Path

from regard.config import differences
from regard.errors import ConfigError
from regard.folder import checkpoints, layout
from regard.folder.weights import load_model, save_weights, weights_of
from regard.system import storage


def average(folders: Sequence[Path], to: Path) -> None:
    """Make a model folder whose weights are the mean of those of `folders`; how it searches is as in the first.

    They must be one kind of model, with the same words. For the mean to be of use they must also have gone on from one
    model (`start` in `regard.train`): models with beginnings of their own agree on nothing, number by number.
    """
    if len(folders) < 2:
        raise ConfigError("The mean of one model is that model. Name two folders or more.")
    layout.refuse_used(to)
    first, *others = members = [load_model(path) for path in folders]
    for path, other in zip(folders[1:], others, strict=True):
        for name, one, another in differences(first.config, other.config):
            if name.startswith("model.") and name != "model.dropout":
                raise ConfigError(f"{path} has {name} {another}, {folders[0]} {one}. Name models of one kind and size.")
        if first.tokenizer.as_bytes() != other.tokenizer.as_bytes():
            raise ConfigError(f"The words of {path} are not those of {folders[0]}. Name models that began from one.")
        if first.about.get("labels") != other.about.get("labels"):
            raise ConfigError(f"The labels of {path} are not those of {folders[0]}. Name models that began from one.")
    about = first.about | {"averaged": [str(path) for path in folders]}
    with storage.explained(to):
        to.mkdir(parents=True, exist_ok=True)
    storage.write_file(to / first.tokenizer.file_name, first.tokenizer.as_bytes())
    save_weights(to, checkpoints.mean([weights_of(one.model) for one in members]))
    layout.save_config(to, first.config, about)
