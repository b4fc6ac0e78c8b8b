"""What an update adds up: gradients, losses, metrics, skipped steps, averages; against sums taken by hand."""

import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from endeavour.data.batching import Batch
from endeavour.errors import UserError
from endeavour.special import BOS, EOS, PAD
from endeavour.storage import atomic_folder
from endeavour.training import log
from endeavour.training.checkpoint import average_weights, optimizer_tensors, restore_optimizer
from endeavour.training.log import MetricWindow
from endeavour.training.optimizer import NonFiniteGuard
from endeavour.training.state import TrainState
from endeavour.training.step import LossModel, StepResult, accumulate_gradients, choose_compile
from endeavour.training.updates import Update

CPU = torch.device("cpu")
VOCABULARY = 9


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


def batch(rows: Sequence[tuple[list[int], list[int]]]) -> Batch:
    """Of source and target ids, without special ones."""

    def padded(lines: list[list[int]]) -> Tensor:
        longest = max(map(len, lines))
        return torch.tensor([line + [PAD] * (longest - len(line)) for line in lines])

    return Batch(
        padded([[*source, EOS] for source, _ in rows]),
        padded([[BOS, *target] for _, target in rows]),
        padded([[*target, EOS] for _, target in rows]),
    )


ROWS = [([4, 5], [6, 7, 8]), ([6], [4]), ([7, 8, 5], [5, 5]), ([8], [7, 6, 5, 4])]
TOKENS = sum(len(target) + 1 for _, target in ROWS)


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

    from endeavour.training import step

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


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_is_made_only_where_the_norm_is_finite_and_the_others_are_counted(fused: bool) -> None:
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.AdamW([weight], lr=0.1, fused=fused)
    with torch.device("meta"):  # whatever the default is
        skipping = NonFiniteGuard(2, CPU)
    assert skipping.skipped_in_a_row() == (2, 2)
    counts: list[tuple[int, int]] = []
    for norm in (math.inf, 1.0, math.nan, math.nan, -math.inf, math.nan, 0.5, math.inf):
        before = weight.detach().clone()
        weight.grad = torch.ones(2)
        skipping.step(optimizer, torch.tensor(norm))
        assert math.isfinite(norm) == (not torch.equal(weight, before))
        counts.append(skipping.skipped_in_a_row())
    assert counts == [(3, 3), (0, 3), (1, 3), (2, 3), (3, 3), (4, 4), (0, 4), (1, 4)]


class Alone:
    """Stands for the processes of a run, `count` with the same sums."""

    def __init__(self, count: int = 1) -> None:
        self.count = count

    def __getattr__(self, name: str) -> Any:
        return lambda values: values * self.count


def update(*batches: Batch, tokens: int) -> Update:
    return Update(list(batches), tokens, 0, 0, 0)


def add(window: MetricWindow, loss: float, nll: float, norm: float, one: Update) -> None:
    window.add(one, StepResult(*map(torch.tensor, (loss, nll, norm))))


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_a_window_gives_the_means_of_the_updates_that_were_made(resumed: bool, count: int) -> None:
    window = MetricWindow()
    add(window, 10.0, 8.0, 1.0, update(batch(ROWS[:2]), tokens=4))
    add(window, math.nan, math.nan, math.inf, update(batch(ROWS[2:]), batch(ROWS[:1]), tokens=100))
    if resumed:
        saved = window.state(Alone(count))  # type: ignore[arg-type]
        assert saved["updates"] == 2
        assert saved["tokens"] == 104
        window = MetricWindow(saved)
    add(window, 20.0, 4.0, 4.0, update(batch(ROWS[1:2]), tokens=6))
    found = window.close(Alone(count), epoch=3, rate=0.5, seconds=9.0)  # type: ignore[arg-type]
    cells = [one.padding for one in (batch(ROWS[:2]), batch(ROWS[2:]), batch(ROWS[:1]), batch(ROWS[1:2]))]
    assert found.pop("tokens_per_second") > 0
    assert found == pytest.approx(
        {
            "epoch": 3,
            "loss": 30.0 * count / 10,
            "perplexity": math.exp(12.0 * count / 10),
            "learning_rate": 0.5,
            "gradient_norm": 2.5,
            "skipped": 1,
            "padding": sum(padding for padding, _ in cells) / sum(all_ for _, all_ in cells),
            "seconds": 9.0,
        }
    )


def test_a_window_of_nothing_but_skipped_updates_has_no_means() -> None:
    window = MetricWindow()
    add(window, math.nan, 1.0, math.inf, update(batch(ROWS), tokens=4))
    found = window.close(Alone(), epoch=0, rate=0.1, seconds=0.0)  # type: ignore[arg-type]
    assert math.isnan(found["loss"])
    assert math.isnan(found["gradient_norm"])
    assert found["skipped"] == 1
    empty = MetricWindow().close(Alone(), epoch=0, rate=0.1, seconds=0.0)  # type: ignore[arg-type]
    assert (empty["skipped"], empty["padding"], empty["tokens_per_second"]) == (0, 0.0, 0.0)


def test_a_perplexity_beyond_all_numbers_is_a_number() -> None:
    window = MetricWindow()
    add(window, 1.0, 4e6, 1.0, update(batch(ROWS), tokens=1))
    found = window.close(Alone(), epoch=0, rate=0.1, seconds=0.0)  # type: ignore[arg-type]
    assert found["perplexity"] == math.exp(700.0)


