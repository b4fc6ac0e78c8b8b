"""The plain and the fused product agree; masks hide what they should; recorded weights are those applied."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from endeavour.model import attention
from endeavour.model.attention import HIDDEN, attend, causal_mask, padding_mask
from endeavour.model.layers import Dropout
from endeavour.special import PAD

BATCH, HEADS, LENGTH, HEAD_WIDTH = 3, 2, 7, 5
MASKS = ["none", "padding", "causal"]


def _inputs() -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(BATCH, HEADS, LENGTH, HEAD_WIDTH, requires_grad=True) for _ in range(3)]


def _padding() -> Tensor:
    ids = torch.full((BATCH, LENGTH), 5)
    ids[0, 4:] = PAD
    ids[2, 1:] = PAD
    return padding_mask(ids, torch.float32)


def _attend(inputs: list[Tensor], kind: str, record: list[Tensor] | None = None) -> Tensor:
    mask = _padding() if kind == "padding" else None
    query, key, value = inputs
    return attend(query, key, value, mask=mask, causal=kind == "causal", dropout=Dropout(0.0), record=record)


@pytest.mark.parametrize("kind", MASKS)
def test_plain_and_fused_agree_in_values_and_gradients(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: list[list[Tensor]] = []
    for limit in (10**6, 0):
        monkeypatch.setattr(attention, "PLAIN_SCORES", limit)
        inputs = _inputs()
        attended = _attend(inputs, kind)
        (attended * torch.arange(HEAD_WIDTH)).sum().backward()
        outcomes.append([attended.detach(), *(tensor.grad for tensor in inputs if tensor.grad is not None)])
    assert len(outcomes[0]) == len(outcomes[1]) == 4
    for plain, fused in zip(*outcomes, strict=True):
        torch.testing.assert_close(plain, fused)


@pytest.mark.parametrize("kind", MASKS)
def test_without_gradients_plain_and_fused_agree_and_only_few_sentences_are_fused(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = [tensor.detach() for tensor in _inputs()]
    monkeypatch.setattr(attention, "PLAIN_SENTENCES", BATCH)
    plain = _attend(inputs, kind)
    monkeypatch.setattr(attention, "PLAIN_SENTENCES", BATCH + 1)
    fused = _attend(inputs, kind)
    torch.testing.assert_close(plain, fused)
    monkeypatch.setattr(functional, "scaled_dot_product_attention", lambda query, *_, **__: query * 0)
    assert not _attend(inputs, kind).any()
    monkeypatch.setattr(attention, "PLAIN_SENTENCES", BATCH)
    assert torch.equal(_attend(inputs, kind), plain)


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("kind", MASKS)
def test_recorded_weights_are_those_of_the_fused_path(kind: str) -> None:
    record: list[Tensor] = []
    with torch.no_grad():
        inputs = [tensor.detach() for tensor in _inputs()]
        fused, recorded = _attend(inputs, kind), _attend(inputs, kind, record)
    (weights,) = record
    torch.testing.assert_close(recorded, fused)
    torch.testing.assert_close(weights @ inputs[2], fused)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(BATCH, HEADS, LENGTH))
    if kind == "padding":
        assert not weights[0, :, :, 4:].any()
    if kind == "causal":
        assert not weights.triu(1).any()


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize(
    "length", [7, 8, 33, 130]
)  # kernels have conditions on how keys and masks are aligned
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_heads_of_real_width_agree_with_plain_products(
    kind: str, length: int, precision: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "PLAIN_SCORES", 0)
    ids = torch.full((4, length), 5)
    ids[0, length // 2 :] = PAD
    ids[3, 1:] = PAD
    mask = padding_mask(ids, precision) if kind == "padding" else None
    outcomes: list[list[Tensor]] = []
    for record in (None, []):  # who records computes plainly
        torch.manual_seed(0)
        inputs = [torch.randn(4, 2, length, 64).to(precision).requires_grad_() for _ in range(3)]
        options = {"mask": mask, "causal": kind == "causal", "dropout": Dropout(0.0)}
        attended = attend(*inputs, **options, record=record)
        (attended.float() * torch.arange(64)).sum().backward()
        outcomes.append([attended.detach(), *(tensor.grad for tensor in inputs if tensor.grad is not None)])
    assert len(outcomes[0]) == len(outcomes[1]) == 4
    for fused, plain in zip(*outcomes, strict=True):
        scale = float(plain.float().abs().max())
        torch.testing.assert_close(
            fused.float(), plain.float(), rtol=0, atol=scale * (1e-4 if precision == torch.float32 else 0.02)
        )


@pytest.mark.usefixtures("on_device")
def test_dropout_acts_on_the_weights_of_both_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    query, key, _ = _inputs()
    value = torch.eye(LENGTH).expand(BATCH, HEADS, LENGTH, LENGTH)  # makes the output the weights themselves
    for limit in (10**6, 0):
        monkeypatch.setattr(attention, "PLAIN_SCORES", limit)
        weights = attend(query, key, value, mask=None, causal=False, dropout=Dropout(0.5), record=None)
        assert 0.3 < (weights == 0).float().mean().item() < 0.7
        dropout = Dropout(0.5).eval()
        weights = attend(query, key, value, mask=None, causal=False, dropout=dropout, record=None)
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(BATCH, HEADS, LENGTH))


@pytest.mark.usefixtures("on_device")
def test_a_row_of_padding_alone_gives_numbers() -> None:
    mask = padding_mask(torch.full((BATCH, LENGTH), PAD), torch.float32)
    query, key, value = _inputs()
    for given in (query, query.detach()):
        attended = attend(given, key, value, mask=mask, causal=False, dropout=Dropout(0.0), record=None)
        assert attended.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_masks_hide_padding_and_the_future_and_nothing_else(dtype: torch.dtype) -> None:
    padding = padding_mask(torch.tensor([[7, 3, PAD]]), dtype)
    assert padding.shape == (1, 1, 1, 3)
    assert (padding == 0).flatten().tolist() == [True, True, False]
    causal = causal_mask(3, dtype, torch.device("cpu"))
    assert (causal == 0).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert (causal.softmax(dim=-1)[causal != 0] == 0).all()
    for mask in (padding, causal):
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
