"""The Transformer of `transformers`' MarianMTModel: of any size, and with the weights of one that Regard trained."""

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

from bench.sizes import BEGIN, END, PAD

POSITIONS = 512


def build(shape: dict[str, Any], vocabulary: int, attention: str = "sdpa") -> MarianMTModel:
    """A new model: norm after the sub-layers, sinusoids, ReLU, one table of words for everything.

    `attention` is theirs to choose: torch's fused kernel (sdpa) or the equations as written (eager).
    """
    config = MarianConfig(
        vocab_size=vocabulary,
        d_model=shape["width"],
        encoder_layers=shape["depth"],
        decoder_layers=shape["depth"],
        encoder_attention_heads=shape["heads"],
        decoder_attention_heads=shape["heads"],
        encoder_ffn_dim=shape["inner"],
        decoder_ffn_dim=shape["inner"],
        dropout=shape["dropout"],
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=POSITIONS,
        pad_token_id=PAD,
        bos_token_id=BEGIN,
        decoder_start_token_id=BEGIN,
        eos_token_id=END,
        forced_eos_token_id=None,
        attn_implementation=attention,
    )
    return MarianMTModel(config)


def of_folder(folder: Path, shape: dict[str, Any], vocabulary: int) -> MarianMTModel:
    """The model with the weights in Regard's model folder; everything it computes is the same."""
    model = build(shape, vocabulary)
    stored = load_file(folder / "model.safetensors")
    words = next(tensor for name, tensor in stored.items() if tensor.shape[0] == vocabulary)
    weights = {"model.shared.weight": words}
    for side, names in (("encoder", ENCODER), ("decoder", DECODER)):
        for number in range(shape["depth"]):
            for theirs, ours in names.items():
                for kind in ("weight", "bias"):
                    tensor = _part(stored, f"{side}.layers.{number}.{ours}", kind, shape["width"])
                    weights[f"model.{side}.layers.{number}.{theirs}.{kind}"] = tensor
    unknown = model.load_state_dict(weights, strict=False).unexpected_keys
    missing = [name for name, _ in model.named_parameters() if name not in weights and "positions" not in name]
    if unknown or missing:
        raise ValueError(f"The weights do not fit: {unknown} not known, {missing} not given.")
    with torch.no_grad():  # their sinusoids have the same waves in another order
        for side in (model.model.encoder, model.model.decoder):
            side.embed_positions.weight.copy_(sinusoids(POSITIONS, shape["width"]))
    return model


def sinusoids(length: int, width: int) -> Tensor:
    """Sines in the even columns, cosines in the odd ones."""
    place = torch.arange(length, dtype=torch.float64)[:, None]
    angle = place / 10_000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1).float()


# Their name -> ours; "#n" takes the n-th third of the rows, as ours has query, key and value in one matrix.
FEED_FORWARD = {
    "fc1": "feed_forward.widen",
    "fc2": "feed_forward.narrow",
    "final_layer_norm": "around_feed_forward.norm",
}
ENCODER = {
    "self_attn.q_proj": "attention.project#0",
    "self_attn.k_proj": "attention.project#1",
    "self_attn.v_proj": "attention.project#2",
    "self_attn.out_proj": "attention.join",
    "self_attn_layer_norm": "around_attention.norm",
    **FEED_FORWARD,
}
DECODER = {
    "self_attn.q_proj": "self_attention.project#0",
    "self_attn.k_proj": "self_attention.project#1",
    "self_attn.v_proj": "self_attention.project#2",
    "self_attn.out_proj": "self_attention.join",
    "self_attn_layer_norm": "around_self.norm",
    "encoder_attn.q_proj": "source_attention.project#0",
    "encoder_attn.k_proj": "source_attention.project#1",
    "encoder_attn.v_proj": "source_attention.project#2",
    "encoder_attn.out_proj": "source_attention.join",
    "encoder_attn_layer_norm": "around_source.norm",
    **FEED_FORWARD,
}


def _part(stored: dict[str, Tensor], name: str, kind: str, width: int) -> Tensor:
    module, _, third = name.partition("#")
    tensor = stored[f"{module}.{kind}"]
    return tensor[int(third) * width : (int(third) + 1) * width] if third else tensor