def test_the_speed_counts_the_time_before_a_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    # Not in `time` itself: threads of other tests would wait by that clock.
    monkeypatch.setattr(log, "time", SimpleNamespace(monotonic=lambda: now))
    window = MetricWindow()
    add(window, 1.0, 1.0, 1.0, update(batch(ROWS), tokens=30))
    now = 104.0
    saved = window.state(Alone())  # type: ignore[arg-type]
    assert saved["seconds"] == 4.0
    now = 900.0
    window = MetricWindow(saved)
    add(window, 1.0, 1.0, math.inf, update(batch(ROWS), tokens=50))
    now = 906.0
    found = window.close(Alone(), epoch=0, rate=0.1, seconds=0.0)  # type: ignore[arg-type]
    assert found["tokens_per_second"] == pytest.approx(80 / 10)
    window = MetricWindow()
    add(window, 1.0, 1.0, 1.0, update(batch(ROWS), tokens=7))
    now = 906.25
    found = window.close(Alone(), epoch=0, rate=0.1, seconds=0.0)  # type: ignore[arg-type]
    assert found["tokens_per_second"] == pytest.approx(28)


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_the_best_validations_are_kept_best_first_and_those_without_gain_counted(
    higher_is_better: bool,
) -> None:
    state = TrainState()
    course: list[tuple[list[int], int]] = []
    for number, metric in enumerate([3.0, 5.0, 4.0, 5.0, 1.0, 6.0], start=1):
        state.update = number * 10
        state.note_validation(
            metric if higher_is_better else -metric, higher_is_better=higher_is_better, keep=3
        )
        course.append(([kept for _, kept in state.best], state.validations_without_gain))
    assert course == [
        ([10], 0),
        ([20, 10], 0),
        ([20, 30, 10], 1),
        ([20, 40, 30], 2),  # as good is no gain, and the earlier stays the best
        ([20, 40, 30], 3),
        ([60, 20, 40], 0),
    ]
    assert [abs(metric) for metric, _ in state.best] == [6.0, 5.0, 5.0]


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_a_metric_that_is_no_number_is_worse_than_any(higher_is_better: bool) -> None:
    state = TrainState()
    for number, metric in enumerate([math.nan, 3.0, math.nan, 5.0, 4.0], start=1):
        state.update = number
        state.note_validation(
            metric if higher_is_better else -metric, higher_is_better=higher_is_better, keep=4
        )
    assert [update for _, update in state.best] == [4, 5, 2, 1]
    assert state.validations_without_gain == 1


def test_a_state_advances_by_one_update_to_the_place_after_it() -> None:
    state = TrainState(update=3, epoch=1, position=9)
    state.advance(Update([], 20, epoch=2, position=0, stage_epoch=0))
    assert (state.update, state.epoch, state.position) == (4, 2, 0)


def test_of_none_to_be_kept_a_gain_is_still_one() -> None:
    state = TrainState(update=1)
    state.note_validation(1.0, higher_is_better=True, keep=0)
    assert (state.best, state.validations_without_gain) == ([], 0)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_an_average_is_the_mean_of_each_number(count: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    weights = [{"a": torch.randn(2, 3), "b": torch.randn(4).bfloat16()} for _ in range(count)]
    folders = [tmp_path / str(number) for number in range(count)]
    for folder, own in zip(folders, weights, strict=True):
        with atomic_folder(folder) as partial:
            save_file(own, partial / "weights.safetensors")
    mean = average_weights(folders)
    for name in ("a", "b"):
        expected = torch.stack([own[name].double() for own in weights]).mean(dim=0)
        assert mean[name].dtype == torch.float32
        torch.testing.assert_close(mean[name].double(), expected, atol=1e-6, rtol=1e-6)


def test_an_optimizer_comes_back_and_goes_on_as_it_would_have() -> None:
    def made() -> tuple[list[nn.Parameter], torch.optim.Optimizer]:
        torch.manual_seed(0)
        parameters = [nn.Parameter(torch.randn(3)) for _ in range(12)]  # 2 comes before 10
        return parameters, torch.optim.AdamW(parameters, lr=0.1)

    def step(parameters: list[nn.Parameter], optimizer: torch.optim.Optimizer, seed: int) -> None:
        torch.manual_seed(seed)
        for parameter in parameters:
            parameter.grad = torch.randn(3)
        optimizer.step()

    whole, optimizer = made()
    step(whole, optimizer, 1)
    tensors = {name: tensor.clone() for name, tensor in optimizer_tensors(optimizer, keep=True).items()}
    assert {name.split(".")[1] for name in tensors} == {"step", "exp_avg", "exp_avg_sq"}
    assert all(tensor.is_contiguous() and not tensor.requires_grad for tensor in tensors.values())
    resumed, other = made()
    with torch.no_grad():
        for parameter, value in zip(resumed, whole, strict=True):
            parameter.copy_(value)
    restore_optimizer(other, tensors)
    for parameters, own in ((whole, optimizer), (resumed, other)):
        step(parameters, own, 2)
    assert all(torch.equal(one, two) for one, two in zip(whole, resumed, strict=True))
