"""The best next words, against all words ranked."""

import math

import pytest
import torch
from torch import Tensor, nn

from regard.config import DecodeConfig
from regard.decode.beam_candidates import Candidates, best_candidates
from regard.decode.constraints import Rules
from regard.decode.logits import Words
from regard.errors import TrainingError
from regard.text.tokenizers.tokenizer import BEGIN, PAD, UNKNOWN
from toys import batch

SHAPES = [(1, 1, 7), (3, 2, 63), (3, 5, 64), (2, 5, 1000), (60, 4, 9999)]


def find(words: Words, hidden_RW: Tensor, total_NK: Tensor, count: int) -> Candidates:
    rules = Rules(DecodeConfig(), batch(*[[4]] * len(total_NK)))
    nothing_RT = torch.zeros(len(hidden_RW), 0, dtype=torch.long)
    return best_candidates(words, rules, hidden_RW, total_NK, nothing_RT, torch.arange(len(total_NK)), count)


def ranked(logits_RV: Tensor, total_NK: Tensor, count: int) -> Candidates:
    N, K = total_NK.shape
    scores_RV = logits_RV.log_softmax(-1) + total_NK.reshape(-1, 1)
    scores_RV[:, [PAD, UNKNOWN, BEGIN]] = -math.inf
    all_NC, place_NC = scores_RV.view(N, -1).sort(descending=True)
    place_NC = place_NC[:, :count] + torch.arange(N)[:, None] * K * logits_RV.shape[1]
    return Candidates(all_NC[:, :count], place_NC // logits_RV.shape[1], place_NC % logits_RV.shape[1])


@pytest.mark.parametrize(("N", "K", "V"), SHAPES)
@pytest.mark.parametrize("count", [1, 4, 10, 70])
@torch.inference_mode()
def test_the_candidates_are_the_first_of_all_words_ranked(N, K, V, count):
    torch.manual_seed(V)
    words, hidden_RW, total_NK = nn.Linear(8, V, bias=False), 5 * torch.randn(N * K, 8), -5 * torch.rand(N, K)
    found, truth = find(words, hidden_RW, total_NK, count), ranked(words(hidden_RW), total_NK, count)
    can_NC = truth.total_NC.isfinite()
    assert torch.allclose(found.total_NC, truth.total_NC, atol=1e-5)
    assert found.row_NC[can_NC].equal(truth.row_NC[can_NC])
    assert found.word_NC[can_NC].equal(truth.word_NC[can_NC])


@torch.inference_mode()
def test_one_row_of_scores_that_are_not_numbers_is_refused():
    hidden_RW = torch.ones(30, 8)
    hidden_RW[17, 3] = math.nan
    with pytest.raises(TrainingError, match="NaN"):
        find(nn.Linear(8, 1000), hidden_RW, torch.zeros(6, 5), 4)
