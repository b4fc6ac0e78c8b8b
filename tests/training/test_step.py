"""What an update adds up: losses and gradients, against sums taken by hand."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from four_pairs import ROWS, batch
from torch import Tensor, nn
from torch.nn import functional

from endeavour.errors import UserError
from endeavour.special import PAD
from endeavour.training import step
from endeavour.training.step import LossModel, accumulate_gradients, choose_compile

CPU = torch.device("cpu")
VOCABULARY = 9
TOKENS = sum(len(target) + 1 for _, target in ROWS)


class Bag(nn.Module):
    """Stands for a Transformer: a target token's state is its own vector and the mean of the source's."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(VOCABULARY, 4)
        self.output_weight = nn.Parameter(torch.randn(VOCABULARY, 4))

    def encode(self, source: Tensor) -> Tensor:
        seen = (source != PAD)[..., None]
        return (self.embedding(source) * seen).sum(dim=1, keepdim=True) / seen.sum(dim=1, keepdim=True)

    def decode(self, target_in: Tensor, memory: Tensor) -> Tensor:
        return self.embedding(target_in) * 2 + memory

    def states(self, source: Tensor, target_in: Tensor) -> Tensor:
        return self.decode(target_in, self.encode(source))


def by_hand(smoothing: float) -> tuple[float, float, list[Tensor]]:
    """Sums of loss and negative log-likelihood, and the gradients of the mean loss, one sentence at a time."""
    model = Bag()
    loss, nll = torch.zeros(()), torch.zeros(())
    for row in ROWS:
        one = batch([row])
        logits = (model.decode(one.target_in, model.encode(one.source)) @ model.output_weight.T)[0]
        loss = loss + functional.cross_entropy(
            logits, one.target_out[0], label_smoothing=smoothing, reduction="sum"
        )
        nll = nll + functional.cross_entropy(logits, one.target_out[0], reduction="sum")
    (loss / TOKENS).backward()
    return loss.item(), nll.item(), [p.grad for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("division", [[4], [1, 3], [2, 2], [1, 1, 1, 1]])
@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_gradients_are_those_of_one_large_batch_however_it_is_divided(
    division: list[int], processes: int, smoothing: float
) -> None:
    expected_loss, expected_nll, expected = by_hand(smoothing)
    starts = [sum(division[:number]) for number in range(len(division))]
    batches = [batch(ROWS[start : start + size]) for start, size in zip(starts, division, strict=True)]
    model = Bag()
    for already in (0, 1):  # gradients are added to those that are there
        loss, nll = accumulate_gradients(
            LossModel(model, label_smoothing=smoothing),  # type: ignore[arg-type]
            batches,
            target_tokens=TOKENS,
            device=CPU,
            precision=torch.float32,
            **({} if processes == 1 else {"world_size": processes}),
        )
        assert (loss.item(), nll.item()) == pytest.approx((expected_loss, expected_nll), rel=1e-5)
        assert not loss.requires_grad
        for parameter, gradient in zip(model.parameters(), expected, strict=True):
            # DistributedDataParallel divides by their number, so that the sum over all is one large batch's.
            torch.testing.assert_close(parameter.grad, gradient * processes * (already + 1))


def test_gradients_are_exchanged_once_an_update() -> None:
    class Exchanged(nn.Module):
        """As DistributedDataParallel: `no_sync` holds the exchange back."""

        def __init__(self) -> None:
            super().__init__()
            self.module = LossModel(Bag(), label_smoothing=0.0)  # type: ignore[arg-type]
            self.held, self.exchanges = False, []

        def forward(self, *ids: Tensor) -> tuple[Tensor, Tensor]:
            self.exchanges.append(not self.held)
            return self.module(*ids)

        def no_sync(self) -> Any:
            outer = self

            class Held:
                def __enter__(self) -> None:
                    outer.held = True

                def __exit__(self, *_: object) -> None:
                    outer.held = False

            return Held()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step, "DistributedDataParallel", Exchanged)
        model = Exchanged()
        accumulate_gradients(
            model,
            [batch([row]) for row in ROWS],
            target_tokens=TOKENS,
            device=CPU,
            precision=torch.float32,
            world_size=2,
        )
    assert model.exchanges == [False, False, False, True]


def test_ids_go_to_the_device_and_sums_stay_there() -> None:
    class Elsewhere(nn.Module):
        def forward(self, *ids: Tensor) -> tuple[Tensor, Tensor]:
            assert {one.device.type for one in ids} == {"meta"}
            return torch.ones((), device="meta", requires_grad=True), torch.ones((), device="meta")

    sums = accumulate_gradients(
        Elsewhere(),
        [batch(ROWS)] * 2,
        target_tokens=TOKENS,
        device=torch.device("meta"),
        precision=torch.float32,
    )
    assert [one.device.type for one in sums] == ["meta"] * 2


def test_a_batch_that_does_not_fit_into_memory_is_named_by_its_shape() -> None:
    class Full(nn.Module):
        def forward(self, *_: Tensor) -> tuple[Tensor, Tensor]:
            raise torch.OutOfMemoryError

    with pytest.raises(UserError, match=r"4 pairs of 4 and 5 tokens.*\n?.*training\.tokens_per_batch"):
        accumulate_gradients(Full(), [batch(ROWS)], target_tokens=TOKENS, device=CPU, precision=torch.float32)


def test_products_are_made_in_the_precision_asked_for() -> None:
    seen: list[torch.dtype] = []

    class Noting(Bag):
        def encode(self, source: Tensor) -> Tensor:
            seen.append((torch.ones(2, 2) @ torch.ones(2, 2)).dtype)
            return super().encode(source)

    for precision in (torch.float32, torch.bfloat16):
        accumulate_gradients(
            LossModel(Noting(), label_smoothing=0.0),  # type: ignore[arg-type]
            [batch(ROWS)],
            target_tokens=TOKENS,
            device=CPU,
            precision=precision,
        )
    assert seen == [torch.float32, torch.bfloat16]


def test_layers_are_compiled_where_it_was_asked_for_or_pays() -> None:
    cuda = torch.device("cuda")
    choices = [
        [choose_compile(name, device, graphed=graphed) for name in ("auto", "always", "never")]
        for device, graphed in ((CPU, False), (cuda, False), (cuda, True))
    ]
    assert choices == [[False, True, False], [True, True, False], [False, True, False]]


def test_compiled_layers_share_one_graph_of_all_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []

    def noting(function: object, **options: object) -> object:
        asked.append(options)
        return function

    monkeypatch.setattr(torch, "compile", noting)
    monkeypatch.setattr(torch._dynamo, "config", SimpleNamespace(optimize_ddp=True))
    LossModel(Bag(), label_smoothing=0.0)  # type: ignore[arg-type]
    assert not asked
    model = LossModel(Bag(), label_smoothing=0.0, compiled=True)  # type: ignore[arg-type]
    assert asked == [{"dynamic": True}]
    assert torch._dynamo.config.optimize_ddp is False
    one = batch(ROWS)
    assert model(one.source, one.target_in, one.target_out)[0].isfinite()
