"""A step by the kernel is the step by torch's operations, whatever the layer, and so is a map of few rows."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

from configs import run_config
from endeavour.model.decoder_step import DecoderCache
from endeavour.model.layers import linear
from endeavour.model.transformer import Transformer
from endeavour.native import layer_step
from endeavour.special import EOS, PAD
from kernels import needs_kernels

pytestmark = needs_kernels

TYPES = [torch.float32, torch.bfloat16]
SOURCE = torch.tensor([[5, 6, 7, 9, EOS], [8, 4, EOS, PAD, PAD], [8, 4, 5, EOS, PAD]])
STEPS = 11  # more than a cache has room for at first
VOCABULARY = 61


def model(*overrides: str) -> Transformer:
    torch.manual_seed(1)
    sizes = ("model.width=32", "model.num_heads=2", "model.feed_forward=64", "model.decoder_layers=2")
    config = run_config(["model=tiny", *sizes, *overrides]).model
    made = Transformer(config, source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY).eval()
    for name, weight in made.named_parameters():
        if name.endswith("bias") or "norm" in name:  # which are 0 and 1
            nn.init.normal_(weight, mean=float(name.endswith("weight")), std=0.3)
    return made


@torch.no_grad()
def search(made: Transformer, beam: int, *, kernel: bool = True, source: Tensor = SOURCE) -> list[Tensor]:
    """The states of each step; beams are reordered, and a sentence is given up on the way."""
    random = torch.Generator().manual_seed(2)
    cache = made.start(made.encode(source), beam_size=beam)
    found: list[Tensor] = []
    for number in range(STEPS):
        assert [layer.kernel is not None for layer in cache.layers] == [kernel] * 2
        sentences = len(cache.mask)
        found.append(made.step(torch.randint(4, VOCABULARY, (sentences, beam), generator=random), cache))
        cache.reorder(torch.randint(beam, (sentences, beam), generator=random))
        if number == 4:
            cache.select(torch.tensor([2, 0]))
    return found


def search_by_torch(made: Transformer, beam: int, source: Tensor = SOURCE) -> list[Tensor]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layer_step, "takes", lambda _: False)
        return search(made, beam, kernel=False, source=source)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("positions", ["rotary", "sinusoidal"])
@pytest.mark.parametrize("activation", layer_step.ACTIVATIONS)
@pytest.mark.parametrize("beam", [1, 3, 5])
def test_a_search_sees_the_states_that_torch_computes(
    norm: str, positions: str, activation: str, beam: int
) -> None:
    made = model(f"model.norm={norm}", f"model.positions={positions}", f"model.activation={activation}")
    for own, expected in zip(search(made, beam), search_by_torch(made, beam), strict=True):
        torch.testing.assert_close(own, expected, rtol=1e-5, atol=2e-5)


def test_it_takes_over_where_torch_began(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search whose sentences are too many at first."""
    monkeypatch.setattr(layer_step, "most_rows", lambda _: 8)
    made, source = model("model.positions=rotary"), SOURCE
    assert len(source) * 3 > 8 >= 2 * 3
    for own, expected in zip(search(made, 3, source=source), search_by_torch(made, 3, source), strict=True):
        torch.testing.assert_close(own, expected, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("positions", ["rotary", "sinusoidal", "learned"])
@pytest.mark.parametrize("others", [[], ["model.activation=swiglu"], ["model.width=64"]])
@pytest.mark.parametrize("beam", [1, 3, 5])
def test_in_bf16_it_is_nearer_to_the_exact_states(
    norm: str, positions: str, others: list[str], beam: int
) -> None:
    """Only what is multiplied and what is between the layers is rounded: no sum, no state, no score."""
    made = model(f"model.norm={norm}", f"model.positions={positions}", *others).bfloat16()
    by_kernel, by_torch = search(made, beam), search_by_torch(made, beam)
    exact = search_by_torch(made.float(), beam)
    distances = [
        [float((own.float() - expected).norm()) for own, expected in zip(found, exact, strict=True)]
        for found in (by_kernel, by_torch)
    ]
    assert by_kernel[0].dtype == torch.bfloat16
    assert sum(distances[0]) < sum(distances[1])


@pytest.mark.parametrize("dtype", TYPES)
def test_the_number_of_threads_changes_no_bit(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    made = model().to(dtype)
    found: list[list[Tensor]] = []
    for threads in (1, 3):
        monkeypatch.setattr(layer_step, "_threads", lambda _, threads=threads: threads)
        found.append(search(made, 2))
    for one, several in zip(*found, strict=True):
        assert torch.equal(one, several)


@torch.no_grad()
def test_memory_that_is_hidden_is_not_read() -> None:
    made = model()
    cache, other = (made.start(made.encode(SOURCE), beam_size=2) for _ in range(2))
    tokens = torch.full((3, 2), 5)
    made.step(tokens, cache), made.step(tokens, other)
    for layer in other.layers:
        assert layer.own.stored is not None
        layer.own.stored[:, :, :, layer.own.used :] = torch.nan
        for part in layer.cross:
            part[1, :, 3:] = torch.nan
    assert torch.equal(made.step(tokens, cache), made.step(tokens, other))


@torch.no_grad()
@pytest.mark.parametrize(
    "name", ["self_attention.input", "cross_attention.query", "feed_forward.inner", "feed_forward.outer"]
)
def test_what_is_not_a_number_stays_so(name: str) -> None:
    made = model()
    cache = made.start(made.encode(SOURCE), beam_size=1)
    made.decoder[0].get_submodule(name).bias[3] = torch.nan  # type: ignore[index]
    assert made.step(torch.full((3, 1), 5), cache).isnan().all()


@torch.no_grad()
@pytest.mark.parametrize("dtype", TYPES)
def test_a_source_without_a_visible_key_adds_nothing(dtype: torch.dtype) -> None:
    made = model("model.norm=pre").to(dtype)
    hidden = search(made, 2, source=torch.full_like(SOURCE, PAD))
    for name, bias in made.named_parameters():
        if "cross_attention.output.weight" in name:
            bias.zero_()
    for own, expected in zip(hidden, search(made, 2), strict=True):
        torch.testing.assert_close(own, expected, rtol=0, atol=0)


@torch.no_grad()
def test_a_search_outlives_its_models_weights() -> None:
    made = model()
    cache, other = (made.start(made.encode(SOURCE), beam_size=1) for _ in range(2))
    tokens = torch.full((3, 1), 5)
    expected = made.step(tokens, cache)
    for layer in made.decoder:
        for weight in layer.parameters():
            weight.data = torch.full((1,), torch.nan)
    assert torch.equal(made.step(tokens, other), expected)


def kernels(cache: DecoderCache) -> list[bool]:
    return [layer.kernel is not None for layer in cache.layers]


def test_what_it_is_not_made_for_is_left_to_torch() -> None:
    for overrides in (["model.num_heads=4"], ["model.feed_forward=24"]):
        made = model(*overrides)
        with torch.no_grad():
            assert kernels(made.start(made.encode(SOURCE), beam_size=1)) == [False] * 2
    made = model().bfloat16()
    for layer in made.decoder:
        layer.cross_residual.norm.float()  # type: ignore[union-attr, operator]
    with torch.no_grad():
        assert kernels(made.start(made.encode(SOURCE), beam_size=1)) == [False] * 2
    made = model()
    assert kernels(made.start(made.encode(SOURCE), beam_size=1)) == [False] * 2, "a gradient may be asked for"
    with torch.no_grad():
        cache = made.start(made.encode(SOURCE), beam_size=1)
        assert kernels(cache) == [True] * 2
        layer = cache.layers[0].kernel
        assert layer is not None
        most = layer_step.most_rows(torch.float32)
        assert layer.takes(torch.zeros(most // 4, 4, 32))
        assert not layer.takes(torch.zeros(most + 1, 1, 32)), "many rows"
        assert not layer.takes(torch.zeros(1, 1, 32, dtype=torch.bfloat16)), "another type"
        weight = torch.zeros(32, 32)
        assert layer_step.usable(weight, weight[0], None)
        assert not layer_step.usable(weight, weight[0].bfloat16())
        assert not layer_step.usable(torch._neg_view(weight))
        assert not layer_step.usable(weight, weight.T)
        assert not layer_step.usable(torch.zeros(32, 16))
        assert not layer_step.usable(weight.double())
        assert not layer_step.usable(weight.to("meta"))
    assert not layer.takes(torch.zeros(1, 4, 32)), "a gradient may be asked for"
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert not layer.takes(torch.zeros(1, 4, 32))


@pytest.mark.parametrize(("maker", "rows"), [("GenuineIntel", 64), ("AuthenticAMD", 320), (None, 64)])
def test_more_rows_are_few_where_torchs_products_are_slower(
    maker: str | None, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if maker is not None:
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nvendor_id\t: {maker}\n", "utf-8")
    monkeypatch.setattr(layer_step, "Path", lambda _: tmp_path / "cpuinfo")
    assert layer_step.most_rows.__wrapped__(torch.float32) == rows
    assert layer_step.most_rows.__wrapped__(torch.bfloat16) == 32


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 32, 33])
@pytest.mark.parametrize("outputs", [1, 4, 50])
@pytest.mark.parametrize("dtype", TYPES)
def test_a_map_is_torchs(rows: int, outputs: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    weight, bias = torch.randn(outputs, 96).to(dtype), torch.randn(outputs).to(dtype)
    states = torch.randn(96, rows, 1).to(dtype).permute(1, 2, 0)  # not contiguous
    tolerance = {torch.float32: 1e-5, torch.bfloat16: 1e-2}[dtype]
    for optional in (None, bias):
        expected = functional.linear(
            states.float(), weight.float(), None if optional is None else optional.float()
        )
        with torch.no_grad():
            result = linear(states, weight, optional)
        assert (result.dtype, result.shape) == (dtype, (rows, 1, outputs))
        torch.testing.assert_close(result.float(), expected, rtol=tolerance, atol=tolerance)


@torch.no_grad()
@pytest.mark.parametrize("dtype", TYPES)
def test_other_rows_change_no_bit_of_a_row(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    weight, states = torch.randn(50, 96).to(dtype), torch.randn(7, 96).to(dtype)
    alone = [linear(row[None], weight) for row in states]
    assert torch.equal(linear(states, weight), torch.cat(alone))


@torch.no_grad()
def test_a_map_of_what_does_not_fit_is_torchs() -> None:
    states, weight = torch.randn(2, 32), torch.randn(4, 64)
    for bias in (None, torch.randn(4)):
        with pytest.raises(RuntimeError, match="shape"):
            linear(states, weight, bias)
    for bias in (torch.randn(5), torch.randn(4, dtype=torch.float64)):
        with pytest.raises(RuntimeError):
            linear(torch.randn(2, 64), weight, bias)
    assert linear(torch.randn(2, 64, device="meta"), weight.to("meta")).device.type == "meta"
    with pytest.raises(RuntimeError):
        linear(torch.randn(2, 64, device="meta"), weight, torch.randn(5))
    assert linear(torch.randn(0, 64), weight).shape == (0, 4)
    assert torch.equal(linear(torch.zeros(2, 0), torch.zeros(4, 0)), torch.zeros(2, 4))
    with FakeTensorMode():
        assert linear(torch.randn(2, 64), torch.randn(4, 64)).shape == (2, 4)


@torch.no_grad()
@pytest.mark.filterwarnings("ignore:`torch.jit.trace` is deprecated")
def test_a_map_is_recorded_as_torchs() -> None:
    weight, states = torch.randn(4, 64), torch.randn(2, 64)
    traced = torch.jit.trace(lambda rows: linear(rows, weight), torch.zeros(2, 64))
    torch.testing.assert_close(traced(states), states @ weight.T)


def test_a_map_has_a_gradient_where_one_is_asked_for() -> None:
    weight = torch.randn(4, 32, requires_grad=True)
    assert linear(torch.randn(1, 32), weight).requires_grad
