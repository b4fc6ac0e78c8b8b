"""The arithmetic of one update: from ids to the loss, the gradients and the optimizer's step.

Knows a model, its loss, batches and an optimizer; not the order of the batches, schedules or files.
"""

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.fx.experimental import _config as shapes
from torch.nn.parallel import DistributedDataParallel

from endeavour.data.batching import Batch
from endeavour.errors import UserError, named_memory_error
from endeavour.model.transformer import Transformer
from endeavour.training.graphs import NEVER, Graphs
from endeavour.training.loss import projected_loss
from endeavour.training.optimizer import NonFiniteGuard
from endeavour.training.precision import autocast
from endeavour.training.r_drop import r_drop_loss
from endeavour.training.sharding import whole_tensor

SMALLER_BATCHES = (
    "lower training.tokens_per_batch (and raise training.accumulate accordingly) or choose a smaller model, "
    "in a new run (name=…)"
)


class StepResult(NamedTuple):
    """Sums of the loss and the negative log-likelihood over this process's tokens, and the norm of the gradients.

    Scalars on the device; an update whose norm is not finite was skipped.
    """

    loss: Tensor
    nll: Tensor
    norm: Tensor


class LossModel(nn.Module):
    """A model together with its loss: the function that is differentiated.

    Args:
        r_drop: weight of the divergence between two passes, `r_drop_loss`; 0: there is one pass.
        compiled: whether the layers run through `torch.compile`, with one graph for batches of all shapes, except that
            `short_attention` wants others for short sentences than for long ones.
    """

    def __init__(
        self,
        model: Transformer,
        *,
        label_smoothing: float,
        r_drop: float = 0.0,
        compiled: bool = False,
    ) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self.r_drop = r_drop
        self._states: Callable[[Tensor, Tensor], Tensor] = model.states
        if compiled:
            # Otherwise DistributedDataParallel compiles a graph per 25 MB of weights, for every new shape; everything
            # is traced twice, because a module's floats, such as a norm's ε, are first taken to vary; and a first batch
            # whose sources are as long as its targets gets a graph that no other batch fits.
            torch._dynamo.config.optimize_ddp = False  # pyright: ignore[reportPrivateUsage]
            torch._dynamo.config.specialize_float = True  # pyright: ignore[reportPrivateUsage]
            shapes.use_duck_shape = False
            # Short or long sources and targets, and few rows or many: past this many the layers are not compiled.
            torch._dynamo.config.recompile_limit = 16  # pyright: ignore[reportPrivateUsage]
            self._states = torch.compile(model.states, dynamic=True)

    def forward(self, source: Tensor, target_in: Tensor, target_out: Tensor) -> tuple[Tensor, Tensor]:
        """Ids of a `Batch` to the sums of loss and negative log-likelihood of its target tokens, in nats."""
        if self.r_drop:
            first, second = self._states(source.repeat(2, 1), target_in.repeat(2, 1)).chunk(2)
            return r_drop_loss(
                first,
                second,
                self.model.output_weight,
                target_out,
                label_smoothing=self.label_smoothing,
                r_drop=self.r_drop,
            )
        return projected_loss(
            self._states(source, target_in),
            self.model.output_weight,
            target_out,
            label_smoothing=self.label_smoothing,
        )


def choose_compile(name: str, device: torch.device, *, graphed: bool) -> bool:
    """`auto`: on CUDA, except where batches become graphs: training such a model takes no longer than compiling it.

    On a CPU compiling takes longer than short runs do, and made them slower.
    """
    return device.type == "cuda" and not graphed if name == "auto" else name == "always"


