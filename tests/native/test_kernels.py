"""What the kernels compute is what torch computes, in value and gradient."""

from typing import Any

import pytest
import torch
from torch import Tensor

from configs import run_config
from endeavour.model.attention import multi_head_attention, padding_mask
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


def maps(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 0) -> list[Tensor]:
    """Queries, keys beside values, and what the result's gradient is."""
    torch.manual_seed(seed)
    batch, count, queries, keys, width = shape
    query, both, towards = (
        torch.randn(batch, length, size * count * width).to(dtype)
        for length, size in ((queries, 1), (keys, 2), (queries, 1))
    )
    return [query.requires_grad_(), both.requires_grad_(), towards]


def outcome(parts: list[Tensor], num_heads: int, **options: object) -> list[Tensor]:
    """The result and all gradients."""
    *given, towards = parts
    options = {"mask": None, "causal": False, "record": None} | options
    attended = multi_head_attention(*given, num_heads=num_heads, dropout=Dropout(0.0), **options)  # type: ignore[arg-type]
    return [attended.detach(), *torch.autograd.grad(attended, given, towards)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["everything", "padding", "causal", "rotated", "causal and rotated"])
def test_attention_is_that_of_plain_products(
    kind: str, shape: tuple[int, ...], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, count, queries, keys, width = shape
    if kind not in ("everything", "padding"):
        keys = queries
    parts = maps((batch, count, queries, keys, width), dtype)
    ids = torch.full((batch, keys), 5)
    ids[0, (keys + 1) // 2 :] = PAD
    options = {
        "mask": padding_mask(ids, torch.float32) if kind == "padding" else None,
        "causal": "causal" in kind,
        "rotation": RotaryPositions(width)(3, queries) if "rotated" in kind else None,
    }
    assert functions.attends(parts[:2], count, options["mask"])  # type: ignore[arg-type]
    found = outcome(parts, count, **options)
    monkeypatch.setattr(functions, "attends", lambda *_: False)
    exact = [part.detach().float().requires_grad_() for part in parts]
    for own, expected in zip(found, outcome(exact, count, **options), strict=True):
        assert own.dtype == dtype
        tolerance = 1e-5 if dtype == torch.float32 else 2e-2
        torch.testing.assert_close(own.float(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", TYPES)
def test_one_map_of_all_three_is_as_good_as_two(dtype: torch.dtype) -> None:
    query, both, towards = maps((2, 3, 5, 5, 16), dtype)
    one = torch.cat([query, both], dim=-1).detach().requires_grad_()
    attended, gradient = outcome([one, towards], 3, causal=True)
    found = [attended, *gradient.split([query.shape[-1], both.shape[-1]], dim=-1)]
    for own, expected in zip(found, outcome([query, both, towards], 3, causal=True), strict=True):
        assert torch.equal(own, expected)


def test_hidden_keys_have_no_weight_and_no_gradient() -> None:
    parts = maps((2, 2, 4, 9, 16), torch.float32)
    ids = torch.full((2, 9), 5)
    ids[0, 5:] = PAD
    mask = padding_mask(ids, torch.float32)
    attended, _, gradient = outcome(parts, 2, mask=mask)
    assert not gradient[0, 5:].any()
    assert gradient[1].view(9, 4, 16).abs().amax(dim=-1).all()
    with torch.no_grad():
        parts[1][0, 5:, 32:] = 1e30
    assert torch.equal(outcome(parts, 2, mask=mask)[0], attended)


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
                    *outcome(maps(SHAPES[1], torch.bfloat16), 4, causal=True),
                    logits,
                    *sums,
                ]
            )
    finally:
        torch.set_num_threads(before)
    for one, several in zip(*found, strict=True):
        assert torch.equal(one, several)


def test_what_they_are_not_made_for_is_left_to_torch() -> None:
    query, both, _ = maps((2, 2, 4, 9, 16), torch.float32)
    assert functions.attends((query, both), 2, None)
    assert not functions.attends((query.detach(), both), 2, None), "nothing is to be learnt"
    assert not functions.attends((query, both), 4, None), "half a vector"
    assert not functions.attends((query, both), 2, torch.zeros(2, 1, 4, 9)), "a mask for each query"
    assert not functions.attends((query, both[:1]), 2, None), "keys that all sentences share"
    assert not functions.attends((query, both.bfloat16()), 2, None)
    assert not functions.attends((query.double(), both.double()), 2, None)
    assert not functions.attends((query.to("meta"), both.to("meta")), 2, None)
    assert not functions.attends((torch.zeros(1, 193, 48, requires_grad=True),), 1, None)


def test_parts_of_larger_tensors_are_taken_too() -> None:
    query, both, _ = maps((2, 3, 5, 5, 16), torch.float32)
    by_columns = [part.transpose(1, 2).contiguous().transpose(1, 2) for part in (query, both)]
    expected = functions.attention((query, both), 3, None, None, causal=True)
    assert torch.equal(functions.attention(by_columns, 3, None, None, causal=True), expected)


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
    losses, nlls = functions.r_drop(logits, targets, smoothing=0.1, weight=0.7)
    torch.testing.assert_close(losses.sum(), loss)
    torch.testing.assert_close(nlls.sum(), nll)
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
    parts = maps((2, 1, 4, 4, 16), dtype)
    with torch.no_grad():
        parts[1][1, 2, 3] = bad
    attended, *gradients = outcome(parts, 1)
    for tensor in (attended, *gradients):
        assert tensor[0].isfinite().all()
        assert not tensor[1].isfinite().all()


@pytest.mark.parametrize("target", [-1, 5])
def test_a_target_outside_the_vocabulary_is_refused(target: int) -> None:
    with pytest.raises(IndexError, match="vocabulary of 5"):
        functions.r_drop(torch.zeros(2, 1, 5), torch.tensor([target]), smoothing=0.1, weight=0.5)


def test_saved_tensors_may_be_kept_elsewhere() -> None:
    """As by `torch.utils.checkpoint` and `save_on_cpu`, which give back copies."""
    parts = maps(SHAPES[1], torch.float32)
    expected = outcome(parts, 4, causal=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.tolist(), torch.tensor):
        found = outcome(parts, 4, causal=True)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_training_attends_by_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under autocast too, and with padding."""
    torch.manual_seed(0)
    attended: list[torch.dtype] = []
    original = functions.attention

    def counted(given: tuple[Tensor, ...], *others: Any, causal: bool) -> Tensor:
        attended.append(given[0].dtype)
        return original(given, *others, causal=causal)

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
