"""CTranslate2's model and ours, with the same weights: the same probabilities, hypotheses and limits."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import torch
from model_options import options

from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.ctranslate2 import DESCRIPTION, CTranslate2Engine
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.decoding.scoring import log_probabilities
from endeavour.errors import UserError
from endeavour.export.ctranslate2 import exported_positions, write_ctranslate2
from endeavour.model.transformer import Transformer
from endeavour.special import BOS, EOS, PAD

every_option = options(
    ("pre", "sinusoidal", "relu", "all"),
    ("pre", "sinusoidal", "gelu", "decoder"),
    ("pre", "learned", "swiglu", "none"),
    ("pre", "rotary", "relu", "none"),
    ("post", "sinusoidal", "swiglu", "decoder"),
    ("post", "learned", "silu", "all"),
    ("post", "rotary", "gelu", "all"),
)


def named(rows: list[list[int]]) -> list[list[str]]:
    return [[f"piece{number}" for number in row] for row in rows]


def exported(folder: Path, model: Transformer, quantization: str = "float32") -> Path:
    pieces = [
        [
            "<pad>",
            "<unk>",
            "<s>",
            "</s>",
            *(f"piece{number}" for number in range(4, embedding.num_embeddings)),
        ]
        for embedding in model.embeddings
    ]
    write_ctranslate2(folder, model, (pieces[0], pieces[1]), quantization=quantization)
    (folder / DESCRIPTION).write_text(json.dumps({"positions": exported_positions(model.config)}), "utf-8")
    return folder


@every_option
def test_every_token_has_the_same_probability(
    changes: dict[str, str],
    random_model: Any,
    sources: list[list[int]],
    targets: list[list[int]],
    tmp_path: Path,
) -> None:
    model = random_model(**changes)
    translator = ctranslate2.Translator(str(exported(tmp_path, model)), intra_threads=1)
    scored = translator.score_batch(named([source[:-1] for source in sources]), named(targets))
    for source, target, result in zip(sources, targets, scored, strict=True):
        with torch.no_grad():
            expected = model(torch.tensor([source]), torch.tensor([[BOS, *target]])).log_softmax(-1)[0]
        expected = expected.gather(1, torch.tensor([*target, EOS])[:, None])[:, 0]
        torch.testing.assert_close(torch.tensor(result.log_probs), expected, atol=2e-5, rtol=0)


@every_option
def test_greedy_hypotheses_are_ours(
    changes: dict[str, str],
    random_model: Any,
    sources: list[list[int]],
    decoding: DecodingConfig,
    tmp_path: Path,
) -> None:
    model = random_model(**changes)
    settings = replace(decoding, beam_size=1, num_hypotheses=1, length_penalty=0.0)
    ours = PyTorchEngine(model, settings).search(sources)
    theirs = CTranslate2Engine(exported(tmp_path, model), settings).search(sources)
    assert [row[0].ids for row in theirs] == [row[0].ids for row in ours]


def test_beam_hypotheses_have_our_scores(
    model: Transformer, sources: list[list[int]], decoding: DecodingConfig, tmp_path: Path
) -> None:
    engine = CTranslate2Engine(exported(tmp_path, model), decoding, workers=2)
    found = engine.search(sources)
    ended = 0
    for source, hypotheses in zip(sources, found, strict=True):
        limit = int(1.5 * (len(source) - 1) + 6)
        assert 1 <= len(hypotheses) <= 3
        assert len({tuple(hypothesis.ids) for hypothesis in hypotheses}) == len(hypotheses)
        whole = [hypothesis for hypothesis in hypotheses if len(hypothesis.ids) < limit]
        assert [hypothesis.score for hypothesis in whole] == sorted(
            (hypothesis.score for hypothesis in whole), reverse=True
        )
        ids = [hypothesis.ids for hypothesis in whole]
        judged = log_probabilities(model, [source] * len(whole), ids, excluded=(PAD, BOS))
        for hypothesis, value in zip(whole, judged, strict=True):
            assert hypothesis.log_probability == pytest.approx(value, abs=1e-4)
            penalty = ((5 + len(hypothesis.ids) + 1) / 6) ** decoding.length_penalty
            assert hypothesis.score == pytest.approx(value / penalty, abs=1e-4)
        ended += len(whole)
    assert ended >= len(sources) // 2


def test_a_sentence_does_not_depend_on_its_company_or_order(
    model: Transformer, sources: list[list[int]], decoding: DecodingConfig, tmp_path: Path
) -> None:
    engine = CTranslate2Engine(exported(tmp_path, model), decoding)
    together = [row[0].ids for row in engine.search(sources)]
    assert [row[0].ids for row in engine.search(sources[::-1])] == together[::-1]
    assert [engine.search([source])[0][0].ids for source in sources] == together
    assert engine.search([]) == []


def test_an_engine_leaves_torch_its_threads_and_makes_the_shortest_translation_it_is_told_to(
    model: Transformer, sources: list[list[int]], decoding: DecodingConfig, tmp_path: Path
) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        settings = replace(decoding, max_length_ratio=0.0, max_length_offset=20)
        engine = CTranslate2Engine(exported(tmp_path, model, "int8"), settings, workers=2, shortest=9)
        assert torch.get_num_threads() == 3
        assert all(len(row[0].ids) + 1 >= 9 for row in engine.search(sources))
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_no_hypothesis_passes_its_limit(
    model: Transformer, sources: list[list[int]], decoding: DecodingConfig, tmp_path: Path
) -> None:
    with torch.no_grad():
        model.output_weight[EOS] = (
            -100 * model.decoder_norm.bias / model.decoder_norm.bias.norm()
        )  # it seldom ends
    settings = replace(decoding, max_length_ratio=1.0, max_length_offset=2)
    found = CTranslate2Engine(exported(tmp_path, model), settings).search(sources)
    lengths = [max(len(hypothesis.ids) for hypothesis in row) for row in found]
    assert all(length <= len(source) - 1 + 2 for length, source in zip(lengths, sources, strict=True))


def test_a_sentence_beyond_the_positions_is_refused(
    random_model: Any, decoding: DecodingConfig, tmp_path: Path
) -> None:
    engine = CTranslate2Engine(exported(tmp_path, random_model(positions="learned")), decoding)
    assert len(engine.search([[5] * 63 + [EOS]])[0][0].ids) <= 63
    with pytest.raises(UserError, match=r"65 tokens .* 64 positions"):
        engine.search([[5] * 64 + [EOS]])


@pytest.mark.parametrize(
    ("quantization", "smaller", "kind"),
    [
        ("int8", 0.8, "int8"),
        ("int8_float16", 0.6, "int8"),
        ("int8_bfloat16", 0.6, "int8"),
        ("float16", 0.55, "float"),
        ("bfloat16", 0.55, "float"),
    ],
)
def test_other_types_are_smaller_and_nearly_the_same(
    quantization: str,
    smaller: float,
    kind: str,
    random_model: Any,
    sources: list[list[int]],
    targets: list[list[int]],
    decoding: DecodingConfig,
    tmp_path: Path,
) -> None:
    model = random_model(width=64, feed_forward=128)
    sizes: list[int] = []
    scores: list[torch.Tensor] = []
    for chosen in ("float32", quantization):
        folder = tmp_path / chosen
        folder.mkdir()
        engine = CTranslate2Engine(exported(folder, model, chosen), decoding)
        assert engine.compute_type.startswith("int8" if chosen.startswith("int8") else ("float", "bfloat"))
        lengths = torch.tensor([len(target) + 1 for target in targets])
        scores.append(torch.tensor(engine.score(sources, targets)) / lengths)
        sizes.append((folder / "model.bin").stat().st_size)
    assert sizes[1] < smaller * sizes[0]
    assert not torch.equal(scores[0], scores[1])
    assert torch.stack(scores).corrcoef()[0, 1] > (0.9 if kind == "int8" else 0.999)


def test_a_gpu_whose_libraries_are_missing_is_said_at_once(
    random_model: Any, decoding: DecodingConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lacking:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        def translate_batch(self, *_: object, **__: object) -> None:
            raise RuntimeError("Library libcublas.so.12 is not found or cannot be loaded")

    folder = exported(tmp_path, random_model())
    monkeypatch.setattr(ctranslate2, "Translator", Lacking)
    with pytest.raises(UserError, match=r"does not run on this GPU \(Library libcublas\.so\.12 is not found"):
        CTranslate2Engine(folder, decoding, device="cuda")
