"""A model with its optimizer: ours as `endeavour train` runs it, and the references as their users would.

Ours is `accumulate_gradients`, clipping and the optimizer of the config; a reference computes the logits of the whole
batch, `cross_entropy`, clipping and torch's Adam. Knows batches; not their order, nor clocks.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional

from endeavour.benchmark.config import OURS
from endeavour.benchmark.references import reference
from endeavour.benchmark.task import Task
from endeavour.data.batching import Batch
from endeavour.errors import UserError, first_line
from endeavour.model.attention import prepare_kernels
from endeavour.model.transformer import Transformer
from endeavour.special import PAD
from endeavour.training import loss_scale
from endeavour.training.graphs import Graphs, choose_graphs
from endeavour.training.loss_scale import LossScale
from endeavour.training.optimizer import NonFiniteGuard, make_optimizer
from endeavour.training.precision import DTYPES, autocast
from endeavour.training.step import LossModel, Updater, choose_compile
from endeavour.training.updates import prefetch

REMEDY = (
    "choose smaller bench.sizes, bench.tokens_per_batch or bench.growth_batches, or set bench.compile or "
    "bench.cuda_graphs to never"
)


class Ours:
    """The update of `training.loop`, without its log, schedule and checkpoints."""

    def __init__(self, task: Task, precision: torch.dtype) -> None:
        source, target = task.vocabularies
        self.model = Transformer(task.model, source_vocabulary=source, target_vocabulary=target)
        self.model.to(task.device).train()
        settings = task.settings
        tokens = settings.tokens_per_batch
        self.slower = prepare_kernels(task.device)  # why it is slower than it could be
        self.graphed = choose_graphs(settings.cuda_graphs, task.device, self.model, tokens=tokens, alone=True)
        compiled = choose_compile(settings.compile, task.device, graphed=self.graphed)
        # How often it trains on a batch before all that is made for its shape is there.
        self.passes = 2 if self.graphed else int(compiled)
        scale = LossScale(loss_scale.FIRST, 0, task.device) if precision == torch.float16 else None
        self._updater = Updater(
            loss_model=LossModel(self.model, label_smoothing=settings.label_smoothing, compiled=compiled),
            optimizer=make_optimizer(self.model, settings),
            guard=NonFiniteGuard(0, task.device, loss_scale=scale),
            clip_norm=settings.clip_norm,
            device=task.device,
            precision=precision,
            graphs=Graphs(self.model, task.device) if self.graphed else None,
        )
        self.task = task

    def read(self, batches: Iterator[Batch]) -> AbstractContextManager[Iterator[Batch]]:
        """The batches as the loop reads them: for a GPU in a thread of their own."""
        kind = self.task.device.type
        if kind == "cpu":
            return nullcontext(batches)
        return prefetch(batch.pin_memory() for batch in batches) if kind == "cuda" else prefetch(batches)

    def update(self, batch: Batch) -> Tensor:
        """One update; returns the loss summed over target tokens, not waited for."""
        try:
            return self._updater.update([batch], batch.target_tokens).loss
        except UserError as error:  # whose remedies are keys of training
            raise UserError(f"{first_line(error)}\n{REMEDY}") from error


class Plain:
    """A reference, trained as its users do: logits of the whole batch, `cross_entropy`, Adam."""

    graphed = False
    passes = 0
    slower: str | None = None

    def __init__(self, name: str, task: Task, precision: torch.dtype) -> None:
        self.model = reference(name, task.model, task.vocabularies).to(task.device).train()
        settings = task.settings
        self._optimizer = torch.optim.Adam(
            self.model.parameters(),
            lr=settings.learning_rate,
            betas=(settings.adam_beta1, settings.adam_beta2),
            eps=settings.adam_epsilon,
        )
        self._scaler = torch.amp.GradScaler(task.device.type, enabled=precision == torch.float16)
        self._precision = precision
        self.task = task

    def read(self, batches: Iterator[Batch]) -> AbstractContextManager[Iterator[Batch]]:
        """The batches, each read when it is asked for."""
        return nullcontext(batches)

    def update(self, batch: Batch) -> Tensor:
        """See `Ours.update`."""
        settings, tokens = self.task.settings, batch.target_tokens
        batch = batch.to(self.task.device)
        self._optimizer.zero_grad()
        with autocast(self.task.device, self._precision):
            logits = self.model(batch.source, batch.target_in)
            loss = functional.cross_entropy(
                logits.flatten(0, 1),
                batch.target_out.flatten(),
                ignore_index=PAD,
                label_smoothing=settings.label_smoothing,
            )
        self._scaler.scale(loss).backward()
        self._scaler.unscale_(self._optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip_norm or math.inf)
        self._scaler.step(self._optimizer)
        self._scaler.update()
        return loss.detach() * tokens


Contender = Ours | Plain


def training_contenders(references: Sequence[str], precisions: Sequence[str]) -> list[str]:
    """`endeavour fp32`, …: ours and those references that train, each in each precision."""
    toolkits = [OURS, *(name for name in references if name != "ctranslate2")]
    return [f"{toolkit} {precision}" for toolkit in toolkits for precision in precisions]


def make_contender(name: str, task: Task) -> Contender:
    """One of `training_contenders`, with fresh weights drawn from the task's seed."""
    toolkit, precision = name.split()
    torch.manual_seed(task.seed)
    dtype = DTYPES[precision]
    return Ours(task, dtype) if toolkit == OURS else Plain(toolkit, task, dtype)
