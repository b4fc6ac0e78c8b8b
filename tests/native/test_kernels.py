"""What the kernels compute is what torch computes, in value and gradient."""

import pytest
import torch
from torch import Tensor

from configs import run_config
from endeavour.model.attention import attend, padding_mask
from endeavour.model.layers import Dropout
from endeavour.model.positions import RotaryPositions
from endeavour.model.transformer import Transformer
from endeavour.native import functions
from endeavour.special import PAD
from endeavour.training import r_drop as r_drop_module
from kernels import needs_kernels

pytestmark = needs_kernels

TYPES = [torch.float32, torch.bfloat16]
SHAPES = [(3, 2, 1, 1, 16), (2, 4, 5, 5, 32), (1, 2, 16, 16, 48), (2, 1, 17, 40, 64), (2, 3, 33, 7, 16)]


def heads(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 0) -> list[Tensor]:
    """Query, key and value, and what the result's gradient is."""
    torch.manual_seed(seed)
    batch, count, queries, keys, width = shape
    lengths = (queries, keys, keys)
    parts = [torch.randn(batch, count, length, width).to(dtype).requires_grad_() for length in lengths]
    return [*parts, torch.randn(batch, count, queries, width).to(dtype)]


def outcome(parts: list[Tensor], **options: object) -> list[Tensor]:
    query, key, value, towards = parts
    attended = attend(query, key, value, dropout=Dropout(0.0), **options)  # type: ignore[arg-type]
    found = torch.autograd.grad(attended, (query, key, value), towards)
    return [attended.detach(), *found]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["everything", "padding", "causal", "rotated", "causal and rotated"])
