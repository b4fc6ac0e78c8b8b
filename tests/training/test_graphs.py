"""Graphs of batches: captured when a shape comes again, replayed on new content, and equal to what is not captured."""

import weakref
from collections.abc import Callable, Iterator, Sequence

import pytest
import torch
from torch import Tensor

from configs import run_config
from emulated_graphs import EmulatedCapture
from endeavour.data.batching import Batch
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.native import functions
from endeavour.training import graphs as graphs_module
from endeavour.training.graphs import Graphs, choose_graphs
from endeavour.training.optimizer import NonFiniteGuard, make_optimizer
from endeavour.training.step import LossModel, Updater, accumulate_gradients
from untrained import TINIEST

CPU = torch.device("cpu")
SHAPES = [(2, 3), (4, 5), (2, 3), (2, 3), (4, 5), (3, 3), (2, 3)]


@pytest.fixture(autouse=True)
def by_torch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU: the emulation records torch's operations."""
    monkeypatch.setattr(functions, "takes", lambda _: False)


def tiny(*overrides: str) -> Transformer:
    torch.manual_seed(0)
    return Transformer(
        run_config([*TINIEST, *overrides]).model, source_vocabulary=20, target_vocabulary=20
    ).eval()


def batches() -> Iterator[Batch]:
    """Ids of no special meaning in batches of these shapes."""
    generator = torch.Generator().manual_seed(0)
    for shape in SHAPES:
        source, target_in, target_out = torch.randint(4, 20, (3, *shape), generator=generator)
        yield Batch(source, target_in, target_out)


def capture_on(device: torch.device) -> EmulatedCapture | None:
    """Of CUDA itself where there is one."""
    return EmulatedCapture(asking=True) if device.type == "cpu" else None


def gradients(
    model: Transformer, device: torch.device, graphs: Graphs | None
) -> Iterator[tuple[list[Tensor], Tensor, Tensor]]:
    """Of each batch, with the sums of loss and negative log-likelihood."""
    loss_model = LossModel(model, label_smoothing=0.1)
    for number, batch in enumerate(batches(), start=1):
        loss, nll = accumulate_gradients(
            loss_model,
            [batch],
            target_tokens=number,
            device=device,
            precision=torch.float32,
            loss_scale=torch.tensor(float(number), device=device),
            graphs=graphs,
        )
        found = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        yield [gradient.clone() for gradient in found], loss.clone(), nll.clone()
        for gradient in found:
            gradient.zero_()


def trained(device: torch.device, graphs: Callable[[Transformer], Graphs | None]) -> Sequence[Tensor]:
    """The weights after updates of two batches each, with dropout and R-Drop, in bf16; and the updates' sums."""
    config = run_config([*TINIEST, "model.dropout=0.3"])
    torch.manual_seed(0)
    model = Transformer(config.model, source_vocabulary=20, target_vocabulary=20).to(device).train()
    loss_model = LossModel(model, label_smoothing=0.1, r_drop=0.5)
    optimizer = make_optimizer(model, config.training)
    guard = NonFiniteGuard(0, device, loss_scale=None)
    updater = Updater(
        loss_model=loss_model,
        optimizer=optimizer,
        guard=guard,
        clip_norm=1.0,
        device=device,
        precision=torch.bfloat16,
        graphs=graphs(model),
    )
    torch.manual_seed(1)
    sums: list[Tensor] = []
    for _ in range(3):
        ready = list(batches())
        for pair in zip(ready[::2], ready[1::2], strict=False):
            result = updater.update(pair, 20)
            sums += [result.loss, result.nll, result.norm]
    return [*sums, *(parameter.detach() for parameter in model.parameters())]


def test_replayed_batches_have_the_gradients_of_computed_ones(device: torch.device) -> None:
    model = tiny().to(device)
    capture = capture_on(device)
    graphs = Graphs(model, device, capture)
    expected = list(gradients(model, device, None))
    found = list(gradients(model, device, graphs))
    torch.testing.assert_close(found, expected)
    assert len(graphs) == 2, "the shape that came once has no graph"
    if capture is not None:
        assert (capture.captures, capture.replays) == (2, 4)


def test_updates_with_graphs_are_those_without(device: torch.device) -> None:
    made: list[Graphs] = []

    def with_graphs(model: Transformer) -> Graphs:
        made.append(Graphs(model, device, capture_on(device)))
        return made[-1]

    expected = trained(device, lambda model: None)
    found = trained(device, with_graphs)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)  # a GPU adds up in any order
    assert len(made[0]) == 3


def test_a_graph_keeps_the_tables_of_positions_that_it_reads(device: torch.device) -> None:
    model = tiny("model.positions=rotary").to(device)
    assert model.rotary is not None
    graphs = Graphs(model, device, capture_on(device))
    first = list(gradients(model, device, graphs))
    before = weakref.ref(model.rotary.cosine)
    model.rotary(0, 5000)
    again = list(gradients(model, device, graphs))
    assert before() is not None
    torch.testing.assert_close(again, first)


def test_shapes_beyond_the_limit_or_the_memory_are_not_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny()
    monkeypatch.setattr(graphs_module, "MOST_GRAPHS", 1)
    graphs = Graphs(model, CPU, EmulatedCapture(asking=True))
    list(gradients(model, CPU, graphs))
    assert len(graphs) == 1
    asked: list[torch.device] = []
    monkeypatch.setattr(graphs_module, "has_room", asked.append)  # and the answer is no
    graphs = Graphs(model, CPU, EmulatedCapture(asking=True))
    list(gradients(model, CPU, graphs))
    assert (len(graphs), len(asked)) == (0, 1), "once there is no room, none is looked for"


def test_where_memory_runs_out_the_graphs_are_named_too() -> None:
    def run_out(
        compute: Callable[[], tuple[Tensor, Tensor]],
    ) -> tuple[Callable[[], None], tuple[Tensor, Tensor]]:
        raise torch.OutOfMemoryError("CUDA out of memory")

    model = tiny()
    with pytest.raises(
        UserError, match=r"out of memory on a batch of 2 pairs .*\nset training\.cuda_graphs=never, or"
    ):
        list(gradients(model, CPU, Graphs(model, CPU, run_out)))


@pytest.mark.parametrize(
    ("name", "device", "tokens", "alone", "chosen"),
    [
        ("auto", "cuda", 100, True, True),
        ("auto", "cuda", 10**9, True, False),
        ("auto", "cuda", 100, False, False),
        ("auto", "cpu", 100, True, False),
        ("always", "cuda", 10**9, True, True),
        ("never", "cuda", 100, True, False),
    ],
)
def test_small_batches_are_captured(name: str, device: str, tokens: int, alone: bool, chosen: bool) -> None:
    assert choose_graphs(name, torch.device(device), tiny(), tokens=tokens, alone=alone) == chosen


@pytest.mark.parametrize(("device", "alone"), [("cpu", True), ("cuda", False)])
def test_graphs_that_cannot_be_are_refused(device: str, alone: bool) -> None:
    with pytest.raises(UserError, match="cuda_graphs=always needs a CUDA device and one process"):
        choose_graphs("always", torch.device(device), tiny(), tokens=1, alone=alone)
