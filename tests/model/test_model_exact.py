"""What the model asks of its device, how its caches grow, in which precision it computes and what it draws."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from endeavour.model import attention, decoder_step, layers
from endeavour.model.attention import HIDDEN, attend, causal_mask, padding_mask
from endeavour.model.config import ModelConfig
from endeavour.model.layers import Dropout, FeedForward
from endeavour.model.positions import (
    FIRST_TABLE,
    LearnedPositions,
    RotaryPositions,
    Rotation,
    SinusoidalPositions,
    rotate,
)
from endeavour.model.transformer import Transformer
from endeavour.native import functions
from endeavour.special import BOS, EOS, PAD
from kernels import needs_kernels
from random_models import drawn, tiny

VOCABULARY = 13


def config(**changes: object) -> ModelConfig:
    small = {"width": 16, "encoder_layers": 2, "decoder_layers": 3, "feed_forward": 24, "max_length": 30}
    return replace(tiny(), **{**small, **changes})


def model(**changes: object) -> Transformer:
    return drawn(config(**changes), (VOCABULARY, VOCABULARY), alpha=0.1)


SOURCE = torch.tensor([[5, 6, 7, EOS], [8, EOS, PAD, PAD]])
TARGET = torch.tensor([[BOS, 6, 7, 9, 5], [BOS, 8, PAD, PAD, PAD]])


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("training", [True, False])
def test_another_device_is_asked_nothing(positions: str, training: bool) -> None:
    """A tensor of the device `meta` has no values: whoever looked at one would fail, where a GPU would wait."""
    with torch.device("meta"):
        made = Transformer(
            config(positions=positions), source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY
        )
    made.train(training)
    source, target = SOURCE.to("meta"), TARGET.to("meta")
    logits = made(source, target)
    assert logits.shape == (2, 5, VOCABULARY)
    assert logits.device.type == "meta"
    if training:
        logits.sum().backward()
        assert all(parameter.grad is not None for parameter in made.parameters())
    with torch.no_grad():
        maps = made.attention_maps(source, target)
        assert maps.encoder[0].device.type == "meta"
        cache = made.start(made.encode(source), beam_size=3)
        for _ in range(2):
            states = made.step(target[:, :3], cache)
            assert made.project(states).shape == (2, 3, VOCABULARY)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_everything_is_made_on_the_models_device_whatever_the_default_is(positions: str) -> None:
    made = model(positions=positions, dropout=0.1)
    expected = made(SOURCE, TARGET)
    with torch.device("meta"):
        assert torch.equal(made(SOURCE, TARGET), expected)
        assert made.attention_maps(SOURCE, TARGET).cross[0].device.type == "cpu"


@torch.no_grad()
def test_a_cache_has_room_for_a_few_steps_at_a_time() -> None:
    made, beam = model(), 3
    cache = made.start(made.encode(SOURCE), beam_size=beam)
    assert decoder_step.STEPS_AT_A_TIME == 8
    for steps in range(1, 26):
        made.step(torch.full((2, beam), 5), cache)
        assert cache.length == steps
        slots = -(-steps // 8) * 8 * beam
        assert cache.mask.shape == (2, 1, beam, slots)
        assert cache.mask.eq(0).sum(dim=-1).eq(steps).all(), "each hypothesis sees one slot of each step"
        for layer in cache.layers:
            assert layer.own.stored is not None
            assert layer.own.stored.shape == (2, 2, 4, slots, 4)
            assert layer.own.used == steps * beam
            assert not layer.own.stored[:, :, :, layer.own.used :].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@torch.no_grad()
def test_a_caches_mask_shows_each_hypothesis_its_own_slot(dtype: torch.dtype) -> None:
    made = model().to(dtype)
    cache = made.start(made.encode(SOURCE), beam_size=2)
    made.step(torch.full((2, 2), 5), cache)
    assert cache.mask.shape == (2, 1, 2, 16)
    assert cache.mask.dtype == dtype
    assert (cache.mask[1, 0, :, :3] == 0).tolist() == [[True, False, False], [False, True, False]]
    assert set(cache.mask.flatten().tolist()) == {0.0, HIDDEN}


@torch.no_grad()
def test_a_cache_keeps_the_sentences_that_are_selected_in_their_order() -> None:
    made = model()
    cache, fresh = (made.start(made.encode(SOURCE), beam_size=2) for _ in range(2))
    kept = torch.tensor([1, 0, 1])
    fresh.select(kept)  # before the first step
    made.step(torch.tensor([[5, 6], [7, 8]]), cache)
    made.step(torch.tensor([[7, 8], [5, 6], [7, 8]]), fresh)
    cache.select(kept)
    one, other = (made.step(torch.full((3, 2), 9), each) for each in (cache, fresh))
    torch.testing.assert_close(one, other)
    alone = made.start(made.encode(SOURCE[kept]), beam_size=2)
    made.step(torch.tensor([[7, 8], [5, 6], [7, 8]]), alone)
    torch.testing.assert_close(made.step(torch.full((3, 2), 9), alone), one)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_masks_are_of_the_type_asked_for_and_hide_without_overflowing(dtype: torch.dtype) -> None:
    for mask in (padding_mask(SOURCE, dtype), causal_mask(4, dtype, torch.device("cpu"))):
        assert mask.dtype == dtype
        assert set(mask.flatten().tolist()) == {0.0, HIDDEN}
        assert mask.half().isfinite().all(), "autocast may convert it"


def qkv(dtype: torch.dtype, batch: int = 4) -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(batch, 2, 6, 8, dtype=dtype) * 3 for _ in range(3)]


@pytest.mark.parametrize("causal", [True, False])
def test_in_bf16_the_softmax_is_of_fp32(causal: bool) -> None:
    query, key, value = qkv(torch.bfloat16)
    record: list[Tensor] = []
    mask = None if causal else padding_mask(torch.tensor([[5, 5, 5, 5, PAD, PAD]] * 4), torch.bfloat16)
    found = attend(query, key, value, mask=mask, causal=causal, dropout=Dropout(0.0), record=record)
    scores = ((query * 8**-0.5) @ key.transpose(-2, -1)).float()
    hidden = causal_mask(6, torch.float32, query.device) if causal else mask
    assert hidden is not None
    weights = (scores + hidden).softmax(dim=-1).bfloat16()
    assert torch.equal(record[0], weights)
    assert torch.equal(found, weights @ value)


@pytest.mark.parametrize(
    ("sentences", "queries", "gradients", "plain"),
    [
        (4, 6, False, True),
        (3, 6, False, False),
        (1, 6, True, True),
        (4, 7, True, False),
        (4, 7, False, False),
    ],
)
def test_short_sentences_are_multiplied_plainly_in_batches_and_in_training(
    sentences: int, queries: int, gradients: bool, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "PLAIN_SCORES", 36)
    asked: list[bool] = []
    fused = torch.nn.functional.scaled_dot_product_attention

    def noting(*tensors: Tensor, **options: object) -> Tensor:
        asked.append(True)
        return fused(*tensors, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", noting)
    torch.manual_seed(0)
    query = torch.randn(sentences, 2, queries, 8, requires_grad=gradients)
    key = torch.randn(sentences, 2, 6, 8)
    attend(query, key, key, mask=None, causal=False, dropout=Dropout(0.0), record=None)
    assert bool(asked) != plain


def test_recorded_weights_are_those_before_dropout_and_carry_no_gradient() -> None:
    query, key, value = (tensor.requires_grad_() for tensor in qkv(torch.float32))
    record: list[Tensor] = []
    attend(query, key, value, mask=None, causal=False, dropout=Dropout(0.5), record=record)
    assert not record[0].requires_grad
    torch.testing.assert_close(record[0].sum(dim=-1), torch.ones(4, 2, 6))


@pytest.mark.parametrize("count", [1, 7, 8, 9, 800])
@pytest.mark.parametrize("by", [pytest.param("kernel", marks=needs_kernels), "torch"])
def test_dropout_draws_one_number_for_eight_elements_or_all(
    count: int, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more, so that what is drawn next is the same on every machine that has a compiler, and on every other."""
    if by == "torch":
        monkeypatch.setattr(functions, "takes", lambda _: False)
    torch.manual_seed(1)
    Dropout(0.3)(torch.ones(count))
    after = torch.get_rng_state()
    torch.manual_seed(1)
    torch.empty(1 if by == "kernel" else -(-count // 8), dtype=torch.int64).random_(-(2**63), None)
    assert torch.equal(torch.get_rng_state(), after)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_keeps_the_type_and_scales_the_survivors(dtype: torch.dtype) -> None:
    dropped = Dropout(0.25)(torch.ones(4, 100, dtype=dtype))
    assert dropped.dtype == dtype
    assert set(dropped.unique().tolist()) == {0.0, torch.tensor(4 / 3, dtype=dtype).item()}
    almost = Dropout(0.9999)
    assert almost.threshold == 255
    torch.manual_seed(0)
    assert 0 < (almost(torch.ones(100_000)) != 0).sum() < 1000


def test_a_probability_too_small_for_bytes_is_torchs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def noting(states: Tensor, probability: float) -> Tensor:
        asked.append(probability)
        return states

    monkeypatch.setattr(layers.functional, "dropout", noting)
    for probability in (0.001, 0.5):
        Dropout(probability)(torch.ones(3))
    assert asked == [0.001]


@pytest.mark.parametrize("gradients", [True, False])
def test_relu_works_in_place_where_no_gradient_needs_what_was_there(gradients: bool) -> None:
    states = torch.tensor([-1.0, 2.0])
    given = states.clone().requires_grad_(gradients) * 1
    found = layers.ACTIVATIONS["relu"](given)
    assert found.tolist() == [0.0, 2.0]
    assert (found.data_ptr() == given.data_ptr()) != gradients


@pytest.mark.parametrize("activation", ["relu", "gelu", "swiglu"])
def test_a_fresh_feed_forward_is_xaviers(activation: str) -> None:
    torch.manual_seed(0)
    block = FeedForward(width=200, feed_forward=300, activation=activation, dropout=0.0)
    nn.init.ones_(block.inner.bias)
    nn.init.ones_(block.outer.bias)
    block.reset_parameters()
    bound = (6 / 500) ** 0.5
    for weight in (*block.inner.weight.split(300), block.outer.weight):
        assert 0.99 * bound < weight.abs().max().item() <= bound
        assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.01)
    assert not block.inner.bias.any()
    assert not block.outer.bias.any()


def test_a_fresh_models_weights_are_of_the_papers_scale() -> None:
    torch.manual_seed(0)
    sizes = {"width": 64, "positions": "learned", "max_length": 300, "tie": "none"}
    made = Transformer(config(**sizes), source_vocabulary=900, target_vocabulary=800)
    assert made.output is not None
    assert made.target_embedding is not None
    for matrix in (made.source_embedding, made.target_embedding):
        assert not matrix.weight[PAD].any()
        assert matrix.weight[1:].std().item() == pytest.approx(64**-0.5, rel=0.02)
    for matrix in (made.output, made.source_positions, made.target_positions):
        assert matrix is not None
        assert matrix.weight.std().item() == pytest.approx(64**-0.5, rel=0.02)
    assert made.output.weight[PAD].any()
    xavier = (6 / 128) ** 0.5
    for layer in made.decoder:
        attentions = layer.self_attention, layer.cross_attention
        fused = [*layer.self_attention.input.weight.split(64), layer.cross_attention.query.weight]
        for weight in (*fused, *layer.cross_attention.memory.weight.split(64)):
            assert 0.97 * xavier < weight.abs().max().item() * 2**0.5 <= xavier * 1.0001
        for one in attentions:
            assert 0.97 * xavier < one.output.weight.abs().max().item() <= xavier
        linears = [part for one in attentions for part in one.modules() if isinstance(part, nn.Linear)]
        assert len(linears) == 5
        assert not any(linear.bias.any() for linear in linears)
    source = torch.randint(4, 800, (8, 16))
    assert 0.7 < made(source, source).std().item() < 1.4


@pytest.mark.parametrize("kind", [SinusoidalPositions, RotaryPositions])
def test_a_table_grows_to_twice_what_was_asked_for(kind: type[SinusoidalPositions | RotaryPositions]) -> None:
    table, length = kind(6), FIRST_TABLE
    held = {name: len(buffer) for name, buffer in table.named_buffers()}
    assert set(held.values()) == {length}
    table(0, length)
    table(length - 1, 1)
    assert {len(buffer) for buffer in table.buffers()} == {length}
    table(5, length)
    assert {len(buffer) for buffer in table.buffers()} == {2 * (length + 5)}
    table.to(torch.bfloat16)
    table(0, 3 * (length + 5))
    assert {buffer.dtype for buffer in table.buffers()} == {torch.bfloat16}, "what grows stays of its type"


def test_angles_are_rounded_once() -> None:
    """Position × frequency in double precision, then float32: so they are the same on every machine."""
    places = range(FIRST_TABLE)
    angles = [[place / 10_000 ** (2 * pair / 6) for pair in range(3)] for place in places]
    rounded = torch.tensor(angles, dtype=torch.float64).float()
    sinusoidal, rotary = SinusoidalPositions(6)(0, FIRST_TABLE), RotaryPositions(6)(0, FIRST_TABLE)
    for found in (sinusoidal[:, 0::2], -rotary.sine[:, :3], rotary.sine[:, 3:]):
        torch.testing.assert_close(found, rounded.sin(), rtol=0, atol=1e-7)
    for found in (sinusoidal[:, 1::2], *rotary.cosine.chunk(2, dim=-1)):
        torch.testing.assert_close(found, rounded.cos(), rtol=0, atol=1e-7)


def test_rotations_are_by_the_angles_of_the_paper() -> None:
    torch.manual_seed(0)
    heads = torch.randn(2, 3, 4, 6)
    turned = rotate(heads, RotaryPositions(6)(7, 4))
    for place in range(4):
        for pair in range(3):
            angle = torch.tensor((7 + place) / 10_000 ** (2 * pair / 6))
            before = torch.complex(heads[:, :, place, pair], heads[:, :, place, pair + 3])
            after = torch.complex(turned[:, :, place, pair], turned[:, :, place, pair + 3])
            torch.testing.assert_close(after, before * torch.polar(torch.ones(()), angle))
    assert rotate(heads.bfloat16(), RotaryPositions(6)(0, 4)).dtype == torch.bfloat16
    assert Rotation._fields == ("cosine", "sine")


def test_learned_positions_are_those_asked_for() -> None:
    positions = LearnedPositions(6, 9)
    torch.manual_seed(0)
    positions.reset_parameters()
    assert torch.equal(positions(2, 7), positions.weight[2:9])
    assert torch.equal(positions(8, 1), positions.weight[8:])


def test_attention_maps_are_recorded_in_this_call_alone() -> None:
    made = model()
    before = [made.attention_maps(SOURCE, TARGET) for _ in range(2)]
    assert [[len(maps) for maps in call] for call in before] == [[2, 3, 3]] * 2
    assert not any(weights.requires_grad for maps in before[0] for layers in maps for weights in layers)
    with pytest.raises(IndexError):
        made.attention_maps(SOURCE, TARGET + VOCABULARY)
    encoder = made.attention_maps(SOURCE, TARGET).encoder
    assert torch.equal(encoder[0], before[0].encoder[0])


def test_the_encoder_takes_what_it_would_have_embedded() -> None:
    made = model()
    embedded = made.embed_source(SOURCE)
    assert torch.equal(made.encode(SOURCE, embedded=embedded).states, made.encode(SOURCE).states)
    assert not torch.equal(made.encode(SOURCE, embedded=2 * embedded).states, made.encode(SOURCE).states)


def test_a_batch_without_padding_has_no_mask() -> None:
    made = model()
    assert made.encode(SOURCE[:1]).mask is None
    mask = made.encode(SOURCE).mask
    assert mask is not None
    assert mask.shape == (2, 1, 1, 4)
    assert (mask == 0).flatten().tolist() == [True] * 4 + [True, True, False, False]


def test_each_dropout_of_the_config_acts_where_it_is_named() -> None:
    none = {f"{where}dropout": 0.0 for where in ("", "attention_", "activation_", "embedding_")}
    places = {
        "dropout": 2 * 2 + 3 * 3,
        "attention_dropout": 2 + 3 * 2,
        "activation_dropout": 2 + 3,
        "embedding_dropout": 1,
    }
    for key, count in places.items():
        made = Transformer(config(**{**none, key: 0.25}), source_vocabulary=9, target_vocabulary=9)
        found = [module.probability for module in made.modules() if isinstance(module, Dropout)]
        assert sorted(found) == [0.0] * (len(found) - count) + [0.25] * count, key
    assert len(found) == sum(places.values())


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@torch.no_grad()
def test_it_matters_where_a_token_stands(positions: str) -> None:
    """One layer of attention without positions would see a bag of words: the same for those that changed places."""
    made = model(positions=positions, encoder_layers=1, decoder_layers=1)
    source, target = torch.tensor([[5, 6, 7, EOS]]), torch.tensor([[BOS, 5, 6, 7]])
    swapped = [0, 2, 1, 3]
    memory = made.encode(source)
    other = made.encode(source[:, swapped])
    assert not torch.isclose(other.states[:, 3], memory.states[:, 3], atol=1e-4).all()
    before, after = (made.decode(ids, memory)[:, 3] for ids in (target, target[:, swapped]))
    assert not torch.isclose(before, after, atol=1e-4).all()
    last: list[Tensor] = []
    for ids in (target, target[:, swapped]):
        cache = made.start(memory, beam_size=1)
        last.append([made.step(ids[:, [place]], cache) for place in range(4)][-1])
    torch.testing.assert_close(torch.cat(last), torch.stack([before, after])[:, 0][:, None])
