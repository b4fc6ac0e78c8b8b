"""Validation: what it shows of a model besides its scores."""

import math
from pathlib import Path

import pytest
import torch
from endeavour.stages import validation
from endeavour.stages.prepare import prepare
from endeavour.stages.validation import WATCHED, Validator
from torch.nn import functional

from commands import write_splits
from endeavour.config import load_config
from endeavour.data.batching import collate
from endeavour.data.dataset import ParallelDataset
from endeavour.data.tokenizer import Tokenizers
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.decoding.translator import Translator
from endeavour.model.transformer import Transformer


def test_the_attention_of_one_pair_is_watched_with_its_reference_whatever_the_model(
    parallel_files: list[str], folders: list[str]
) -> None:
    config = load_config([*parallel_files, *folders])
    data = prepare(config)
    tokenizers = data.load_tokenizers()
    validator = Validator(data, tokenizers, config, torch.float32)
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


def test_its_numbers_are_those_of_each_sentence_alone(
    parallel_files: list[str], folders: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[tuple[list[str], list[str]]] = []

    def bleu(hypotheses: list[str], references: list[str]) -> float:
        scored.append((hypotheses, references))
        return 12.5  # of an untrained model it is 0, which a defect could give too

    monkeypatch.setattr(validation, "corpus_bleu", bleu)
    settings = [
        f"training.{key}" for key in ("validation_sentences=8", "label_smoothing=0.2", "precision=fp32")
    ]
    config = load_config([*parallel_files, *folders, *settings])
    data = prepare(config)
    tokenizers = data.load_tokenizers()
    one = model(1, tokenizers)
    found = Validator(data, tokenizers, config, torch.float32)(one)
    pairs = ParallelDataset.open(data.folder, "validation")
    sums, tokens = torch.zeros(2), 0
    for row in range(len(pairs.source)):
        batch = collate(pairs, [row])
        logits, wanted = one(batch.source, batch.target_in)[0], batch.target_out[0]
        for index, smoothing in enumerate((0.2, 0.0)):
            loss = functional.cross_entropy(logits, wanted, reduction="sum", label_smoothing=smoothing)
            sums[index] += loss.detach()
        tokens += len(wanted)
    assert found.loss == pytest.approx(float(sums[0]) / tokens, rel=1e-4)
    assert found.perplexity == pytest.approx(math.exp(float(sums[1]) / tokens), rel=1e-4)
    assert found.bleu == 12.5
    ((hypotheses, references),) = scored
    assert references == data.lines("validation", "target")[:8]
    translator = Translator(PyTorchEngine(one, config.validation_decoding), tokenizers)
    assert hypotheses == list(translator.translate(data.lines("validation", "source")[:8]))


def test_where_every_sentence_is_short_none_is_watched(tmp_path: Path, folders: list[str]) -> None:
    splits = {"train": [(f"a dog {n}", f"ein Hund {n}") for n in range(200)], "validation": [("dog", "Hund")]}
    vocabulary = ["tokenizer=bpe2k", "tokenizer.vocabulary_size=290"]
    config = load_config([*write_splits(tmp_path, splits), *vocabulary, *folders])
    data = prepare(config)
    tokenizers = data.load_tokenizers()
    assert Validator(data, tokenizers, config, torch.float32)(model(1, tokenizers)).attention is None


def test_a_long_source_of_a_short_target_makes_no_batch_larger(tmp_path: Path, folders: list[str]) -> None:
    pairs = [(f"a dog {n}", f"ein Hund {n}") for n in range(200)]
    others = [(f"the man {n}", f"der Mann {n}") for n in range(200)]
    splits = {"train": pairs, "validation": [*others, ("a dog " * 400, "Hund")]}
    vocabulary = ["tokenizer=bpe2k", "tokenizer.vocabulary_size=290"]
    config = load_config([*write_splits(tmp_path, splits), *vocabulary, *folders])
    data = prepare(config)
    longest = int(ParallelDataset.open(data.folder, "validation").source.lengths.max())
    budget = max(config.training.tokens_per_batch, longest)
    validator = Validator(data, data.load_tokenizers(), config, torch.float32)
    cells = [max(batch.source.numel(), batch.target_in.numel()) for batch in validator._batches]
    assert sum(batch.source.shape[0] for batch in validator._batches) == 201
    assert longest <= max(cells) <= budget


def model(seed: int, tokenizers: Tokenizers) -> Transformer:
    torch.manual_seed(seed)
    config = load_config(
        ["model.width=16", "model.num_heads=2", "model.encoder_layers=1", "model.decoder_layers=1"]
    )
    size = tokenizers[0].vocabulary_size
    return Transformer(
        config.model, source_vocabulary=size, target_vocabulary=tokenizers[1].vocabulary_size
    ).eval()
