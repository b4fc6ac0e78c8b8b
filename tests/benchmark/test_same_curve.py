"""The fast path learns what the plain one does: full logits, torch's loss, dropout, attention kernel and Adam."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from endeavour.benchmark.contenders import Ours
from endeavour.benchmark.task import Task
from endeavour.data.batching import Batch, collate
from endeavour.model import attention
from endeavour.model.layers import Dropout
from endeavour.model.transformer import Transformer
from endeavour.special import PAD

MakeTask = Callable[..., Task]


def torch_dropout(dropout: Dropout, states: Tensor) -> Tensor:
    return functional.dropout(states, dropout.probability, dropout.training)


def plain_update(
    model: Transformer,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    label_smoothing: float,
    clip_norm: float,
) -> float:
    """One update as in a textbook; returns the mean loss of a token."""
    optimizer.zero_grad()
    logits = model(batch.source, batch.target_in)
    loss = functional.cross_entropy(
        logits.flatten(0, 1),
        batch.target_out.flatten(),
        ignore_index=PAD,
        label_smoothing=label_smoothing,
    )
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
    optimizer.step()
    return loss.item()


def curves(task: Task, monkeypatch: pytest.MonkeyPatch) -> tuple[Tensor, Tensor]:
    """Losses a token, update by update, of the fast and of the plain path from the same weights."""
    dataset = task.dataset()
    settings = task.settings
    torch.manual_seed(task.seed)
    ours = Ours(task, torch.float32)
    plain = Transformer(
        task.model, source_vocabulary=task.vocabularies[0], target_vocabulary=task.vocabularies[1]
    )
    plain.load_state_dict(ours.model.state_dict())
    optimizer = torch.optim.Adam(
        plain.parameters(),
        lr=settings.learning_rate,
        betas=(settings.adam_beta1, settings.adam_beta2),
        eps=settings.adam_epsilon,
        fused=False,
    )
    fast: list[float] = []
    for rows in task.rows:
        batch = collate(dataset, rows)
        fast.append(float(ours.update(batch)) / batch.target_tokens)
    monkeypatch.setattr(attention, "PLAIN_SCORES", 0)
    monkeypatch.setattr(Dropout, "forward", torch_dropout)
    slow = [
        plain_update(
            plain, optimizer, collate(dataset, rows), settings.label_smoothing, settings.clip_norm or 1e9
        )
        for rows in task.rows
    ]
    return torch.tensor(fast), torch.tensor(slow)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_without_dropout_the_losses_are_equal(
    norm: str, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropouts = ("model.dropout=0", "model.embedding_dropout=0")
    fast, slow = curves(make_task(f"model.norm={norm}", *dropouts, updates=12), monkeypatch)
    assert fast[-1] < fast[0] - 0.05
    torch.testing.assert_close(fast, slow, rtol=2e-4, atol=0)


def test_with_dropout_the_losses_are_alike(make_task: MakeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch rounds probabilities otherwise and draws other numbers: means agree, single updates do not."""
    dropouts = [f"model.{kind}=0.1" for kind in ("dropout", "embedding_dropout", "attention_dropout")]
    fast, slow = curves(make_task(*dropouts, updates=60), monkeypatch)
    assert not torch.equal(fast, slow)
    assert abs(float((fast - slow)[30:].mean())) < 0.1 * float(slow[0] - slow[30:].mean())


@pytest.mark.slow
def test_with_dropout_a_long_run_ends_alike(make_task: MakeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = ("model.width=64", "model.feed_forward=128", "model.dropout=0.3", "model.embedding_dropout=0.3")
    fast, slow = curves(make_task(*sizes, updates=1500), monkeypatch)
    ends = [float(losses[-300:].mean()) for losses in (fast, slow)]
    assert abs(ends[0] - ends[1]) < 0.03 * ends[1]
