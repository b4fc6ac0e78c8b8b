"""The loss of two passes equals torch's, in value and gradient, and its passes are those of one model."""

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from configs import run_config
from endeavour.model.transformer import Transformer
from endeavour.native import functions
from endeavour.special import BOS, EOS, PAD
from endeavour.training import consistency as module
from endeavour.training.consistency import Consistency, consistency_loss
from endeavour.training.loss import projected_loss
from endeavour.training.step import LossModel

VOCABULARY = 11
R_DROP = Consistency(0.5, share=0.5)


def inputs(device: str = "cpu") -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The states of two passes, a projection, and ids of which some are padding."""
    torch.manual_seed(0)
    target = torch.randint(1, VOCABULARY, (3, 6))
    target[0, 4:] = target[2, 1:] = PAD
    tensors = torch.randn(3, 6, 8), torch.randn(3, 6, 8), torch.randn(VOCABULARY, 8)
    first, second, weight = (tensor.to(device).requires_grad_() for tensor in tensors)
    return first, second, weight, target.to(device)


def by_hand(
    first: Tensor,
    second: Tensor,
    weight: Tensor,
    target: Tensor,
    *,
    smoothing: float,
    consistency: Consistency,
) -> tuple[Tensor, Tensor]:
    """Loss and negative log-likelihood."""
    kept, ids = target.flatten() != PAD, target[target != PAD]
    passes = [(states.flatten(0, 1)[kept] @ weight.T).log_softmax(-1) for states in (first, second)]
    loss, nll = torch.zeros(2)
    for one, share in enumerate((consistency.share, 1 - consistency.share)):
        smooth, plain = (
            functional.cross_entropy(passes[one], ids, reduction="sum", label_smoothing=epsilon)
            for epsilon in (smoothing, 0.0)
        )
        apart = functional.kl_div(passes[1 - one], passes[one], log_target=True, reduction="sum")
        loss = loss + share * (smooth + consistency.weight * apart)
        nll = nll + share * plain
    return loss, nll


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("consistency", [Consistency(0.5, 0.5), Consistency(3.0, 0.5), Consistency(2.0, 1.0)])
@pytest.mark.parametrize("padding", ["left out", "left out, by torch", "computed with"])
def test_equals_cross_entropies_and_divergences(
    smoothing: float, consistency: Consistency, padding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rows in ("CPU_ROWS", "GPU_ROWS"):
        monkeypatch.setattr(module, rows, 5)  # several chunks, the last of them short
    monkeypatch.setattr(module, "CACHED_ROWS", 2)
    if padding != "left out":
        monkeypatch.setattr(functions, "takes", lambda _: False)
    tensors = inputs(torch.get_default_device().type)
    first, second, weight, target = tensors
    if padding == "computed with":  # as on a GPU
        states = torch.stack((first.flatten(0, 1), second.flatten(0, 1)))
        loss, nll = module._ConsistencyLoss.apply(states, weight, target.flatten(), smoothing, consistency)
    else:
        loss, nll = consistency_loss(
            first, second, weight, target, label_smoothing=smoothing, consistency=consistency
        )
    (loss * 0.7).backward()
    ours = [tensor.grad for tensor in tensors[:3]]
    for tensor in tensors[:3]:
        tensor.grad = None

    expected, expected_nll = by_hand(*tensors, smoothing=smoothing, consistency=consistency)
    (expected * 0.7).backward()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(nll, expected_nll)
    assert not nll.requires_grad
    for found, tensor in zip(ours, tensors, strict=False):
        torch.testing.assert_close(found, tensor.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast_it_is_that_of_fp32_but_for_rounding(dtype: torch.dtype) -> None:
    tensors = inputs()
    expected, _ = by_hand(*tensors, smoothing=0.1, consistency=R_DROP)
    gradients = torch.autograd.grad(expected, tensors[:3])
    with torch.autocast("cpu", dtype=dtype):
        loss, _ = consistency_loss(*tensors, label_smoothing=0.1, consistency=R_DROP)
    assert loss.dtype == torch.float32
    assert not torch.equal(loss, expected)
    torch.testing.assert_close(loss, expected, rtol=0.02, atol=0)
    for found, gradient in zip(torch.autograd.grad(loss, tensors[:3]), gradients, strict=True):
        assert (found - gradient).norm() < 0.02 * gradient.norm()


def test_two_passes_that_agree_have_the_loss_of_one() -> None:
    states, _, weight, target = inputs()
    found = consistency_loss(states, states, weight, target, label_smoothing=0.1, consistency=R_DROP)
    expected = projected_loss(states, weight, target, label_smoothing=0.1)
    torch.testing.assert_close(found, expected)


def test_another_device_than_a_cpu_is_asked_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor of the device `meta` has no values: whoever looked at one would fail, where a GPU would wait."""
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: False)  # which knows no such device
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    first, second, weight, target = inputs("meta")
    loss, _ = consistency_loss(first, second, weight, target, label_smoothing=0.1, consistency=R_DROP)
    loss.backward()
    assert first.grad is not None
    assert second.grad is not None
    assert weight.grad is not None