def accumulate_gradients(
    loss_model: nn.Module,
    batches: Sequence[Batch],
    *,
    target_tokens: int,
    device: torch.device,
    precision: torch.dtype,
    world_size: int = 1,
    loss_scale: Tensor | float = 1.0,
    graphs: Graphs | None = None,
) -> tuple[Tensor, Tensor]:
    """Adds the gradients of the summed loss of `batches` divided by `target_tokens`.

    However the tokens are divided among batches and processes, the gradient equals that of one large batch.

    Args:
        loss_model: a `LossModel`, or one in DistributedDataParallel.
        batches: this process's, on the host.
        target_tokens: of the update, over all batches and processes.
        world_size: number of processes, of whose gradients the mean is taken.
        loss_scale: what the gradients are multiplied with.

    Returns:
        Sums of loss and negative log-likelihood over `batches` (nats, on `device`, without waiting for it).
    Raises:
        UserError: a batch does not fit into memory, or the model cannot be compiled.
    """

    def add(batch: Batch, tokens: Tensor | int, scale: Tensor | float) -> tuple[Tensor, Tensor]:
        with autocast(device, precision):
            loss, nll = loss_model(*batch)
        (loss * world_size / tokens * scale).backward()
        return loss.detach(), nll

    loss_sum = torch.zeros((), device=device)
    nll_sum = torch.zeros((), device=device)
    remedy = SMALLER_BATCHES if graphs is None else f"{NEVER}, or {SMALLER_BATCHES}"
    for number, batch in enumerate(batches, start=1):
        pairs, source = batch.source.shape
        shape = f"a batch of {pairs} pairs of {source} and {batch.target_out.shape[1]} tokens"
        # Gradients are reduced once, with the last batch.
        apart = number < len(batches) and isinstance(loss_model, DistributedDataParallel)
        with cast(Any, loss_model).no_sync() if apart else nullcontext(), named_errors(shape, remedy):
            if graphs is None:
                loss, nll = add(batch.to(device), target_tokens, loss_scale)
            else:
                loss, nll = graphs.run(add, batch, target_tokens, loss_scale)
        loss_sum += loss
        nll_sum += nll
    return loss_sum, nll_sum


@dataclass(frozen=True, kw_only=True)
class Updater:
    """Makes updates of the weights: gradients, clipping, and the optimizer's step, which `guard` may skip.

    Nothing is clipped without `clip_norm`; the rest are as in `accumulate_gradients`.
    """

    loss_model: nn.Module
    optimizer: torch.optim.Optimizer
    guard: NonFiniteGuard
    clip_norm: float | None
    device: torch.device
    precision: torch.dtype
    world_size: int = 1
    graphs: Graphs | None = None

    def update(self, batches: Sequence[Batch], target_tokens: int) -> StepResult:
        """One update by the batches of this process, with `target_tokens` in those of all."""
        loss_scale, parameters = self.guard.loss_scale, list(self.loss_model.parameters())
        loss, nll = accumulate_gradients(
            self.loss_model,
            batches,
            target_tokens=target_tokens,
            device=self.device,
            precision=self.precision,
            world_size=self.world_size,
            loss_scale=1.0 if loss_scale is None else loss_scale.value,
            graphs=self.graphs,
        )
        if loss_scale is not None:
            loss_scale.unscale(parameters)
        norm = whole_tensor(nn.utils.clip_grad_norm_(parameters, self.clip_norm or math.inf))
        self.guard.step(self.optimizer, norm)
        self.optimizer.zero_grad(set_to_none=self.graphs is None)
        return StepResult(loss, nll, norm)


@contextmanager
def named_errors(what: str, remedy: str) -> Generator[None]:
    """Turns errors for lack of memory, or of what `torch.compile` needs, into a `UserError`."""
    with named_memory_error(what, remedy):
        try:
            yield
        except RuntimeError as error:
            # Recognised by its module: importing the class takes a second, whether anything is compiled or not.
            if not type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
                raise
            lines = [line.strip() for line in str(error).splitlines()]
            lines = [line for line in lines if line and not line.endswith("raised:")]
            raise UserError(
                f"torch.compile failed: {' '.join(lines[:1])}\n"
                "install a C++ compiler if none is found, or set training.compile=never"
            ) from error
