"""The learning rate as a pure function of the step: plot it, test it."""

import math

from regard.config import TrainConfig


def rate_at(step: int, config: TrainConfig, width: int, lowered: float = 1.0) -> float:
    """The learning rate of a step, counted from 1; `lowered` is what a plateau has multiplied it by so far."""
    peak = config.rate or (width * config.warm_up) ** -0.5
    rising = min(1.0, step / config.warm_up)
    past = max(step, config.warm_up)
    falling = {
        # Vaswani et al. 2017, equation 3, is this curve with the peak above.
        "paper": math.sqrt(config.warm_up / past),
        "inverse_sqrt": math.sqrt(config.warm_up / past),
        "cosine": 0.5
        * (1 + math.cos(math.pi * min(1.0, (past - config.warm_up) / max(1, config.steps - config.warm_up)))),
        "plateau": lowered,
        "constant": 1.0,
    }
    return peak * rising * falling[config.schedule]
