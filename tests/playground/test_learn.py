"""The numbers of the Learn view are the model's: its attention, its states, its logits, for every option."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from endeavour.errors import UserError
from endeavour.model.config import ModelConfig
from endeavour.model.transformer import Transformer
from endeavour.playground.learn import LONGEST, PADDING, learn
from endeavour.special import BOS, EOS
from random_models import drawn, tiny

VOCABULARY = 23
SOURCE = [5, 9, 4, 17, 6, 5, EOS]
TARGET = [8, 21, 7, 12]
TARGET_IN = [BOS, *TARGET]
KINDS = ["encoder", "decoder", "cross"]
WIDTH, HEADS, HEAD, LAYER = 24, 3, 2, 1
# The numbers are rounded to four decimals, and PAD after the source changes the order of a few sums.
CLOSE = {"atol": 1e-4, "rtol": 1e-5}


def _config(**changes: object) -> ModelConfig:
    small = {"width": WIDTH, "num_heads": HEADS, "encoder_layers": 2, "decoder_layers": 3, "feed_forward": 40}
    return replace(tiny(), **{**small, "max_length": 12, **changes})


def _model(config: ModelConfig, vocabularies: tuple[int, int] = (VOCABULARY, VOCABULARY)) -> Transformer:
    return drawn(config, vocabularies, alpha=0.2)


def _pieces(ids: Sequence[int]) -> list[str]:
    return [f"piece {number}" for number in ids]


def _learn(model: Transformer, kind: Any = "encoder", layer: int = LAYER, **changes: Any) -> dict[str, Any]:
    arguments = {"source_ids": SOURCE, "target_ids": TARGET, "head": HEAD, **changes}
    return learn(model, kind=kind, layer=layer, pieces=(_pieces, _pieces), **arguments)


def _same(numbers: Any, expected: Tensor) -> None:
    torch.testing.assert_close(torch.tensor(numbers, dtype=torch.float32), expected.detach(), **CLOSE)


VARIANTS = [
    {"norm": norm, "positions": positions, "activation": activation, "tie": tie}
    for (norm, positions), (activation, tie) in product(
        product(["pre", "post"], ["sinusoidal", "learned", "rotary"]),
        zip(["relu", "gelu", "swiglu"], ["none", "decoder", "all"], strict=True),
    )
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: "-".join(variant.values()))
def test_numbers_are_those_of_the_model(variant: dict[str, str]) -> None:
    model = _model(_config(**variant))
    ids = torch.tensor([SOURCE]), torch.tensor([TARGET_IN])
    maps = model.attention_maps(*ids)
    logits = model(*ids)[0]
    memory = model.encode(ids[0])
    states = model.decode(ids[1], memory)[0]
    for kind in KINDS:
        numbers = _learn(model, kind)
        expected = getattr(maps, kind)[LAYER][0]
        keys = expected.shape[-1]
        for head, weights in enumerate(numbers["attention"]["weights"]):
            _same([row[:keys] for row in weights], expected[head])
            assert not any(any(row[keys:]) for row in weights), "PAD got weight"
        cross = maps.cross[numbers["cross"]["layer"]][0]
        _same(numbers["cross"]["weights"], cross)
        _same(numbers["final"], states)
        _same(numbers["stack"]["decoder"], torch.stack(_stream_norms(model, *ids)))
        for row, prediction in zip(logits, numbers["predictions"], strict=True):
            _same([entry["logit"] for entry in prediction["top"]], row.topk(10).values)
            _same([entry["probability"] for entry in prediction["top"]], row.softmax(-1).topk(10).values)
            assert [entry["id"] for entry in prediction["top"]] == row.topk(10).indices.tolist()
            assert sum(prediction["histogram"]) == VOCABULARY


@torch.no_grad()
def _stream_norms(model: Transformer, source: Tensor, target_in: Tensor) -> list[Tensor]:
    """Lengths of the decoder's states before and after each layer, as hooks see them in an ordinary pass."""
    norms: list[Tensor] = []
    hooks = [
        model.decoder[0].register_forward_pre_hook(lambda _, given: norms.append(given[0][0].norm(dim=-1))),
        *(
            layer.register_forward_hook(lambda _, __, states: norms.append(states[0].norm(dim=-1)))
            for layer in model.decoder
        ),
    ]
    model(source, target_in)
    for hook in hooks:
        hook.remove()
    return norms


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_follow_from_each_other(norm: str, kind: str) -> None:
    """What a reader can check by hand with the numbers on the page."""
    config = _config(norm=norm)
    numbers = _learn(_model(config), kind)
    embedding = numbers["embedding"]["source"]
    rows, positions, states = (torch.tensor(embedding[name]) for name in ("rows", "positions", "states"))
    torch.testing.assert_close(rows * WIDTH**0.5 + positions, states, atol=1e-3, rtol=1e-4)

    part = numbers["attention"]
    query, key, value, scores = (torch.tensor(part[name]) for name in ("query", "key", "value", "scores"))
    torch.testing.assert_close(query @ key.T, scores, atol=1e-2, rtol=1e-3)
    visible = torch.tensor(part["visible"]).bool()
    scaled = (scores / (WIDTH // HEADS) ** 0.5).masked_fill(~visible, -torch.inf)
    weights = torch.tensor(part["weights"])[HEAD]
    torch.testing.assert_close(scaled.softmax(dim=-1), weights, atol=1e-3, rtol=1e-3)
    mixed = torch.tensor(part["mixed"])
    torch.testing.assert_close(weights @ value, mixed, atol=1e-2, rtol=1e-3)
    joined = torch.tensor(part["joined"])
    width = WIDTH // HEADS
    torch.testing.assert_close(joined[:, HEAD * width : (HEAD + 1) * width], mixed, atol=1e-4, rtol=0)

    stream, result, after = (torch.tensor(part[name]) for name in ("stream", "result", "after"))
    mean, deviation = (torch.tensor(part["norm"][name])[:, None] for name in ("mean", "deviation"))
    assert part["norm"]["first"] == (norm == "pre")
    if norm == "pre":
        torch.testing.assert_close(stream + result, after, atol=1e-3, rtol=0)
    normed_from = stream if norm == "pre" else stream + result
    torch.testing.assert_close(normed_from.mean(dim=1, keepdim=True), mean, atol=1e-3, rtol=0)
    torch.testing.assert_close(
        normed_from.std(dim=1, keepdim=True, correction=0), deviation, atol=1e-3, rtol=0
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_layer_leads_to_the_next(kind: str, norm: str) -> None:
    model = _model(_config(norm=norm))
    first, second = _learn(model, kind, 0), _learn(model, kind, 1)
    side = "encoder" if kind == "encoder" else "decoder"
    stream, result = (torch.tensor(first["feed_forward"][name]) for name in ("stream", "result"))
    after = stream + result
    if norm == "post":
        after = getattr(model, side)[0].feed_forward_residual.norm(after)
    if kind != "cross":
        _same(second["attention"]["stream"], after)
    _same(first["stack"][side][1], after.norm(dim=-1))


def test_masks_hide_padding_and_the_future() -> None:
    model = _model(_config())
    visible = torch.tensor(_learn(model, "encoder")["attention"]["visible"])
    assert visible.shape == (len(SOURCE), len(SOURCE) + PADDING)
    assert visible[:, : len(SOURCE)].all()
    assert not visible[:, len(SOURCE) :].any()
    visible = torch.tensor(_learn(model, "decoder")["attention"]["visible"])
    assert torch.equal(visible, torch.ones(len(TARGET_IN), len(TARGET_IN), dtype=visible.dtype).tril())
    assert torch.tensor(_learn(model, "cross")["attention"]["visible"]).shape == (
        len(TARGET_IN),
        len(SOURCE) + PADDING,
    )


def test_rotation_turns_queries_without_changing_their_length() -> None:
    numbers = _learn(_model(_config(positions="rotary")), "decoder")
    assert numbers["embedding"]["source"]["positions"] is None
    query = torch.tensor(numbers["attention"]["unturned"])
    turned = torch.tensor(numbers["attention"]["query"])
    torch.testing.assert_close(turned.norm(dim=-1), query.norm(dim=-1), **CLOSE)
    _same(numbers["attention"]["query"][0], query[0])  # position 0 is not turned
    cosine, sine = (torch.tensor(numbers["rotation"][name]) for name in ("cosine", "sine"))
    torch.testing.assert_close(cosine**2 + sine**2, torch.ones_like(sine), atol=1e-3, rtol=0)
    first, second = query.chunk(2, dim=-1)
    cosine, sine = cosine[: query.shape[-2]], sine[: query.shape[-2]]
    expected = torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)
    torch.testing.assert_close(turned, expected, atol=1e-3, rtol=0)
    assert _learn(_model(_config(positions="rotary")), "cross")["attention"]["unturned"] is None
    assert _learn(_model(_config()))["rotation"] is None


def test_a_gated_block_shows_gate_and_value() -> None:
    block = _learn(_model(_config(activation="swiglu")))["feed_forward"]
    gate, value = (torch.tensor(half) for half in block["inner"])
    active = torch.tensor(block["active"])
    torch.testing.assert_close(torch.nn.functional.silu(gate) * value, active, atol=1e-3, rtol=1e-3)
    assert len(_learn(_model(_config()))["feed_forward"]["inner"]) == 1


def test_the_last_layer_predicts_what_the_model_predicts() -> None:
    numbers = _learn(_model(_config()))
    assert len(numbers["stack"]["top"]) == 4
    for best, prediction in zip(numbers["stack"]["top"][-1], numbers["predictions"], strict=True):
        expected = prediction["top"][:3]
        assert [entry["piece"] for entry in best] == [entry["piece"] for entry in expected]
        for ours, theirs in zip(best, expected, strict=True):
            assert ours["probability"] == pytest.approx(theirs["probability"], rel=1e-3)


def test_expected_pieces_have_their_rank() -> None:
    model = _model(_config())
    logits = model(torch.tensor([SOURCE]), torch.tensor([TARGET_IN]))[0]
    predictions = _learn(model)["predictions"]
    for token, row, prediction in zip([*TARGET, EOS], logits, predictions, strict=True):
        expected = prediction["expected"]
        assert expected["id"] == token
        assert expected["piece"] == f"piece {token}"
        order = row.argsort(descending=True).tolist()
        assert expected["rank"] == order.index(token) + 1
        assert [entry["id"] for entry in prediction["top"]] == order[:10]


def test_temperatures_flatten_the_probabilities() -> None:
    """A logit and the sums are all that is needed for the probability at any of the temperatures."""
    model = _model(_config())
    logits = model(torch.tensor([SOURCE]), torch.tensor([TARGET_IN]))[0]
    for row, prediction in zip(logits, _learn(model)["predictions"], strict=True):
        best = prediction["top"][0]
        for temperature, log_sum in prediction["log_sums"]:
            expected = (row / temperature).softmax(-1).max().item()
            assert math.exp(best["logit"] / temperature - log_sum) == pytest.approx(expected, rel=1e-3)


def test_neighbours_are_the_rows_that_point_the_same_way() -> None:
    model = _model(_config(tie="none"), (VOCABULARY, 30))
    embedding = model.source_embedding.weight
    with torch.no_grad():
        embedding[11] = 3 * embedding[9]
    found = _learn(model)["embedding"]
    assert found["source"]["neighbours"][SOURCE.index(9)][0] == {"piece": "piece 11", "similarity": 1.0}
    for side, ids in (("source", SOURCE), ("target", TARGET_IN)):
        for token, neighbours in zip(ids, found[side]["neighbours"], strict=True):
            assert f"piece {token}" not in [one["piece"] for one in neighbours]


def test_two_vocabularies_and_learned_positions_to_the_last() -> None:
    """The source fills all positions, so that no PAD has room after it."""
    model = _model(_config(tie="none", positions="learned", max_length=len(SOURCE)), (VOCABULARY, 30))
    numbers = _learn(model, "cross")
    assert len(numbers["attention"]["key"]) == len(SOURCE)
    assert numbers["model"]["target_vocabulary"] == 30


def test_an_empty_translation_still_has_its_first_prediction() -> None:
    numbers = _learn(_model(_config()), "decoder", target_ids=[])
    assert [piece["id"] for piece in numbers["tokens"]["target_out"]] == [EOS]
    assert len(numbers["predictions"]) == 1


@pytest.mark.parametrize(
    ("kind", "layer", "head"), [("encoder", 2, 0), ("cross", 3, 0), ("decoder", -1, 0), ("encoder", 0, HEADS)]
)
def test_what_is_not_there_is_refused(kind: str, layer: int, head: int) -> None:
    with pytest.raises(UserError, match=f"layer={layer}|head={head}"):
        _learn(_model(_config()), kind, layer, head=head)


@pytest.mark.parametrize("name", ["source_ids", "target_ids"])
def test_long_sentences_are_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"{LONGEST}"):
        _learn(_model(_config(positions="sinusoidal")), **{name: [5] * (LONGEST + 1)})


def test_of_a_model_that_diverged_it_is_said() -> None:
    model = _model(_config())
    for parameter in model.parameters():
        torch.nn.init.constant_(parameter, float("nan"))
    with pytest.raises(UserError, match="diverged"):
        _learn(model)


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_stays_small(kind: str) -> None:
    """The widest model and the longest sentence: vectors are cut, and no number is missing from the matrices."""
    model = _model(_config(width=512, num_heads=8, feed_forward=2048))
    ids = {"source_ids": [*[5] * (LONGEST - 1), EOS], "target_ids": [6] * (LONGEST - 1)}
    numbers = _learn(model, kind, **ids)
    code = numbers.pop("code")
    assert len(json.dumps(numbers, separators=(",", ":"), allow_nan=False)) < 2**20
    assert len(json.dumps(code)) < 50_000
    assert 16 <= numbers["components"] < 512
    assert len(numbers["final"][0]) == numbers["components"]
    assert len(numbers["attention"]["weights"][0]) == LONGEST


def test_nothing_is_left_behind_in_the_model() -> None:
    model = _model(_config(activation="relu"))
    ids = torch.tensor([SOURCE]), torch.tensor([TARGET_IN])
    before = model(*ids)
    for kind in KINDS:
        _learn(model, kind)
    assert torch.equal(model(*ids), before)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_every_step_names_its_code(kind: str, positions: str) -> None:
    code = _learn(_model(_config(positions=positions)), kind)["code"]
    assert len(code) >= 15
    for functions in code.values():
        for function in functions:
            assert function["file"].startswith("src/endeavour/")
            assert function["line"] > 1
            name = function["function"].rpartition(".")[2]
            assert f"def {name}(" in function["source"]
