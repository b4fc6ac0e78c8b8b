"""Models and optimizers that come back equal from their folders, averages, and damage that is named."""

import errno
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from starting import checkpoints_of, restore, save, training_config
from torch import nn

from endeavour.data.tokenizer import Tokenizer
from endeavour.errors import RunError, UserError
from endeavour.model.transformer import Transformer
from endeavour.storage import atomic_folder
from endeavour.training.checkpoint import (
    average_weights,
    checkpoints_in,
    load_model,
    optimizer_tensors,
    random_state,
    restore_optimizer,
    restore_random_state,
    save_tensors,
    write_model,
)
from random_models import fresh


def publish(folder: Path, model: Transformer, tokenizer: Tokenizer) -> None:
    with atomic_folder(folder) as partial:
        write_model(partial, model, (tokenizer, tokenizer))


@pytest.mark.parametrize("overrides", [[], ["model.tie=none"], ["model.positions=learned"]])
def test_a_model_comes_back_equal_from_its_folder_alone(
    overrides: list[str], tmp_path: Path, tokenizer: Tokenizer
) -> None:
    model = fresh(300, *overrides).eval()
    publish(tmp_path / "model", model, tokenizer)
    torch.manual_seed(99)
    loaded, (source, _) = load_model(tmp_path / "model", torch.device("cpu"))
    ids = torch.tensor([[5, 6, 3]])
    weights = model.state_dict()
    assert all(torch.equal(value, weights.pop(name)) for name, value in loaded.state_dict().items())
    assert not weights
    assert torch.equal(model(ids, ids), loaded(ids, ids))
    assert source.digest == tokenizer.digest
    assert not loaded.training


@pytest.mark.parametrize("name", ["weights.safetensors", "model.json", "source.model", "target.model"])
def test_a_flipped_byte_in_any_file_is_named(name: str, tmp_path: Path, tokenizer: Tokenizer) -> None:
    publish(tmp_path / "model", fresh(300), tokenizer)
    content = bytearray((tmp_path / "model" / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "model" / name).write_bytes(content)
    with pytest.raises(UserError, match=name):
        load_model(tmp_path / "model", torch.device("cpu"))


def test_a_disk_that_is_full_before_the_first_checkpoint_is_named(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("endeavour.training.state.atomic_folder", full)
    checkpoints = checkpoints_of(tmp_path / "checkpoints", tokenizer)
    model = fresh(300)
    with pytest.raises(RunError, match=r"No space left.*MB are free\nthe last checkpoint is none"):
        save(checkpoints, model, 1)


def test_a_disk_that_is_full_is_an_error_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        save_tensors({}, tmp_path / "nowhere" / "weights.safetensors")

    def full(*_: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("endeavour.training.checkpoint.save_file", full)
    with pytest.raises(OSError, match="weights") as error:
        save_tensors({}, tmp_path / "weights.safetensors")
    assert error.value.errno == errno.ENOSPC


def test_where_no_checkpoint_is_intact_a_run_begins_again_and_says_so(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    model = fresh(300, seed=0)
    checkpoints = checkpoints_of(tmp_path, tokenizer, keep_last=2)
    for update in (300, 400):
        save(checkpoints, model, update)
    for path in checkpoints_in(tmp_path):
        (path / "weights.safetensors").write_bytes(b"")
    _, state, notes = restore(checkpoints, model, training_config())
    assert state.update == 0
    assert [note.partition(":")[0] for note in notes] == [
        "skipped a damaged checkpoint",
        "skipped a damaged checkpoint",
        "no checkpoint is intact",
    ]
    for update in (100, 200):
        save(checkpoints, model, update)
    assert [path.name for path in checkpoints_in(tmp_path)] == ["update-00000100", "update-00000200"]


def test_only_what_was_written_as_a_checkpoint_is_deleted(tmp_path: Path, tokenizer: Tokenizer) -> None:
    checkpoints = checkpoints_of(tmp_path, tokenizer)
    kept = [tmp_path / name for name in ("update-00000001.tar.gz", "update-00000001-mine", "notes")]
    left = [f"update-{1:08d}", f"update-{2:08d}-stopped", f".update-{2:08d}.partial", f".update-{1:08d}.old"]
    for path in (*kept[1:], *(tmp_path / name for name in left)):
        path.mkdir()
    kept[0].touch()
    model = fresh(300)
    save(checkpoints, model, 3)
    assert sorted(tmp_path.iterdir()) == sorted([*kept, checkpoints.path(3)])


def test_random_state_comes_back() -> None:
    torch.manual_seed(5)
    torch.rand(3)
    state = random_state(torch.device("cpu"))
    first = torch.rand(4)
    restore_random_state(state, torch.device("cpu"))
    assert torch.equal(torch.rand(4), first)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_an_average_is_the_mean_of_each_number(count: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    weights = [{"a": torch.randn(2, 3), "b": torch.randn(4).bfloat16()} for _ in range(count)]
    folders = [tmp_path / str(number) for number in range(count)]
    for folder, own in zip(folders, weights, strict=True):
        with atomic_folder(folder) as partial:
            save_file(own, partial / "weights.safetensors")
    mean = average_weights(folders, "")
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