def test_attention_is_that_of_plain_products(
    kind: str, shape: tuple[int, ...], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, count, queries, keys, width = shape
    if kind not in ("everything", "padding"):
        keys = queries
    parts = heads((batch, count, queries, keys, width), dtype)
    ids = torch.full((batch, keys), 5)
    ids[0, (keys + 1) // 2 :] = PAD
    options = {
        "mask": padding_mask(ids, torch.float32) if kind == "padding" else None,
        "causal": "causal" in kind,
        "rotation": RotaryPositions(width)(3, queries) if "rotated" in kind else None,
        "record": None,
    }
    assert functions.attends(*parts[:2], options["mask"])  # type: ignore[arg-type]
    found = outcome(parts, **options)
    assert found[0].transpose(1, 2).is_contiguous()
    monkeypatch.setattr(functions, "attends", lambda *_: False)
    exact = [part.detach().float().requires_grad_() for part in parts]
    for own, expected in zip(found, outcome(exact, **options), strict=True):
        assert own.dtype == dtype
        tolerance = 1e-5 if dtype == torch.float32 else 2e-2
        torch.testing.assert_close(own.float(), expected, rtol=tolerance, atol=tolerance)


def test_hidden_keys_have_no_weight_and_no_gradient() -> None:
    parts = heads((2, 2, 4, 9, 16), torch.float32)
    ids = torch.full((2, 9), 5)
    ids[0, 5:] = PAD
    mask = padding_mask(ids, torch.float32)
    attended, _, *gradients = outcome(parts, mask=mask, causal=False, record=None)
    for gradient in gradients:
        assert not gradient[0, :, 5:].any()
        assert gradient[1].abs().amax(dim=-1).all()
    with torch.no_grad():
        parts[2][0, :, 5:] = 1e30
    assert torch.equal(outcome(parts, mask=mask, causal=False, record=None)[0], attended)


@pytest.mark.parametrize("threads", [2, 3])
def test_the_number_of_threads_changes_no_bit(threads: int) -> None:
    before = torch.get_num_threads()
    found: list[list[Tensor]] = []
    try:
        for count in (1, threads):
            torch.set_num_threads(count)
            torch.manual_seed(1)
            logits = torch.randn(2, 7, 50)
            sums = functions.r_drop(logits, torch.arange(7), smoothing=0.1, weight=0.5)
            found.append(
                [
                    *outcome(heads(SHAPES[1], torch.bfloat16), mask=None, causal=True, record=None),
                    logits,
                    *sums,
                ]
            )
    finally:
        torch.set_num_threads(before)
    for one, several in zip(*found, strict=True):
        assert torch.equal(one, several)


def test_what_they_are_not_made_for_is_left_to_torch() -> None:
    query, key, *_ = heads((2, 2, 4, 9, 16), torch.float32)
    assert functions.attends(query, key, None)
    assert not functions.attends(query.detach(), key, None), "nothing is to be learnt"
    assert not functions.attends(query[..., :8], key[..., :8], None), "half a vector"
    assert not functions.attends(query, key, torch.zeros(2, 1, 4, 9)), "a mask for each query"
    assert not functions.attends(query, key[:1], None), "keys that all sentences share"
    assert not functions.attends(query, key.bfloat16(), None)
    assert not functions.attends(query.double(), key.double(), None)
    assert not functions.attends(query.to("meta"), key.to("meta"), None)
    long = torch.zeros(1, 1, 193, 16, requires_grad=True)
    assert not functions.attends(long, long, None)


def test_parts_of_larger_tensors_are_taken_too() -> None:
    query, key, value, _ = heads((2, 3, 5, 5, 16), torch.float32)
    by_columns = [part.transpose(2, 3).contiguous().transpose(2, 3) for part in (query, key, value)]
    expected = functions.attention(query, key, value, None, None, causal=True)
    assert torch.equal(functions.attention(*by_columns, None, None, causal=True), expected)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("vocabulary", [5, 16, 1003])
@pytest.mark.parametrize("size", [1.0, 1e4])
def test_r_drop_is_that_of_torchs_operations(vocabulary: int, size: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    logits = (torch.randn(2, 9, vocabulary) * size).to(dtype)
    targets = torch.randint(1, vocabulary, (9,))
    targets[0] = vocabulary - 1
    exact = logits.float().clone()
    loss, nll = r_drop_module._replace_few_by_gradient(exact, targets, 0.1, 0.7)
    losses, surprises = functions.r_drop(logits, targets, smoothing=0.1, weight=0.7)
    torch.testing.assert_close(losses.sum(), loss)
    torch.testing.assert_close(surprises.sum(), nll)
    scale = float(exact.abs().max())
    tolerance = 1e-5 + 1e-6 * size if dtype == torch.float32 else 4e-3
    torch.testing.assert_close(logits.float() / scale, exact / scale, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_that_are_not_finite_stay_so(bad: float, dtype: torch.dtype) -> None:
    """The update is skipped then, which only the gradients' norm can tell."""
    logits = torch.zeros(2, 3, 40, dtype=dtype)
    logits[1, 1, 30] = bad
    losses, _ = functions.r_drop(logits, torch.tensor([1, 2, 3]), smoothing=0.1, weight=0.5)
    assert losses.isfinite().tolist() == [True, False, True]
    assert logits.isfinite().all(dim=-1).tolist() == [[True, False, True]] * 2
    dropped = functions.dropout(torch.full((100,), bad, dtype=dtype), threshold=128, scale=2.0)
    assert not dropped.isfinite().any()
    parts = heads((2, 1, 4, 4, 16), dtype)
    with torch.no_grad():
        parts[1][1, 0, 2, 3] = bad
    attended, *gradients = outcome(parts, mask=None, causal=False, record=None)
    for tensor in (attended, *gradients):
        assert tensor[0].isfinite().all()
        assert not tensor[1].isfinite().all()


@pytest.mark.parametrize("target", [-1, 5])
def test_a_target_outside_the_vocabulary_is_refused(target: int) -> None:
    with pytest.raises(IndexError, match="vocabulary of 5"):
        functions.r_drop(torch.zeros(2, 1, 5), torch.tensor([target]), smoothing=0.1, weight=0.5)


def test_saved_tensors_may_be_kept_elsewhere() -> None:
    """As by `torch.utils.checkpoint` and `save_on_cpu`, which give back copies."""
    parts = heads(SHAPES[1], torch.float32)
    expected = outcome(parts, mask=None, causal=True, record=None)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.tolist(), torch.tensor):
        found = outcome(parts, mask=None, causal=True, record=None)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_training_attends_by_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under autocast too, and with padding."""
    torch.manual_seed(0)
    attended: list[torch.dtype] = []
    original = functions.attention

    def counted(query: Tensor, *others: Tensor, causal: bool) -> Tensor:
        attended.append(query.dtype)
        return original(query, *others, causal=causal)

    monkeypatch.setattr(functions, "attention", counted)
    config = run_config(["model=tiny", "model.width=32", "model.num_heads=2", "model.positions=rotary"]).model
    model = Transformer(config, source_vocabulary=20, target_vocabulary=20).train()
    source, target = torch.randint(4, 20, (2, 3, 6))
    source[1, 3:] = target[2, 4:] = PAD
    for precision in TYPES:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == torch.bfloat16):
            model(source, target).sum().backward()
        assert attended == [precision] * 12
        attended.clear()
    model.eval()(source, target)
    assert not attended
