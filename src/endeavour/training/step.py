"""One update's arithmetic: ids to loss to gradients.

Knows a model, its loss and batches; not their order, schedules or files.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from endeavour.data.batching import Batch
from endeavour.errors import UserError, named_memory_error
from endeavour.model.transformer import Transformer
from endeavour.training.loss import projected_loss
from endeavour.training.precision import autocast

COMPILE = ("auto", "always", "never")
SMALLER_BATCHES = (
    "lower training.tokens_per_batch (and raise training.accumulate by as much) or choose a smaller model, "
    "for a run under another name=…"
)


class LossModel(nn.Module):
    """A model and its loss in one: what is differentiated.

    Args:
        compiled: the layers run through `torch.compile`, with one graph for batches of all shapes.
    """

    def __init__(
        self,
        model: Transformer,
        *,
        label_smoothing: float,
        compiled: bool = False,
    ) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self._states: Callable[[Tensor, Tensor], Tensor] = self._plain_states
        if compiled:
            # Or in several processes each some 25 MB of weights become a graph of their own, for every new shape.
            torch._dynamo.config.optimize_ddp = False  # pyright: ignore[reportPrivateUsage]
            self._states = torch.compile(self._plain_states, dynamic=True)

    def forward(self, source: Tensor, target_in: Tensor, target_out: Tensor) -> tuple[Tensor, Tensor]:
        """Ids of a `Batch` to the sums of loss and negative log-likelihood of `projected_loss`, in nats."""
        return projected_loss(
            self._states(source, target_in),
            self.model.output_weight,
            target_out,
            label_smoothing=self.label_smoothing,
        )

    def _plain_states(self, source: Tensor, target_in: Tensor) -> Tensor:
        return self.model.decode(target_in, self.model.encode(source))


def choose_compile(name: str, device: torch.device) -> bool:
    """`auto`: on CUDA. On a CPU compiling takes longer than short runs do, and the result was slower."""
    return device.type == "cuda" if name == "auto" else name == "always"


def accumulate_gradients(
    loss_model: nn.Module,
    batches: Sequence[Batch],
    *,
    target_tokens: int,
    device: torch.device,
    precision: torch.dtype,
    processes: int = 1,
) -> tuple[Tensor, Tensor]:
    """Adds to the gradients those of the summed loss of `batches` over `target_tokens`.

    However the tokens are divided into batches and processes, the gradient is that of one large batch.

    Args:
        loss_model: a `LossModel`, or one in DistributedDataParallel.
        batches: this process's, on the host.
        target_tokens: of the update, over all batches and processes.
        processes: how many there are; DistributedDataParallel takes the mean of their gradients.

    Returns:
        Sums of loss and negative log-likelihood over `batches` (nats, on `device`, not waited for).
    Raises:
        UserError: a batch does not fit into memory, or the model cannot be compiled.
    """
    loss_sum = torch.zeros((), device=device)
    likelihood_sum = torch.zeros((), device=device)
    for number, batch in enumerate(batches, start=1):
        pairs, source = batch.source.shape
        shape = f"a batch of {pairs} pairs of {source} and {batch.target_out.shape[1]} tokens"
        batch = batch.to(device)
        # Gradients are exchanged once, with the last batch.
        last = number == len(batches) or not isinstance(loss_model, DistributedDataParallel)
        with nullcontext() if last else cast(Any, loss_model).no_sync(), named_errors(shape):
            with autocast(device, precision):
                loss, likelihood = loss_model(batch.source, batch.target_in, batch.target_out)
            (loss * processes / target_tokens).backward()
        loss_sum += loss.detach()
        likelihood_sum += likelihood
    return loss_sum, likelihood_sum


@contextmanager
def named_errors(what: str) -> Generator[None]:
    """Turns want of memory, and of what `torch.compile` needs, into a `UserError`."""
    with named_memory_error(what, SMALLER_BATCHES):
        try:
            yield
        except RuntimeError as error:
            # By its home: to import that for its name takes a second, whether anything is compiled or not.
            if not type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
                raise
            lines = [line.strip() for line in str(error).splitlines()]
            lines = [line for line in lines if line and not line.endswith("raised:")]
            raise UserError(
                f"torch.compile failed: {' '.join(lines[:1])}\n"
                "install a C++ compiler if none is found, or set training.compile=never"
            ) from error
