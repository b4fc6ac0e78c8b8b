"""The kernels for short sentences give what torch gives; on a CPU Triton interprets them."""

from importlib import import_module
from types import ModuleType

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from endeavour.model import attention
from endeavour.model.attention import attend, padding_mask
from endeavour.model.layers import Dropout
from endeavour.special import PAD

pytest.importorskip("triton")

# (batch, heads, queries, keys, head_width)
SHAPES = [(2, 3, 7, 7, 8), (2, 2, 5, 19, 48), (1, 1, 17, 17, 16), (2, 1, 33, 64, 32), (3, 2, 1, 1, 24)]


@pytest.fixture
def short() -> ModuleType:
    return import_module("endeavour.model.short_attention")


def _heads(device: torch.device, batch: int, heads: int, length: int, width: int, parts: int) -> list[Tensor]:
    """Parts of one fused map, as the layers have them: strided, with gradients."""
    dtype = torch.float32 if device.type == "cpu" else torch.float16
    fused = torch.randn(batch, length, parts, heads, width).to(device, dtype).permute(2, 0, 3, 1, 4)
    return [part.detach().requires_grad_() for part in fused]


def _padding(device: torch.device, batch: int, keys: int) -> Tensor:
    ids = torch.full((batch, keys), 5)
    ids[0, (keys + 1) // 2 :] = PAD
    return padding_mask(ids, torch.float32).to(device)


@pytest.mark.parametrize("kind", ["none", "padding", "causal"])
@pytest.mark.parametrize("shape", SHAPES)
def test_values_and_gradients_are_those_of_torch(
    shape: tuple[int, int, int, int, int], kind: str, device: torch.device, short: ModuleType
) -> None:
    torch.manual_seed(0)
    batch, heads, queries, keys, width = shape
    if kind == "causal":
        queries = keys
    (query,) = _heads(device, batch, heads, queries, width, 1)
    key, value = _heads(device, batch, heads, keys, width, 2)
    mask = _padding(device, batch, keys) if kind == "padding" else None
    slope = torch.randn(batch, heads, queries, width).to(query)
    outcomes: list[list[Tensor]] = []
    for exact in (False, True):
        inputs = [part.detach().to(torch.float32 if exact else part.dtype) for part in (query, key, value)]
        for part in inputs:
            part.requires_grad_()
        if exact:
            attended = functional.scaled_dot_product_attention(*inputs, mask, is_causal=kind == "causal")
        else:
            attended = short.short_attention(*inputs, mask, causal=kind == "causal")
            assert attended.transpose(1, 2).is_contiguous()
        attended.backward(slope.to(attended))
        outcomes.append([attended.detach(), *(part.grad for part in inputs if part.grad is not None)])
    assert len(outcomes[0]) == len(outcomes[1]) == 4
    tolerance = 1e-5 if device.type == "cpu" else 4e-3
    for own, exact in zip(*outcomes, strict=True):
        torch.testing.assert_close(own.float(), exact, rtol=tolerance, atol=tolerance)


def test_hidden_keys_get_no_gradient(device: torch.device, short: ModuleType) -> None:
    query, key, value = _heads(device, 2, 2, 9, 8, 3)
    short.short_attention(query, key, value, _padding(device, 2, 9), causal=False).sum().backward()
    for part in (key, value):
        assert part.grad is not None
        assert not part.grad[0, :, 5:].any()
        assert part.grad[1].abs().amin(dim=(0, 2)).all()


def test_compiling_sees_its_shapes_and_gradients(device: torch.device, short: ModuleType) -> None:
    query, key, value = _heads(device, 2, 2, 9, 8, 3)
    for mask, causal in ((None, True), (torch.zeros(2, 9, device=device), False)):
        torch.library.opcheck(torch.ops.endeavour.short_attention, (query, key, value, mask, causal))


@pytest.mark.parametrize(
    ("dtype", "queries", "keys", "width", "fits"),
    [
        (torch.bfloat16, 64, 1, 64, True),
        (torch.float16, 1, 64, 128, True),
        (torch.float32, 9, 9, 64, False),
        (torch.bfloat16, 65, 9, 64, False),
        (torch.bfloat16, 9, 65, 64, False),
        (torch.bfloat16, 9, 9, 144, False),
    ],
)
def test_short_sentences_in_half_precision_fit(
    dtype: torch.dtype, queries: int, keys: int, width: int, fits: bool, short: ModuleType
) -> None:
    class OnGpu:
        is_cuda = True

        def __init__(self, length: int) -> None:
            self.shape, self.dtype = (2, 4, length, width), dtype

    assert short.fits(OnGpu(queries), OnGpu(keys)) == fits
    assert not short.fits(torch.zeros(2, 4, 9, 8, dtype=dtype), torch.zeros(2, 4, 9, 8, dtype=dtype))


@pytest.mark.parametrize(
    ("gradients", "dropout", "recorded", "taken"),
    [
        (True, 0.0, False, True),
        (False, 0.0, False, False),
        (True, 0.5, False, False),
        (True, 0.0, True, False),
    ],
)
def test_training_attends_with_them_where_no_weight_is_dropped_or_recorded(
    gradients: bool, dropout: float, recorded: bool, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Short:
        @staticmethod
        def fits(query: Tensor, key: Tensor) -> bool:
            return True

        @staticmethod
        def short_attention(query: Tensor, *_: Tensor | None, causal: bool) -> Tensor:
            return torch.full_like(query, 7.0)

    monkeypatch.setattr(attention, "short_attention", Short)
    monkeypatch.setattr(attention, "PLAIN_SCORES", 0)
    monkeypatch.setattr(attention, "PLAIN_SENTENCES", 100)
    query, key, value = (torch.randn(2, 2, 5, 8, requires_grad=gradients) for _ in range(3))
    record: list[Tensor] | None = [] if recorded else None
    attended = attend(query, key, value, mask=None, causal=True, dropout=Dropout(dropout), record=record)
    assert bool((attended == 7.0).all()) == taken
