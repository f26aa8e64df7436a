"""Labels by a torch model, and what its heads are good for."""

from collections.abc import Sequence

import torch

from regard.encode.classify import TextLabeller
from regard.encode.embed import Ids
from regard.encode.torch_encoder import ModelReader
from regard.interpret.ablation import Knockouts, knockouts, of_labeller
from regard.interpret.trace import Facts
from regard.models.bert import Classifier
from regard.text.arguments import text_of
from regard.text.tokenizers.tokenizer import Tokenizer


class Labeller(ModelReader, TextLabeller):
    """Tells which of some labels a text has. A blank text has none: its label is empty, with probability 0."""

    model: Classifier

    def __init__(
        self,
        model: Classifier,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        device: torch.device | str = "cpu",
        *,
        batch_tokens: int = 8192,
        facts: Facts | None = None,
    ) -> None:
        """`labels` in the order in which the model scores them."""
        super().__init__(model, tokenizer, device, batch_tokens=batch_tokens, facts=facts)
        self.labels = list(labels)

    def knockouts(self, text: str) -> Knockouts:
        """How likely the label remains as each head is switched off in turn."""
        text = text_of(text, "text")
        watched = self.watched(text)
        with torch.inference_mode():
            return knockouts(watched, of_labeller(self.model, self.labels, self._ids(text)))

    def _chances(self, rows: Sequence[Ids]) -> list[list[float]]:
        with self._reading(rows) as read:
            chances_BL: list[list[float]] = self.model.label(read.hidden_BTW).float().softmax(-1).tolist()
            return chances_BL
