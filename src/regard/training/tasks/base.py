"""What a job is: from text to batches, from batches to a loss, and from a model to a validation.

Training itself is the same for all of them; a job is what differs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from regard.config import Config
from regard.errors import ConfigError
from regard.interpret.probe import Look
from regard.models.base import Model
from regard.text.batching.batch import Batch, Batches
from regard.text.batching.rank_split import WHOLE, Share
from regard.text.shards.prepare_pairs import Learn, Progress
from regard.text.tokenizers.tokenizer import Tokenizer, learn_tokenizer
from regard.training.losses.cross_entropy import Objective, whole_loss
from regard.training.trainer import Learner
from regard.training.validation import Validation


class Text(Protocol):
    """A text that can be read again and again."""

    name: str
    known: str

    def fingerprint(self) -> str:
        """A hash that changes when the content does."""
        ...


class Ready(Protocol):
    """A text made ready for training."""

    @property
    def tokenizer(self) -> Tokenizer:
        """That cuts it."""
        ...

    @property
    def notes(self) -> list[str]:
        """What a person should know about it."""
        ...


TextT = TypeVar("TextT", bound=Text)
ReadyT = TypeVar("ReadyT", bound=Ready)


class Job(ABC, Generic[TextT, ReadyT]):
    """What a model learns, and from which text. `prepare` comes first; then everything else can be asked."""

    name: ClassVar[str]
    """Kept in the model folder, for whoever loads it."""
    scores: ClassVar[tuple[str, ...]]
    """What its validations report besides the loss; `train.metric` can be one of these."""
    reads_twice: ClassVar[bool] = False
    """Whether it can learn with R-Drop (`train.rdrop`)."""
    example: ClassVar[str]
    """How a person tries the model: a command in which DIR stands for its folder."""

    def __init__(self, train: TextT, valid: TextT | None, config: Config, learn: Learn | None = None) -> None:
        """Without `valid`, some of `train` is held out; without `learn`, the tokenizer is learned from the text."""
        self.train, self.valid, self.config = train, valid, config
        if config.train.rdrop:
            self._refuse_rdrop_without_use()
        self.learn = learn or partial(learn_tokenizer, config=config.text)
        self._prepared: ReadyT | None = None

    def _refuse_rdrop_without_use(self) -> None:
        if not self.reads_twice:
            raise ConfigError("train.rdrop is for models that learn from pairs or labels. Leave it at 0.")
        if self.config.model.dropout == 0:
            raise ConfigError(
                f"train.rdrop {self.config.train.rdrop:g} compares two dropouts, but model.dropout is 0, so that both are "
                "the same. Set model.dropout=0.3, or train.rdrop=0."
            )

    def fingerprints(self) -> dict[str, str]:
        """Hashes that change when the text does."""
        return {"train": self.train.fingerprint(), "valid": self.valid.fingerprint() if self.valid else ""}

    def take_up(self, folder: Path, seed: int, fingerprints: dict[str, str]) -> None:
        """What another process prepared in `folder`, and whose fingerprints it tells: the text need not be read for that."""
        for text, side in ((self.train, "train"), (self.valid, "valid")):
            if text is not None:
                text.known = fingerprints[side]
        self.prepare(folder, seed, lambda what, done: None)

    def prepare(self, folder: Path, seed: int, progress: Progress) -> list[str]:
        """Make the text ready in `folder`, or take up what is there; what a person should know about it."""
        self._prepared = self.make_ready(folder, seed, progress)
        return self._prepared.notes

    @property
    def prepared(self) -> ReadyT:
        """The text, once it is ready."""
        assert self._prepared is not None, "prepare comes first"
        return self._prepared

    @property
    def tokenizer(self) -> Tokenizer:
        """Of the prepared text."""
        return self.prepared.tokenizer

    def about(self) -> dict[str, Any]:
        """What else the model folder must keep, once the text is prepared."""
        return {}

    def told_of(self, model: Model) -> list[str]:
        """What a person should know of this text and this model together, such as what it cannot validate on."""
        return []

    @abstractmethod
    def make_ready(self, folder: Path, seed: int, progress: Progress) -> ReadyT:
        """The prepared text."""

    @abstractmethod
    def size(self) -> str:
        """How much there is to learn from, in words: "29,000 pairs"."""

    @abstractmethod
    def build(self) -> Model:
        """A new model with random weights."""

    @abstractmethod
    def batches(self, share: Share = WHOLE) -> Batches[Batch]:
        """What to learn from; where several processes learn together, one's share of it."""

    @property
    @abstractmethod
    def objective(self) -> Objective:
        """What to make smaller."""

    @abstractmethod
    def validator(self, learner: Learner) -> Callable[[Model], Validation]:
        """How good a model is."""

    @abstractmethod
    def watch(self, learner: Learner) -> Look:
        """Where a model looks in one text, `train.probe` or one of those to validate on: always the same."""


def room_for(model: Model, tokens: int, longest: int) -> Model:
    """The model, if it has positions for so many tokens; else it is refused. `longest` is the setting to change."""
    if model.longest is not None and tokens > model.longest:
        raise ConfigError(
            f"text.longest {longest} lets in texts for which this model has no positions. Set text.longest="
            f"{longest - (tokens - model.longest)} or less, or model.longest={tokens} or more."
        )
    return model


def mean_loss(model: Model, learner: Learner, batches: Batches[Batch]) -> float:
    """The loss per token over all batches, without smoothing and dropout."""
    model.eval()
    with learner.computing():
        total, tokens = whole_loss(learner.objective, model, batches, learner.device)
    return total / tokens
