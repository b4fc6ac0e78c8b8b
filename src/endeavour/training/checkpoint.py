"""Folders of weights and state on disk: written whole or not at all, verified when read.

A *model folder* holds what translation needs: weights.safetensors, model.json, source.model, target.model.
A *checkpoint* is a model folder with what resuming needs: optimizer.safetensors, state.json. Each has a
digests.json, written last, with the SHA-256 of every other file. Knows tensors and files; not the loop.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from endeavour.data.tokenizer import SIDES, Tokenizers, load_tokenizers, save_tokenizers
from endeavour.errors import UserError
from endeavour.model.config import ModelConfig
from endeavour.model.transformer import Transformer
from endeavour.storage import DIGESTS, read_json_object, safetensors_errors, verify
from endeavour.training.sharding import local_part, whole_tensor

Tensors = dict[str, Tensor]


def write_model(folder: Path, model: Transformer, tokenizers: Tokenizers) -> None:
    """Writes the files of a model folder into an existing folder."""
    source, target = tokenizers
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    save_tensors(weights, folder / "weights.safetensors")
    description = {
        "model": asdict(model.config),
        "source_vocabulary": source.vocabulary_size,
        "target_vocabulary": target.vocabulary_size,
        "tokenizers": {"source": source.digest, "target": target.digest},
    }
    (folder / "model.json").write_text(json.dumps(description, indent=1), "utf-8")
    save_tokenizers(folder, tokenizers)


def load_model(folder: Path, device: torch.device) -> tuple[Transformer, Tokenizers]:
    """Rebuilds model and tokenizers from a model folder alone, verified, in evaluation mode.

    Raises:
        UserError: a file is missing or altered, or the tokenizer is not the one the model was trained with.
    """
    verify(folder)
    description = read_json_object(folder / "model.json")
    tokenizers = load_tokenizers(folder)
    for side, tokenizer in zip(SIDES, tokenizers, strict=True):
        if tokenizer.digest != description["tokenizers"][side]:
            raise UserError(f"{folder / side}.model is not the tokenizer that this model was trained with")
    model = Transformer(
        ModelConfig(**description["model"]),
        source_vocabulary=description["source_vocabulary"],
        target_vocabulary=description["target_vocabulary"],
    )
    load_weights(model, folder)
    return model.to(device).eval(), tokenizers


def load_weights(model: Transformer, folder: Path) -> None:
    """Copies a model folder's weights into `model`. Raises `UserError` where names or shapes differ."""
    own = model.state_dict()
    try:
        weights = load_file(folder / "weights.safetensors")
        model.load_state_dict(
            {name: local_part(tensor, own.get(name, tensor)) for name, tensor in weights.items()}
        )
    except (OSError, RuntimeError, SafetensorError) as error:
        # Torch's first line only says that there are errors; the second one names a weight.
        reason = " ".join(line.strip() for line in str(error).splitlines()[:2]).rstrip(".")
        raise UserError(
            f"{folder / 'weights.safetensors'}: not the weights of this model ({reason}); "
            "was the folder copied from another run?"
        ) from error


def save_tensors(tensors: Tensors, path: Path) -> None:
    """Writes a safetensors file. Raises `OSError` where the disk takes no more."""
    with safetensors_errors(path):
        save_file(tensors, path)


def size_of(model: Transformer) -> int:
    """Bytes of a checkpoint, estimated: the weights, Adam's two moments of each, and a little for the rest."""
    return 3 * sum(tensor.numel() * tensor.element_size() for tensor in model.parameters()) + 2**20


def average_weights(folders: Sequence[Path], remedy: str) -> Tensors:
    """The mean of several model folders' weights, in fp32, parameter by parameter.

    Args:
        remedy: what the user can do about a folder that was altered.

    Raises:
        UserError: a folder was altered, which the mean would not show.
    """
    mean: Tensors = {}
    for folder in folders:
        verify(folder, remedy)
        for name, tensor in load_file(folder / "weights.safetensors").items():
            part = tensor.float() / len(folders)
            mean[name] = mean[name] + part if name in mean else part
    return mean


def optimizer_tensors(optimizer: torch.optim.Optimizer, *, keep: bool) -> Tensors:
    """An optimizer's state, whole, as flat tensors on the CPU named `<parameter number>.<state name>`.

    Where the state is divided among processes, all must call this together; without `keep` one only gives its part.
    """
    tensors: Tensors = {}
    for number, values in optimizer.state_dict()["state"].items():
        for name, value in values.items():
            whole = whole_tensor(value)
            if keep:
                tensors[f"{number}.{name}"] = whole.detach().cpu().contiguous()
    return tensors


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Tensors) -> None:
    """Restores what `optimizer_tensors` returned."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state: dict[int, Tensors] = {}
    for key, value in tensors.items():
        number, name = key.split(".")
        parameter = parameters[int(number)]
        # The moments are divided as their parameter is; the number of steps is each process's own.
        part = local_part(value, parameter) if value.shape == parameter.shape else value
        state.setdefault(int(number), {})[name] = part
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def random_state(device: torch.device) -> dict[str, Any]:
    """The states of torch's generators on the CPU and on `device`, in JSON types; no other generator is used."""
    state = {"cpu": torch.get_rng_state().numpy().tobytes().hex()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device).numpy().tobytes().hex()
    if device.type == "mps":
        state["mps"] = torch.mps.get_rng_state().numpy().tobytes().hex()
    return state


def restore_random_state(state: dict[str, Any], device: torch.device) -> None:
    """Restores what `random_state` returned; states of other kinds of devices are ignored."""
    torch.set_rng_state(_bytes_tensor(state["cpu"]))
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(_bytes_tensor(state["cuda"]), device)
    if device.type == "mps" and "mps" in state:
        torch.mps.set_rng_state(_bytes_tensor(state["mps"]))


def checkpoints_in(folder: Path) -> list[Path]:
    """The complete checkpoints in `folder`, oldest first, including those written after a signal."""
    return sorted(path for path in folder.glob("update-*") if (path / DIGESTS).is_file())


def update_of(checkpoint: Path) -> int:
    """The update after which it was written: 600 of `update-00000600` and of `update-00000600-stopped`."""
    return int(checkpoint.name.split("-")[1])


def _bytes_tensor(text: str) -> Tensor:
    return torch.frombuffer(bytearray.fromhex(text), dtype=torch.uint8)
