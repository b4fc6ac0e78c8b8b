"""Validation: its numbers, and what it shows of a model besides."""

import math
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from commands import write_splits
from configs import run_config
from endeavour.data.batching import collate
from endeavour.data.dataset import ParallelDataset
from endeavour.data.prepared import PreparedData
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.decoding.translator import Translator
from endeavour.model.transformer import Transformer
from endeavour.pipeline import validation
from endeavour.pipeline.data import prepare
from endeavour.pipeline.validation import WATCHED, Validator
from endeavour.runs.config import RunConfig

VOCABULARY = ["tokenizer=bpe2k", "tokenizer.vocabulary_size=290"]


def prepared(*settings: str) -> tuple[RunConfig, PreparedData, Validator]:
    config = run_config([*settings, "validation_decoding.precision=fp32"])
    data = prepare(config)
    return config, data, Validator(data, config, torch.float32)


def model(seed: int, config: RunConfig, data: PreparedData) -> Transformer:
    torch.manual_seed(seed)
    source, target = (tokenizer.vocabulary_size for tokenizer in data.load_tokenizers())
    return Transformer(config.model, source_vocabulary=source, target_vocabulary=target).eval()


def test_the_attention_of_one_pair_is_watched_with_its_reference_whatever_the_model(
    parallel_files: list[str], folders: list[str]
) -> None:
    config, data, validator = prepared(*parallel_files, *folders)
    found = [validator(model(seed, config, data)).attention for seed in (1, 2)]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0][:2] == found[1][:2]
    assert found[0][2] != found[1][2]
    source, target, weights = found[0]
    assert len(source) in WATCHED
    assert len(target) in WATCHED
    assert (source[-1], target[-1]) == ("</s>", "</s>")
    texts = tuple("".join(pieces[:-1]).replace("\u2581", " ").strip() for pieces in (source, target))
    assert texts in zip(data.lines("validation", "source"), data.lines("validation", "target"), strict=True)
    assert [len(row) for row in weights] == [len(source)] * len(target)
    assert all(abs(sum(row) - 1) < 0.01 for row in weights)


def test_its_numbers_are_those_of_each_sentence_alone(
    parallel_files: list[str], folders: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[tuple[list[str], list[str]]] = []

    def bleu(hypotheses: list[str], references: list[str], *, lowercase: bool) -> float:
        assert lowercase
        scored.append((hypotheses, references))
        return 12.5  # of an untrained model it is 0, which a defect could give too

    monkeypatch.setattr(validation, "corpus_bleu", bleu)
    settings = ["training.validation_sentences=8", "training.label_smoothing=0.2", "tokenizer.lowercase=true"]
    config, data, validator = prepared(*parallel_files, *folders, *settings)
    one = model(1, config, data)
    found = validator(one)
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
    decoding = config.validation_decoding
    translator = Translator(PyTorchEngine(one, decoding), data.load_tokenizers(), decoding=decoding)
    assert hypotheses == list(translator.translate(data.lines("validation", "source")[:8]))


def test_where_every_sentence_is_short_none_is_watched(tmp_path: Path, folders: list[str]) -> None:
    splits = {"train": [(f"a dog {n}", f"ein Hund {n}") for n in range(200)], "validation": [("dog", "Hund")]}
    config, data, validator = prepared(*write_splits(tmp_path, splits), *VOCABULARY, *folders)
    assert validator(model(1, config, data)).attention is None


def test_a_long_source_of_a_short_target_makes_no_batch_larger(tmp_path: Path, folders: list[str]) -> None:
    pairs = [(f"a dog {n}", f"ein Hund {n}") for n in range(200)]
    others = [(f"the man {n}", f"der Mann {n}") for n in range(200)]
    splits = {"train": pairs, "validation": [*others, ("a dog " * 400, "Hund")]}
    config, data, validator = prepared(*write_splits(tmp_path, splits), *VOCABULARY, *folders)
    longest = int(ParallelDataset.open(data.folder, "validation").source.lengths.max())
    cells = [max(batch.source.numel(), batch.target_in.numel()) for batch in validator._batches]
    assert sum(batch.source.shape[0] for batch in validator._batches) == 201
    assert longest <= max(cells) <= max(config.training.tokens_per_batch, longest)
