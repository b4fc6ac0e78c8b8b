"""The mean of checkpoints, unless it is clearly worse than the one that would be taken alone."""

import math
from dataclasses import replace
from typing import Any, cast

import pytest
import torch

from configs import run_config
from endeavour.data.tokenizer_training import train_tokenizer
from endeavour.model.transformer import Transformer
from endeavour.pipeline.final_weights import WORSE, load_final_weights
from endeavour.training.distributed import Ranks
from endeavour.training.state import Checkpoints, TrainState

# Update → value of all weights then; update 6 has the best validation, 3 the next.
VALUES = {3: 1.0, 6: 2.0, 9: 6.0}


class LossNear:
    """A validator whose loss is the distance of the weights from some value, times a factor."""

    def __init__(self, value: float, factor: float) -> None:
        self.value, self.factor = value, factor

    def losses(self, model: Transformer) -> tuple[float, float]:
        assert not model.training
        weights = float(next(model.parameters()).detach().mean())
        return self.factor * abs(weights - self.value), 0.0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Transformer, Checkpoints, TrainState]:
    """A run of three checkpoints, all of them kept, the best two noted."""
    config = run_config(["tokenizer.vocabulary_size=300", "model.width=16", "model.feed_forward=32"])
    tokenizer = train_tokenizer([f"Satz {n} hat Worte wie {n * 7}" for n in range(300)], config.tokenizer)
    model = Transformer(config.model, source_vocabulary=300, target_vocabulary=300)
    optimizer = torch.optim.Adam(model.parameters())
    checkpoints = Checkpoints(
        tmp_path_factory.mktemp("checkpoints"), (tokenizer, tokenizer), keep_last=3, keep_best=2
    )
    state = TrainState()
    for update, value in VALUES.items():
        for parameter in model.parameters():
            parameter.detach().fill_(value)
        state.update = update
        state.note_validation({3: 2.0, 6: 3.0, 9: 1.0}[update], higher_is_better=True, keep=2)
        checkpoints.save(model, optimizer, state, Ranks(0, 1, torch.device("cpu")))
    return model, checkpoints, state


def final(
    run: tuple[Transformer, Checkpoints, TrainState], average: str, validator: LossNear
) -> tuple[float, list[str]]:
    model, checkpoints, state = run
    model.train()
    made_of = load_final_weights(model, average, checkpoints, state, cast(Any, validator))
    values = {float(value) for parameter in model.parameters() for value in parameter.detach().unique()}
    assert len(values) == 1, "weights of several models"
    return values.pop(), [path.name for path in made_of]


def names(*updates: int) -> list[str]:
    return [f"update-{update:08d}" for update in updates]


@pytest.mark.parametrize(
    ("average", "mean", "of", "alone"), [("last", 3.0, (3, 6, 9), 9), ("best", 1.5, (6, 3), 6)]
)
def test_the_mean_is_taken_unless_the_one_alone_is_clearly_better(
    average: str,
    mean: float,
    of: tuple[int, ...],
    alone: int,
    run: tuple[Transformer, Checkpoints, TrainState],
    capsys: pytest.CaptureFixture[str],
) -> None:
    distance = abs(VALUES[alone] - mean)
    assert final(run, average, LossNear(mean, 1.0)) == (mean, names(*of))
    # What is worse by less than says anything is the mean still, and it is not spoken of.
    assert final(run, average, LossNear(VALUES[alone], 0.9 * WORSE / distance)) == (mean, names(*of))
    assert capsys.readouterr().err == ""
    assert final(run, average, LossNear(VALUES[alone], 1.1 * WORSE / distance)) == (
        VALUES[alone],
        names(alone),
    )
    assert names(alone)[0] in capsys.readouterr().err


class NumberOnlyAt(LossNear):
    """A loss of zero at its value, and one that is no number elsewhere."""

    def losses(self, model: Transformer) -> tuple[float, float]:
        loss, nll = super().losses(model)
        return (math.nan if loss else loss), nll


@pytest.mark.parametrize(
    ("number_at", "made_of"), [(VALUES[9], (9,)), (3.0, (3, 6, 9))], ids=["one alone", "the mean"]
)
def test_of_the_mean_and_the_one_alone_that_is_taken_whose_loss_is_a_number(
    number_at: float, made_of: tuple[int, ...], run: tuple[Transformer, Checkpoints, TrainState]
) -> None:
    assert final(run, "last", NumberOnlyAt(number_at, 1.0)) == (number_at, names(*made_of))


def test_the_newest_stands_in_where_the_best_is_gone(
    run: tuple[Transformer, Checkpoints, TrainState], capsys: pytest.CaptureFixture[str]
) -> None:
    model, checkpoints, state = run
    gone = (model, checkpoints, replace(state, best=[(3.0, 100)]))
    assert final(gone, "best", cast(LossNear, None)) == (VALUES[9], names(9))
    assert "best checkpoints are gone" in capsys.readouterr().err


def test_the_best_alone_is_not_measured(run: tuple[Transformer, Checkpoints, TrainState]) -> None:
    assert final(run, "none", cast(LossNear, None)) == (VALUES[6], names(6))
