"""Muon: which parameters it moves, how, and that all else is Adam's."""

import pytest
import torch
from starting import ALONE, checkpoints_of, make_model, restore, training_config
from torch import Tensor, nn

from endeavour.data.tokenizer import Tokenizer
from endeavour.model.layers import Linear
from endeavour.training import muon
from endeavour.training.muon import Muon, orthogonal
from endeavour.training.optimizer import NonFiniteGuard, make_optimizer

OVERRIDES = ("training.optimizer=muon", "training.learning_rate=0.01", "training.weight_decay=0.1")


def with_gradients(model: nn.Module, scale: float = 1.0) -> None:
    for parameter in model.parameters():
        parameter.grad = scale * torch.randn_like(parameter)


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("units", [True, False])
@pytest.mark.parametrize("shape", [(1, 24, 24), (3, 96, 24), (2, 24, 96)])
def test_directions_stay_and_their_lengths_become_alike(
    shape: tuple[int, ...], units: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(muon, "has_units", lambda precision, device: units)
    matrices = torch.randn(shape) @ torch.diag(torch.logspace(0, -1, shape[-1]))
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    moved = left.mT @ orthogonal(matrices) @ right.mT
    lengths = moved.diagonal(dim1=-2, dim2=-1)
    assert 0.5 < lengths.min() <= lengths.max() < 1.3
    assert (moved - torch.diag_embed(lengths)).abs().max() < 0.1
    torch.testing.assert_close(orthogonal(1e-6 * matrices), orthogonal(matrices), atol=0.05, rtol=0)


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("units", [True, False])
def test_what_moves_a_matrix_is_finite_however_small(units: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(muon, "has_units", lambda precision, device: units)
    matrices = torch.randn(2, 24, 96)
    for exponent in range(46):  # from where there is nothing smaller but 0
        moved = orthogonal(10.0**-exponent * matrices)
        assert moved.isfinite().all()
        assert moved.abs().max() < 1.3
    assert not orthogonal(0 * matrices).any()


def test_a_matrix_that_is_given_no_gradient_any_more_comes_to_rest() -> None:
    weight = nn.Parameter(torch.randn(8, 24))
    optimizer = Muon([{"params": [weight], "maps": 1, "weight_decay": 0.0}], lr=0.1)
    weight.grad = torch.randn(8, 24)
    for update in range(2200):  # until its momentum is 0, by way of the smallest numbers
        optimizer.step()
        weight.grad.zero_()
        if update == 1000:
            before = weight.detach().clone()
    assert torch.equal(weight.detach(), before)


@pytest.mark.usefixtures("on_device")
def test_an_update_is_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    def exact(matrices: Tensor) -> Tensor:
        left, _, right = torch.linalg.svd(matrices, full_matrices=False)
        return left @ right

    monkeypatch.setattr(muon, "orthogonal", exact)
    weight = nn.Parameter(torch.randn(8, 4))
    optimizer = Muon([{"params": [weight], "maps": 1, "weight_decay": 0.5}], lr=0.1)
    expected, momentum = weight.detach().clone(), torch.zeros(8, 4)
    for _ in range(3):
        weight.grad = torch.randn(8, 4)
        momentum = 0.95 * momentum + 0.05 * weight.grad
        change = exact(0.05 * weight.grad + 0.95 * momentum)
        expected = (1 - 0.1 * 0.5) * expected - 0.1 * 0.2 * 8**0.5 * change
        optimizer.step()
        torch.testing.assert_close(weight.detach(), expected)
    assert change.square().mean().sqrt() * 8**0.5 == pytest.approx(1), "so that 0.2 is its root mean square"


@pytest.mark.usefixtures("on_device")
def test_each_map_of_a_fused_matrix_is_moved_by_itself() -> None:
    parts = [nn.Parameter(torch.randn(6, 6)) for _ in range(3)]
    fused = nn.Parameter(torch.cat([part.detach() for part in parts]))
    for part in parts:
        part.grad = torch.randn(6, 6)
    fused.grad = torch.cat([part.grad for part in parts if part.grad is not None])
    Muon([{"params": parts, "maps": 1}, {"params": [fused], "maps": 3}]).step()
    torch.testing.assert_close(fused.detach(), torch.cat([part.detach() for part in parts]))


def test_the_maps_of_all_layers_are_moved_and_all_else_is_as_by_adam() -> None:
    moved, adams = make_model("model.activation=swiglu"), make_model("model.activation=swiglu")
    optimizers = [
        make_optimizer(moved, training_config(*OVERRIDES)),
        make_optimizer(adams, training_config(*OVERRIDES[1:])),
    ]
    before = weights_of(moved)
    for _ in range(2):
        with_gradients(moved)
        for mine, other in zip(moved.parameters(), adams.parameters(), strict=True):
            other.grad = None if mine.grad is None else mine.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    maps = {f"{name}.weight" for name, module in moved.named_modules() if isinstance(module, Linear)}
    assert {name.split(".")[0] for name in maps} == {"encoder", "decoder"}
    others = weights_of(adams)
    for name, weight in weights_of(moved).items():
        assert not torch.equal(weight, before[name]), name
        assert torch.equal(weight, others[name]) == (name not in maps), name
    counts = {group["maps"] for group in optimizers[0].param_groups if "maps" in group}
    assert counts == {1, 2, 3}


def test_an_update_that_is_not_finite_changes_nothing(on_device: torch.device) -> None:
    model = make_model()
    optimizer = make_optimizer(model, training_config(*OVERRIDES))
    guard = NonFiniteGuard(0, on_device, loss_scale=None)
    with_gradients(model)
    guard.step(optimizer, torch.tensor(1.0))
    before, state = weights_of(model), optimizer.state_dict()["state"]
    kept = {number: {key: value.clone() for key, value in one.items()} for number, one in state.items()}
    with_gradients(model, float("nan"))
    guard.step(optimizer, torch.tensor(float("nan")))
    assert all(torch.equal(weight, before[name]) for name, weight in weights_of(model).items())
    for number, one in optimizer.state_dict()["state"].items():
        assert all(torch.equal(value, kept[number][key]) for key, value in one.items())


def test_it_goes_on_from_a_checkpoint_as_if_it_had_not_stopped(tmp_path, tokenizer: Tokenizer) -> None:
    config = training_config(*OVERRIDES)
    model = make_model()
    checkpoints = checkpoints_of(tmp_path, tokenizer)
    optimizer, state, _ = restore(checkpoints, model, config)
    with_gradients(model)
    optimizer.step()
    checkpoints.save(model, optimizer, state, ALONE)
    again = make_model()
    resumed, *_ = restore(checkpoints, again, config)
    gradients = [torch.randn_like(parameter) for parameter in model.parameters()]
    for one, its in ((model, optimizer), (again, resumed)):
        for parameter, gradient in zip(one.parameters(), gradients, strict=True):
            parameter.grad = gradient.clone()
        its.step()
    assert all(
        torch.equal(mine, other) for mine, other in zip(model.parameters(), again.parameters(), strict=True)
    )
