"""The kernels for short sentences give what torch gives; on a CPU Triton interprets them."""

from functools import partial
from importlib import import_module
from types import ModuleType

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from endeavour.model import attention
from endeavour.model.attention import attend, padding_mask, prepare_kernels
from endeavour.model.layers import Dropout
from endeavour.special import PAD

pytest.importorskip("triton")
CPU = torch.device("cpu")

# (batch, heads, queries, keys, head_width)
SHAPES = [
    (2, 3, 7, 7, 8),
    (2, 2, 5, 19, 48),
    (1, 1, 17, 17, 16),
    (2, 1, 33, 64, 32),
    (3, 2, 1, 1, 24),
    (1, 1, 3, 5, 128),
]


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
    towards = torch.randn(batch, heads, queries, width).to(query)
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
        attended.backward(towards.to(attended))
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


def test_a_sentence_of_padding_alone_stays_finite(device: torch.device, short: ModuleType) -> None:
    query, key, value = _heads(device, 2, 1, 5, 8, 3)
    mask = _padding(device, 2, 5)
    mask[0] = mask.min()
    attended = short.short_attention(query, key, value, mask, causal=False)
    attended.sum().backward()
    for tensor in (attended, query.grad, key.grad, value.grad):
        assert tensor is not None
        assert tensor.isfinite().all()


def test_heads_may_be_stored_by_columns(device: torch.device, short: ModuleType) -> None:
    query, key, value = (part.detach() for part in _heads(device, 2, 1, 5, 8, 3))
    by_columns = [part.mT.contiguous().mT for part in (query, key, value)]
    assert by_columns[0].stride(-1) != 1
    expected = short.short_attention(query, key, value, None, causal=True)
    assert torch.equal(short.short_attention(*by_columns, None, causal=True), expected)


def test_masks_of_other_shapes_are_refused(device: torch.device, short: ModuleType) -> None:
    query, key, value = (part.detach() for part in _heads(device, 3, 1, 5, 8, 3))
    mask = _padding(device, 1, 5)
    shared = short.short_attention(query, key, value, mask, causal=False)
    assert torch.equal(
        shared, short.short_attention(query, key, value, mask.repeat(3, 1, 1, 1), causal=False)
    )
    for shape in ((2, 1, 1, 5), (3, 1, 5, 5), (3, 1, 1, 4)):
        with pytest.raises(RuntimeError, match="expand"):
            short.short_attention(query, key, value, torch.zeros(shape, device=device), causal=False)


def test_compiling_sees_its_shapes_and_gradients(device: torch.device, short: ModuleType) -> None:
    query, key, value = _heads(device, 2, 2, 9, 8, 3)
    for mask, causal in ((None, True), (torch.zeros(2, 9, device=device), False)):
        torch.library.opcheck(torch.ops.endeavour.short_attention, (query, key, value, mask, causal))


def test_batches_of_all_lengths_share_a_graph(short: ModuleType) -> None:
    from torch._dynamo.testing import CompileCounterWithBackend  # takes seconds to import

    counted = CompileCounterWithBackend("aot_eager")
    attends = torch.compile(partial(short.short_attention, causal=False), dynamic=True, backend=counted)
    for batch, queries, keys in ((3, 7, 19), (2, 30, 8), (4, 16, 64)):
        (query,) = _heads(CPU, batch, 2, queries, 8, 1)
        key, value = _heads(CPU, batch, 2, keys, 8, 2)
        mask = _padding(CPU, batch, keys)
        found = attends(query, key, value, mask)
        torch.testing.assert_close(found, short.short_attention(query, key, value, mask, causal=False))
        found.sum().backward()
        assert query.grad is not None
    assert counted.frame_count == 1


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
@pytest.mark.parametrize("causal", [False, True])
def test_training_attends_with_them_where_no_weight_is_dropped_or_recorded(
    causal: bool,
    gradients: bool,
    dropout: float,
    recorded: bool,
    taken: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[object] = []

    class Short:
        @staticmethod
        def fits(query: Tensor, key: Tensor) -> bool:
            return True

        @staticmethod
        def short_attention(*tensors: Tensor | None, causal: bool) -> Tensor | None:
            given.extend((*tensors, causal))
            return tensors[0]

    monkeypatch.setattr(attention, "short_attention", Short)
    monkeypatch.setattr(attention, "PLAIN_SCORES", 0)
    monkeypatch.setattr(attention, "PLAIN_SENTENCES", 100)
    tensors = [torch.randn(2, 2, 5, 8, requires_grad=gradients) for _ in range(3)]
    mask = None if causal else _padding(CPU, 2, 5)
    record: list[Tensor] | None = [] if recorded else None
    attend(*tensors, mask=mask, causal=causal, dropout=Dropout(dropout), record=record)
    expected = [*tensors, mask, causal] if taken else []
    assert len(given) == len(expected)
    assert all(one is other for one, other in zip(given, expected, strict=True))


def test_they_are_tried_before_training(short: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda, tried = torch.device("cuda"), []
    monkeypatch.setattr(attention, "short_attention", None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    monkeypatch.setattr(short, "try_out", tried.append)
    for device in (CPU, cuda):
        assert prepare_kernels(device) is None
        assert (tried, attention.short_attention) == ([], None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    assert prepare_kernels(cuda) is None
    assert (tried, attention.short_attention) == ([cuda], short)


def test_where_they_cannot_be_compiled_the_run_says_so_and_does_without(
    short: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(device: torch.device) -> None:
        raise RuntimeError("Failed to find C compiler.\nPlease specify one")

    monkeypatch.setattr(attention, "short_attention", None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(short, "try_out", fail)
    said = "attention takes longer than it could: RuntimeError: Failed to find C compiler."
    assert prepare_kernels(torch.device("cuda")) == said
    assert attention.short_attention is None


def test_a_trial_uses_both_kernels(
    device: torch.device, short: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch, launched = short._launch, []

    def noted(kernel: object, *arguments: object) -> None:
        launched.append(kernel)
        launch(kernel, *arguments)

    monkeypatch.setattr(short, "_launch", noted)
    short.try_out(device)
    assert launched == [short.values, short.gradients]