def model_with(dropout: float, *overrides: str) -> Transformer:
    layout = run_config(["model=tiny", "model.width=16", "model.num_heads=2", *overrides]).model
    layout.dropout = layout.attention_dropout = layout.embedding_dropout = dropout
    torch.manual_seed(1)
    return Transformer(layout, source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY).train()


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_the_passes_of_r_drop_differ_by_what_is_dropped_alone(dropout: float) -> None:
    model = model_with(dropout)
    source, target = torch.randint(4, VOCABULARY, (2, 3, 5))
    found: list[float] = []
    for r_drop in (0.0, 0.5, 5.0):
        torch.manual_seed(2)
        loss, _ = LossModel(model, label_smoothing=0.1, r_drop=r_drop)(source, target, target)
        found.append(loss.item())
    once, gently, strongly = found
    if dropout:
        assert strongly > gently > 0
    else:
        assert gently == pytest.approx(once, rel=1e-5)
        assert strongly == pytest.approx(once, rel=1e-5)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The states of the two passes of each loss that is computed, and how they are weighed."""
    kept: list[Any] = []

    def keep(*tensors: Tensor, **settings: Any) -> tuple[Tensor, Tensor]:
        kept.append((*tensors[:2], settings["consistency"]))
        return consistency_loss(*tensors, **settings)

    monkeypatch.setattr("endeavour.training.step.consistency_loss", keep)
    return kept


@torch.no_grad()
@pytest.mark.parametrize("tie", ["all", "decoder", "none"])
@pytest.mark.parametrize("positions", ["rotary", "sinusoidal", "learned"])
def test_the_second_pass_of_simcut_reads_zero_vectors(tie: str, positions: str, passes: list[Any]) -> None:
    """It attends to their places, though, and reads what marks the beginning and the end."""
    model = model_with(0.0, f"model.tie={tie}", f"model.positions={positions}")
    for embedding in model.embeddings:  # tied weights are the output's, too, and are learnt
        embedding.weight[PAD] = torch.randn(16)
    source = torch.tensor([[5, 6, 7, 8, EOS], [9, 10, EOS, PAD, PAD]])
    target_in, target_out = (
        torch.tensor([[BOS, 5, 6], [BOS, 7, PAD]]),
        torch.tensor([[5, 6, EOS], [7, EOS, PAD]]),
    )
    LossModel(model, label_smoothing=0.1, simcut=3.0, cutoff=1.0)(source, target_in, target_out)
    ((first, second, weighed),) = passes
    assert weighed == Consistency(3.0, share=1.0)
    torch.testing.assert_close(first, model.states(source, target_in))
    for embedding in model.embeddings:
        embedding.weight[EOS + 1 :] = 0.0
    torch.testing.assert_close(second, model.states(source, target_in))
    assert not torch.allclose(first, second)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["training.simcut=2", "training.cutoff=0.1"], (Consistency(2.0, share=1.0), 0.1)),
        (["training.r_drop=0.5", "training.cutoff=0.1"], (Consistency(0.5, share=0.5), 0.0)),
    ],
)
def test_the_config_says_how_passes_are_compared(
    overrides: list[str], expected: tuple[Consistency, float]
) -> None:
    made = LossModel.of(model_with(0.1), run_config(overrides).training)
    assert (made.consistency, made.cutoff) == expected


@torch.no_grad()
def test_both_passes_of_r_drop_read_everything(passes: list[Any]) -> None:
    model = model_with(0.0)
    source = torch.tensor([[5, 6, 7, 8, EOS]])
    LossModel(model, label_smoothing=0.1, r_drop=2.0, cutoff=0.9)(source, source, source)
    ((first, second, weighed),) = passes
    assert weighed == Consistency(2.0, share=0.5)
    torch.testing.assert_close(first, second)
    torch.testing.assert_close(first, model.states(source, source))


@pytest.mark.parametrize("cutoff", [0.05, 0.5])
def test_simcut_leaves_out_that_share(cutoff: float) -> None:
    torch.manual_seed(0)
    ids = torch.randint(VOCABULARY, (2000, 50))
    first, second = (
        LossModel(model_with(0.0), label_smoothing=0.1, simcut=1.0, cutoff=cutoff)._cut(ids).chunk(2)
    )
    assert not first.any()
    assert not second[ids <= EOS].any()
    assert float(second[ids > EOS].float().mean()) == pytest.approx(cutoff, rel=0.1)
