"""Scores of words, in every precision."""

import pytest
import torch

from regard.decode.logits import words_of

ROWS, WIDTH, VOCABULARY = 70, 48, 333


@pytest.mark.parametrize("rows", [1, 1000])
@pytest.mark.parametrize(
    ("precision", "error"), [("auto", 1e-5), ("float32", 1e-5), ("bfloat16", 0.01), ("int8", 0.02)]
)
@torch.inference_mode()
def test_scores_are_products_up_to_what_the_precision_rounds(precision, error, rows):
    torch.manual_seed(1)
    hidden_RW, weight_VW = torch.randn(ROWS, WIDTH), torch.randn(VOCABULARY, WIDTH)
    truth_RV = hidden_RW.double() @ weight_VW.double().T
    logits_RV = words_of(weight_VW, precision, rows)(hidden_RW)
    off = (logits_RV - truth_RV).norm() / truth_RV.norm()
    assert logits_RV.dtype == torch.float32 and off < error
    assert off > error / 100 or error < 1e-4, "nothing was rounded"


@torch.inference_mode()
def test_a_row_of_zeros_has_scores_of_zero():
    weight_VW = torch.randn(VOCABULARY, WIDTH)
    assert not words_of(weight_VW, "int8", 1)(torch.zeros(3, WIDTH)).any()


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
@torch.inference_mode()
def test_a_row_that_is_not_a_number_has_no_scores(precision):
    hidden_RW = torch.ones(3, WIDTH)
    hidden_RW[1, 5] = torch.nan
    nan_R = words_of(torch.randn(VOCABULARY, WIDTH), precision, 1)(hidden_RW).isnan().any(1)
    assert nan_R.tolist() == [False, True, False]
