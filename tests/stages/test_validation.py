"""Validation: what it shows of a model besides its scores."""

from pathlib import Path

import torch

from commands import write_splits
from endeavour.config import load_config
from endeavour.data.dataset import ParallelDataset
from endeavour.data.tokenizer import Tokenizer
from endeavour.model.transformer import Transformer
from endeavour.stages.prepare import prepare
from endeavour.stages.validation import WATCHED, Validator


def test_the_attention_of_one_pair_is_watched_with_its_reference_whatever_the_model(
    parallel_files: list[str], folders: list[str]
) -> None:
    config = load_config([*parallel_files, *folders])
    data = prepare(config)
    tokenizers = data.load_source_tokenizer(), data.load_target_tokenizer()
    validator = Validator(data, tokenizers, config)
    found = [validator(model(config.seed + more, tokenizers)).attention for more in range(2)]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0][:2] == found[1][:2]
    assert found[0][2] != found[1][2]
    source, target, weights = found[0]
    assert len(source) in WATCHED
    assert len(target) in WATCHED
    assert (source[-1], target[-1]) == ("</s>", "</s>")
    texts = [("".join(pieces[:-1]).replace("\u2581", " ").strip()) for pieces in (source, target)]
    assert texts[0] in data.lines("validation", "source")
    assert data.lines("validation", "target")[data.lines("validation", "source").index(texts[0])] == texts[1]
    assert [len(row) for row in weights] == [len(source)] * len(target)
    assert all(abs(sum(row) - 1) < 0.01 for row in weights)


def test_where_every_sentence_is_short_none_is_watched(tmp_path: Path, folders: list[str]) -> None:
    splits = {"train": [(f"a dog {n}", f"ein Hund {n}") for n in range(200)], "validation": [("dog", "Hund")]}
    vocabulary = ["tokenizer=bpe2k", "tokenizer.vocabulary_size=290"]
    config = load_config([*write_splits(tmp_path, splits), *vocabulary, *folders])
    data = prepare(config)
    tokenizers = data.load_source_tokenizer(), data.load_target_tokenizer()
    assert Validator(data, tokenizers, config)(model(1, tokenizers)).attention is None


def test_a_long_source_of_a_short_target_makes_no_batch_larger(tmp_path: Path, folders: list[str]) -> None:
    pairs = [(f"a dog {n}", f"ein Hund {n}") for n in range(200)]
    others = [(f"the man {n}", f"der Mann {n}") for n in range(200)]
    splits = {"train": pairs, "validation": [*others, ("a dog " * 400, "Hund")]}
    vocabulary = ["tokenizer=bpe2k", "tokenizer.vocabulary_size=290"]
    config = load_config([*write_splits(tmp_path, splits), *vocabulary, *folders])
    data = prepare(config)
    longest = int(ParallelDataset.open(data.folder, "validation").source.lengths.max())
    budget = max(config.training.tokens_per_batch, longest)
    validator = Validator(data, (data.load_source_tokenizer(), data.load_target_tokenizer()), config)
    cells = [max(batch.source.numel(), batch.target_in.numel()) for batch in validator._batches]
    assert sum(batch.source.shape[0] for batch in validator._batches) == 201
    assert longest <= max(cells) <= budget


def model(seed: int, tokenizers: tuple[Tokenizer, Tokenizer]) -> Transformer:
    torch.manual_seed(seed)
    config = load_config(
        ["model.width=16", "model.num_heads=2", "model.encoder_layers=1", "model.decoder_layers=1"]
    )
    size = tokenizers[0].vocabulary_size
    return Transformer(
        config.model, source_vocabulary=size, target_vocabulary=tokenizers[1].vocabulary_size
    ).eval()
