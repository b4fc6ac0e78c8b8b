"""Marian and Pegasus, with our weights: the same probabilities, translations, and again after another save."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from model_options import options
from transformers import AutoModelForSeq2SeqLM, MarianMTModel, PegasusForConditionalGeneration

from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.decoding.scoring import log_probabilities
from endeavour.errors import UserError
from endeavour.export.huggingface import HuggingFaceEngine, check_huggingface, write_huggingface
from endeavour.model.transformer import Transformer
from endeavour.special import BOS, EOS, PAD

every_option = options(
    ("pre", "sinusoidal", "relu", "all"),
    ("pre", "sinusoidal", "gelu", "decoder"),
    ("pre", "learned", "relu", "none"),
    ("post", "sinusoidal", "relu", "all"),
    ("post", "sinusoidal", "gelu", "decoder"),
    ("post", "sinusoidal", "silu", "none"),
)


def read(folder: Path) -> Any:
    return AutoModelForSeq2SeqLM.from_pretrained(str(folder), local_files_only=True).eval()


@every_option
def test_the_same_model_also_after_another_save(
    changes: dict[str, str],
    random_model: Any,
    sources: list[list[int]],
    targets: list[list[int]],
    decoding: DecodingConfig,
    tmp_path: Path,
) -> None:
    model = random_model(**changes)
    (tmp_path / "first").mkdir()
    write_huggingface(tmp_path / "first", model, decoding)
    theirs = read(tmp_path / "first")
    assert isinstance(theirs, MarianMTModel if changes["norm"] == "post" else PegasusForConditionalGeneration)
    theirs.save_pretrained(str(tmp_path / "second"))
    ours = log_probabilities(model, sources, targets)
    for folder in ("first", "second"):
        loaded = read(tmp_path / folder)

        def logits(source: torch.Tensor, target_in: torch.Tensor, loaded: Any = loaded) -> torch.Tensor:
            inputs = {"input_ids": source, "attention_mask": (source != PAD).long()}
            return loaded(**inputs, decoder_input_ids=target_in).logits

        assert log_probabilities(logits, sources, targets) == pytest.approx(ours, abs=1e-3)


@every_option
def test_generate_as_it_comes_is_our_greedy_search(
    changes: dict[str, str],
    random_model: Any,
    sources: list[list[int]],
    decoding: DecodingConfig,
    tmp_path: Path,
) -> None:
    """With nothing but the folder's own generation_config, in one padded batch."""
    model = random_model(**changes)
    settings = replace(
        decoding,
        beam_size=1,
        num_hypotheses=1,
        length_penalty=0.0,
        max_length_ratio=0.0,
        max_length_offset=62,
    )
    write_huggingface(tmp_path, model, settings)
    longest = max(map(len, sources))
    source = torch.tensor([row + [PAD] * (longest - len(row)) for row in sources])
    output = read(tmp_path).generate(source, attention_mask=(source != PAD).long(), max_length=64)
    ours = PyTorchEngine(model, settings).search(sources)
    for row, expected in zip(output.tolist(), ours, strict=True):
        assert row[0] == BOS
        assert row[1 : row.index(EOS)] == expected[0].ids


def test_the_engines_hypotheses_have_our_scores(
    model: Transformer, sources: list[list[int]], decoding: DecodingConfig, tmp_path: Path
) -> None:
    write_huggingface(tmp_path, model, decoding)
    ours = PyTorchEngine(model, decoding).search(sources)
    theirs = HuggingFaceEngine(tmp_path, decoding).search(sources)
    for source, hypotheses in zip(sources, theirs, strict=True):
        assert len(hypotheses) == 3
        judged = log_probabilities(model, [source] * 3, [hypothesis.ids for hypothesis in hypotheses])
        assert [hypothesis.log_probability for hypothesis in hypotheses] == pytest.approx(judged, abs=1e-3)
        assert all(len(hypothesis.ids) <= int(1.5 * (len(source) - 1) + 6) for hypothesis in hypotheses)
    # Two searches, but not so different that they would seldom agree.
    same = [mine[0].ids == their[0].ids for mine, their in zip(ours, theirs, strict=True) if mine[0].ids]
    assert len(same) > 2
    assert sum(same) >= len(same) / 2


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"activation": "swiglu"}, "model.activation=swiglu"),
        ({"positions": "rotary"}, "model.positions=rotary"),
        ({"positions": "learned", "norm": "post"}, "model.positions=learned"),
    ],
)
def test_what_it_cannot_hold_is_refused_by_name(changes: dict[str, str], key: str, random_model: Any) -> None:
    with pytest.raises(UserError, match=key) as refused:
        check_huggingface(random_model(**changes).config)
    assert "format=ctranslate2" in str(refused.value)
