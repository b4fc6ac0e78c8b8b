"""Graphs of batches: captured when a shape comes again, replayed on new content, and equal to what is not captured."""

import weakref
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from configs import run_config
from endeavour.data.batching import Batch
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.training import graphs as module
from endeavour.training.graphs import Graphs, choose_graphs
from endeavour.training.step import LossModel, accumulate_gradients
from untrained import TINY

CPU = torch.device("cpu")
SHAPES = [(2, 3), (4, 5), (2, 3), (2, 3), (4, 5), (3, 3), (2, 3)]


def tiny(*overrides: str) -> Transformer:
    torch.manual_seed(0)
    return Transformer(
        run_config([*TINY, *overrides]).model, source_vocabulary=20, target_vocabulary=20
    ).eval()


def batches(seed: int = 0) -> Iterator[Batch]:
    """Ids of no special meaning in batches of these shapes."""
    generator = torch.Generator().manual_seed(seed)
    for shape in SHAPES:
        source, target_in, target_out = torch.randint(4, 20, (3, *shape), generator=generator)
        yield Batch(source, target_in, target_out)


class Recorded:
    """In place of CUDA: repeats a computation by computing it again, into the tensors of the first time."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.parameters = parameters
        self.captures = self.replays = 0

    def __call__(
        self, compute: Callable[[], tuple[Tensor, Tensor]]
    ) -> tuple[Callable[[], None], tuple[Tensor, Tensor]]:
        self.captures += 1
        before = [parameter.grad.clone() for parameter in self.parameters if parameter.grad is not None]
        assert len(before) == len(self.parameters), "a gradient would be made inside the graph"
        sums = compute()
        for parameter, gradient in zip(self.parameters, before, strict=True):  # capturing computes nothing
            assert parameter.grad is not None
            parameter.grad.copy_(gradient)

        def replay() -> None:
            self.replays += 1
            for old, new in zip(sums, compute(), strict=True):
                old.copy_(new)

        return replay, sums


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
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad.zero_()


def test_replayed_batches_have_the_gradients_of_computed_ones(device: torch.device) -> None:
    model = tiny().to(device)
    capture = Recorded(list(model.parameters())) if device.type == "cpu" else None
    graphs = Graphs(model, device, capture)
    expected = list(gradients(model, device, None))
    found = list(gradients(model, device, graphs))
    for (gradients_, *sums), (replayed, *replayed_sums) in zip(expected, found, strict=True):
        torch.testing.assert_close(replayed, gradients_)
        torch.testing.assert_close(replayed_sums, sums)
    assert len(graphs) == 2, "the shape that came once has no graph"
    if capture is not None:
        assert (capture.captures, capture.replays) == (2, 4)


def test_a_graph_keeps_the_tables_of_positions_that_it_reads(device: torch.device) -> None:
    model = tiny("model.positions=rotary").to(device)
    assert model.rotary is not None
    graphs = Graphs(model, device, Recorded(list(model.parameters())) if device.type == "cpu" else None)
    first = list(gradients(model, device, graphs))
    before = weakref.ref(model.rotary.cosine)
    model.rotary(0, 5000)
    again = list(gradients(model, device, graphs))
    assert before() is not None
    torch.testing.assert_close(again, first)


def test_no_more_shapes_than_the_limit_are_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 1)
    model = tiny()
    graphs = Graphs(model, CPU, Recorded(list(model.parameters())))
    list(gradients(model, CPU, graphs))
    assert len(graphs) == 1


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
    model = tiny()
    assert choose_graphs(name, torch.device(device), model, tokens=tokens, alone=alone) == chosen


@pytest.mark.parametrize(("device", "alone"), [("cpu", True), ("cuda", False)])
def test_graphs_that_cannot_be_are_refused(device: str, alone: bool) -> None:
    with pytest.raises(UserError, match=r"training.cuda_graphs=always needs a CUDA device and one process"):
        choose_graphs("always", torch.device(device), tiny(), tokens=1, alone=alone)
