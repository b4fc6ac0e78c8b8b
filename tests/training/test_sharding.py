"""Sharded runs are the runs that others make, their files are the same, and each process holds its part."""

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch._dynamo  # with the next, here: so that not every process takes seconds for it
import torch.distributed.fsdp
from several import assert_near, forked, in_processes, losses, short_run, weights
from starting import ALONE, VOCABULARY, checkpoints_of, restore, training_config
from torch import Tensor

from commands import endeavour
from endeavour.data.dataset import ParallelDataset
from endeavour.data.tokenizer import Tokenizer
from endeavour.training.checkpoint import checkpoints_in
from endeavour.training.distributed import Ranks
from endeavour.training.sharding import shard
from endeavour.training.step import LossModel
from random_models import fresh

SHARDED, WHOLE = "training.sharded=true", "training.sharded=false"


def power_cut_at(last: int) -> Callable[[int], None]:
    return lambda update: os._exit(9) if update == last else None


@pytest.mark.parametrize(("count", "accumulate"), [(2, 1), (3, 2)])
def test_sharding_does_not_change_the_run(
    count: int, accumulate: int, tmp_path: Path, uneven_data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    """Also where the rows of most weights cannot be divided equally, as among three."""
    overrides = (f"training.accumulate={accumulate}", "training.max_updates=6")
    short_run(tmp_path / "one", uneven_data, tokenizer, ALONE, *overrides)
    codes = in_processes(
        count, lambda ranks: short_run(tmp_path / "many", uneven_data, tokenizer, ranks, *overrides, SHARDED)
    )
    assert codes == [0] * count
    np.testing.assert_allclose(losses(tmp_path / "many"), losses(tmp_path / "one"), rtol=2e-4)
    assert_near(weights(tmp_path / "many"), weights(tmp_path / "one"))


@pytest.mark.parametrize(("first", "then"), [(SHARDED, WHOLE), (WHOLE, SHARDED)])
def test_two_processes_go_on_sharded_or_not_to_the_bit(
    first: str, then: str, tmp_path: Path, uneven_data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    """With dropout. Gradients are not clipped: their norm is summed in another order where they are sharded."""

    def start(name: str, sharded: str, cut: bool = False) -> list[int]:
        overrides = (sharded, "training.clip_norm=null")
        after = power_cut_at(8 if cut else -1)
        return in_processes(
            2,
            lambda ranks: short_run(
                tmp_path / name, uneven_data, tokenizer, ranks, *overrides, after=after, dropout=0.1
            ),
        )

    assert start("whole", WHOLE) == [0, 0]
    assert start("cut", first, cut=True) == [9, 9]
    assert checkpoints_in(tmp_path / "cut")[-1].name == "update-00000006"
    assert start("cut", then) == [0, 0]
    assert torch.equal(weights(tmp_path / "cut"), weights(tmp_path / "whole"))


def test_a_sharded_run_goes_on_with_another_number_of_processes(
    tmp_path: Path, uneven_data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    """Two that are cut off, three that are, and one alone."""
    short_run(tmp_path / "one", uneven_data, tokenizer)
    cut = tmp_path / "cut"
    assert in_processes(
        2, lambda ranks: short_run(cut, uneven_data, tokenizer, ranks, SHARDED, after=power_cut_at(8))
    ) == [9, 9]
    more = (SHARDED, "training.validate_every=3")
    codes = in_processes(
        3, lambda ranks: short_run(cut, uneven_data, tokenizer, ranks, *more, after=power_cut_at(11))
    )
    assert codes == [9, 9, 9]
    assert checkpoints_in(cut)[-1].name == "update-00000009"
    (note,) = short_run(cut, uneven_data, tokenizer)
    assert "3 processes" in note
    assert_near(weights(cut), weights(tmp_path / "one"))


def stored(tensors: Iterable[Tensor]) -> int:
    """Bytes that this process keeps in memory for them; some share what is counted once."""
    parts = [tensor.to_local().untyped_storage() for tensor in tensors]  # type: ignore[attr-defined]
    return sum({part.data_ptr(): part.nbytes() for part in parts}.values())


def test_each_of_two_processes_holds_half_of_weights_gradients_and_optimizer_state(
    tmp_path: Path, uneven_data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    short_run(tmp_path / "run", uneven_data, tokenizer)

    def work(ranks: Ranks) -> None:
        model = fresh(VOCABULARY)
        size = 4 * sum(parameter.numel() for parameter in model.parameters())
        shard(model, ranks.device, ranks.count)
        checkpoints = checkpoints_of(tmp_path / "run", tokenizer)
        optimizer, *_ = restore(checkpoints, model, training_config(), ranks)
        ids = torch.tensor([[5, 3]])
        for _ in range(2):
            LossModel(model, label_smoothing=0.1)(ids, ids, ids)[0].backward()
            optimizer.step()
        moments = [state[name] for state in optimizer.state.values() for name in ("exp_avg", "exp_avg_sq")]
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        held = {
            "weights": stored(model.parameters()),
            "gradients": stored(gradients),
            "moments": stored(moments),
        }
        parts = {name: bytes / size for name, bytes in held.items()}
        (tmp_path / f"{ranks.rank}.json").write_text(json.dumps(parts))

    assert in_processes(2, work) == [0, 0]
    for rank in range(2):
        assert json.loads((tmp_path / f"{rank}.json").read_text()) == pytest.approx(
            {"weights": 0.5, "gradients": 0.5, "moments": 1.0}, rel=0.01
        )


def test_a_sharded_run_is_rehearsed_validated_averaged_and_evaluated_like_others(
    parallel_files: list[str], folders: list[str], tmp_path: Path
) -> None:
    settings = [
        *parallel_files,
        *folders,
        "training.preflight=true",
        "model.dropout=0",
        "model.embedding_dropout=0",
    ]
    assert endeavour("train", *settings, "name=alone") == 0
    codes = forked(2, lambda: os._exit(endeavour("train", *settings, "name=two", SHARDED)))
    assert codes == [0, 0]
    summaries = [
        json.loads((tmp_path / "outputs" / name / "summary.json").read_text()) for name in ("alone", "two")
    ]
    assert summaries[0]["checkpoints"] == summaries[1]["checkpoints"]
    one, two = (summary["validation"] for summary in summaries)
    assert two["loss"] == pytest.approx(one["loss"], rel=2e-4)
    assert endeavour("evaluate", folders[1], "run=two") == 0


@pytest.mark.parametrize("override", ["training.compile=auto", "training.compile=always"])
def test_one_process_alone_and_compiled_layers_are_refused(
    override: str, folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert endeavour("train", *folders, SHARDED, override) == 2
    said = capsys.readouterr().err
    assert "training.sharded=true" in said
    assert ("torchrun" in said) == (override == "training.compile=auto")
    assert said.count("\n") <= 2
