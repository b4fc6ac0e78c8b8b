"""A model whose parameters, gradients and optimizer state are divided among the processes (FSDP2), and all of it again.

Knows torch's `fully_shard` and the layers of a model; not losses, optimizers or files. What is divided looks from the
outside like the whole: the shapes and names are those of the whole model, and so is every file. torch's part is
imported where it is used, because that takes seconds.
"""

from typing import Any, cast

import torch
from torch import Tensor

from endeavour.model.transformer import Transformer


def shard(model: Transformer, device: torch.device, count: int) -> None:
    """Leaves in each of `count` processes its part of every parameter, a chunk of the rows, on its `device`.

    `model`, on the host and the same in all processes, is divided in place, before it has an optimizer. In an update
    each layer is put together (all-gather) for its forward and for its backward pass, then its gradients are averaged
    and divided (reduce-scatter). The embeddings and what else is of no layer stay whole from `Transformer.states`
    to the end of the backward pass, so that the loss can be computed from `output_weight` (Zhao et al. 2023, "PyTorch
    FSDP", as `torch.distributed.fsdp.fully_shard` has it).
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

    mesh = init_device_mesh(device.type, (count,))
    for layer in (*model.encoder, *model.decoder):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh, reshard_after_forward=False)
    register_fsdp_forward_method(model, "states")


def is_sharded(model: Transformer) -> bool:
    return _is_divided(model.output_weight)


def whole_tensor(tensor: Tensor) -> Tensor:
    """`tensor` or, where it is divided, all of it; all processes must ask for it together."""
    return cast(Any, tensor).full_tensor() if _is_divided(tensor) else tensor


def local_part(whole: Tensor, like: Tensor) -> Tensor:
    """What belongs into `like`, on its device: if that is divided, this process's part of `whole`, otherwise all."""
    if not _is_divided(like):
        return whole
    from torch.distributed.tensor import distribute_tensor

    divided = cast(Any, like)
    return distribute_tensor(whole, divided.device_mesh, divided.placements, src_data_rank=None)


def whole_model(model: Transformer, *, keep: bool) -> Transformer | None:
    """`model` or, where it is divided, a copy of all of it on the host; None without `keep`.

    All processes must ask for it together; without `keep` one only gives its part.
    """
    if not is_sharded(model):
        return model if keep else None
    weights: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        whole = whole_tensor(tensor)
        if keep:
            weights[name] = whole.cpu()
    if not keep:
        return None
    source, target = model.embeddings
    with torch.random.fork_rng(devices=[]):  # its first weights, drawn in vain, must not change dropout
        copy = Transformer(
            model.config, source_vocabulary=source.num_embeddings, target_vocabulary=target.num_embeddings
        )
    copy.load_state_dict(weights)
    return copy


def _is_divided(tensor: Tensor) -> bool:
    return hasattr(tensor, "full_tensor")  # a DTensor's, whose import takes seconds
