"""Attention rollout: attention of all layers, multiplied (Abnar and Zuidema 2020)."""

import numpy as np
import numpy.typing as npt

from regard.errors import TraceError
from regard.interpret.trace import KINDS, Map, Trace


def rollout(trace: Trace, chosen: Map) -> npt.NDArray[np.float64]:
    """How much of each input word is in a position after this layer (Abnar and Zuidema 2020), token by token.

    Attention and the connection past it share equally: the product over layers of half the mean head, half the identity.
    For attention to the source, its mean head looks at what the encoder's layers have mixed.
    """
    itself = chosen.queries == chosen.keys
    same = [one for one in trace.maps if one.queries == one.keys == chosen.keys]
    below = [one for one in same if not itself or (one.kind == chosen.kind and one.layer <= chosen.layer)]
    if [one.layer for one in below] != list(range(len(below))) or not below:
        raise TraceError(
            f"Rollout follows attention through layers that all look at the same words; {KINDS[chosen.kind]} of "
            f"{trace.facts.name} has no such layers below it. Choose a head, mean or max."
        )
    share = np.eye(len(trace.rows[chosen.keys].tokens))
    for one in below:
        share = (one.weights_HQK.mean(0, dtype=np.float64) + np.eye(len(share))) / 2 @ share
    return share if itself else chosen.weights_HQK.mean(0, dtype=np.float64) @ share
