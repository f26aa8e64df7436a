"""The shapes a model's weights must have. What does not fit must not reach a library that would not look."""

from regard.config import BertConfig, ClassifierConfig, LmConfig, TransformerConfig

Shapes = dict[str, tuple[int, ...]]


def transformer_shapes(config: TransformerConfig, vocabulary: int) -> Shapes:
    """By name, every weight of a model folder."""
    width, table = config.width, (vocabulary, config.width)
    shapes: Shapes = {"words.weight": table}
    if config.tie != "all":
        shapes["source_embedding.table.weight"] = table
    if config.tie == "none":
        shapes["target_embedding.table.weight"] = table
    if config.positions == "learned":
        for side in ("source", "target") if config.tie != "all" else ("source",):
            shapes[f"{side}_embedding.positions.table.weight"] = (config.longest, width)
    for number in range(config.depth):
        shapes |= _block(f"encoder.layers.{number}", config, {"attention": "around_attention"})
    for number in range(config.decoder_depth or config.depth):
        attentions = {"self_attention": "around_self", "source_attention": "around_source"}
        shapes |= _block(f"decoder.layers.{number}", config, attentions)
    if config.norm == "before":
        shapes |= _norm("encoder.norm", width) | _norm("decoder.norm", width)
    return shapes


def lm_shapes(config: LmConfig, vocabulary: int) -> Shapes:
    """The same for a model without an encoder."""
    shapes: Shapes = {"words.weight": (vocabulary, config.width)}
    if not config.tie:
        shapes["embedding.table.weight"] = (vocabulary, config.width)
    if config.positions == "learned":
        shapes["embedding.positions.table.weight"] = (config.longest, config.width)
    for number in range(config.depth):
        shapes |= _block(f"layers.{number}", config, {"attention": "around_attention"})
    return shapes | (_norm("norm", config.width) if config.norm == "before" else {})


def reader_shapes(config: BertConfig | ClassifierConfig, vocabulary: int, labels: int) -> Shapes:
    """The same for a model that reads; `labels` are those of a classifier."""
    width = config.width
    shapes: Shapes = {
        "body.embedding.words.weight": (vocabulary, width),
        "body.embedding.positions.table.weight": (config.longest, width),
        "body.embedding.segments.weight": (2, width),
    }
    shapes |= _norm("body.embedding.norm", width) | _linear("body.pooler", width, width)
    for number in range(config.depth):
        shapes |= _block(f"body.layers.{number}", config, {"attention": "around_attention"})
    if isinstance(config, ClassifierConfig):
        return shapes | _linear("labels", width, labels)
    if config.next_sentence:
        shapes |= _linear("follower", width, 2)
    return (
        shapes | _linear("guesser.dense", width, width) | _norm("guesser.norm", width) | {"guesser.bias": (vocabulary,)}
    )


def _block(
    name: str, config: TransformerConfig | LmConfig | BertConfig | ClassifierConfig, attentions: dict[str, str]
) -> Shapes:
    width, inner = config.width, config.inner
    shapes = _linear(f"{name}.feed_forward.widen", width, inner) | _linear(f"{name}.feed_forward.narrow", inner, width)
    for attention, around in attentions.items():
        shapes |= _linear(f"{name}.{attention}.project", width, 3 * width)
        shapes |= _linear(f"{name}.{attention}.join", width, width)
        shapes |= _norm(f"{name}.{around}.norm", width)
    return shapes | _norm(f"{name}.around_feed_forward.norm", width)


def _linear(name: str, read: int, written: int) -> Shapes:
    return {f"{name}.weight": (written, read), f"{name}.bias": (written,)}


def _norm(name: str, width: int) -> Shapes:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}
