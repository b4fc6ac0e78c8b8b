"""One run on one process and on several: the same losses, the same weights, every pair once."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from several import assert_near, forked, in_processes, losses, short_run, weights
from starting import ALONE, CPU, VOCABULARY, checkpoints_of, restore, training_config
from torch.distributed import HashStore

from endeavour import train
from endeavour.data.dataset import ParallelDataset
from endeavour.data.tokenizer import Tokenizer
from endeavour.errors import RunError, UserError
from endeavour.training.checkpoint import checkpoints_in
from endeavour.training.distributed import Ranks, _agree_on_group, check_local_rank, join_ranks
from endeavour.training.signals import Interrupted
from random_models import fresh


def test_processes_that_are_started_again_do_not_meet_the_dead() -> None:
    store = HashStore()
    # What an earlier start left in torchrun's store, a meeting that took place among it.
    for key, value in {"name/0": "a", "name/1": "b", "names": "a,b", "a/b": "found"}.items():
        store.set(key, value)
    met: dict[int, str] = {}

    def come(rank: int, late: float) -> None:
        time.sleep(late)
        met[rank] = _agree_on_group(store, rank, 3, 30)

    threads = [threading.Thread(target=come, args=(rank, 0.2 * rank)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(met.values())) == 1
    assert met[0] not in "ab"


def test_a_process_that_does_not_come_is_waited_for_no_longer_than_asked() -> None:
    with pytest.raises(RunError, match="not all 2 processes of this run started within"):
        _agree_on_group(HashStore(), 0, 2, 0.2)


def test_each_process_of_a_fresh_run_draws_its_own_random_numbers(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    draws: list[float] = []
    for rank, count in ((0, 1), (0, 2), (1, 2)):
        checkpoints = checkpoints_of(tmp_path, tokenizer)
        restore(checkpoints, fresh(VOCABULARY), training_config(), Ranks(rank, count, CPU))
        draws.append(float(torch.rand(())))
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("count", [2, 4])
def test_the_number_of_processes_does_not_change_the_run(
    count: int, accumulate: int, tmp_path: Path, uneven_data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    override = f"training.accumulate={accumulate}"
    short_run(tmp_path / "one", uneven_data, tokenizer, ALONE, override)
    codes = in_processes(
        count, lambda ranks: short_run(tmp_path / "many", uneven_data, tokenizer, ranks, override) and None
    )
    assert codes == [0] * count
    np.testing.assert_allclose(losses(tmp_path / "many"), losses(tmp_path / "one"), rtol=2e-4)
    assert_near(weights(tmp_path / "many"), weights(tmp_path / "one"))


@pytest.mark.filterwarnings("ignore")  # torch.compile warns of its own insides
@pytest.mark.slow
def test_compiled_processes_make_the_run_that_one_makes_uncompiled(
    tmp_path: Path, uneven_data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    short_run(tmp_path / "one", uneven_data, tokenizer)

    def compiled(ranks: Ranks) -> None:
        short_run(tmp_path / "two", uneven_data, tokenizer, ranks, "training.compile=always")

    assert in_processes(2, compiled, timeout_seconds=400) == [0, 0]
    np.testing.assert_allclose(losses(tmp_path / "two"), losses(tmp_path / "one"), rtol=2e-4)
    assert_near(weights(tmp_path / "two"), weights(tmp_path / "one"))


def test_processes_part_together_and_stay_joined_no_longer(tmp_path: Path) -> None:
    def work(ranks: Ranks) -> None:
        ranks.leave()
        assert not torch.distributed.is_initialized()
        if ranks.main:
            time.sleep(0.5)  # as when it evaluates
        (tmp_path / f"{ranks.rank}").write_text("on its own")

    assert in_processes(2, work) == [0, 0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1"]


def test_a_process_that_torchrun_started_alone_joins_again_after_it_left() -> None:
    def work() -> None:
        for _ in range(2):
            with join_ranks(torch.device("cpu"), 60) as ranks:
                ranks.leave()
                assert not torch.distributed.is_initialized()

    assert forked(1, work) == [0]


def test_a_script_has_the_finished_run_in_every_process(
    tmp_path: Path, parallel_files: list[str], folders: list[str]
) -> None:
    def script() -> None:
        run = train([*parallel_files, *folders, "name=run"])
        (tmp_path / os.environ["RANK"]).write_text(json.dumps(run.summary["test"]))

    assert forked(2, script) == [0, 0]
    assert (tmp_path / "0").read_text() == (tmp_path / "1").read_text() != ""


def test_each_process_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "1")
    check_local_rank(torch.device("cuda"))
    monkeypatch.setenv("LOCAL_RANK", "2")
    check_local_rank(torch.device("cpu"))
    with pytest.raises(UserError, match="--nproc-per-node=2"):
        check_local_rank(torch.device("cuda"))


def test_processes_that_died_go_on_to_the_bit_each_with_its_own_dropout(
    tmp_path: Path, uneven_data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    def start(name: str, after: Callable[[int], None] = lambda update: None) -> list[int]:
        return in_processes(
            2,
            lambda ranks: (
                short_run(tmp_path / name, uneven_data, tokenizer, ranks, after=after, dropout=0.1) and None
            ),
        )

    assert start("whole") == [0, 0]
    assert start("cut", after=lambda update: os._exit(9) if update == 8 else None) == [9, 9]
    assert checkpoints_in(tmp_path / "cut")[-1].name == "update-00000006"
    assert start("cut") == [0, 0]
    assert torch.equal(weights(tmp_path / "cut"), weights(tmp_path / "whole"))


def test_a_run_goes_on_with_another_number_of_processes_and_says_so(
    tmp_path: Path, uneven_data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    short_run(tmp_path / "whole", uneven_data, tokenizer)

    def power_cut(update: int) -> None:
        if update == 8:
            os._exit(9)

    codes = in_processes(
        2, lambda one: short_run(tmp_path / "cut", uneven_data, tokenizer, one, after=power_cut) and None
    )
    assert codes == [9, 9]
    (note,) = short_run(tmp_path / "cut", uneven_data, tokenizer)
    assert "2 processes" in note
    assert "now there are 1" in note
    assert_near(weights(tmp_path / "cut"), weights(tmp_path / "whole"))


def test_a_signal_to_one_process_stops_all_after_the_same_update(
    tmp_path: Path, uneven_data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    short_run(tmp_path / "whole", uneven_data, tokenizer)

    def work(ranks: Ranks) -> None:
        def after(update: int) -> None:
            if update == 4 and ranks.rank == 1:
                os.kill(os.getpid(), signal.SIGTERM)

        try:
            short_run(tmp_path / "cut", uneven_data, tokenizer, ranks, after=after)
        except Interrupted as stop:
            (tmp_path / f"stopped-{ranks.rank}").write_text(str(stop))

    assert in_processes(2, work) == [0, 0]
    assert all((tmp_path / f"stopped-{rank}").is_file() for rank in range(2))
    (stopped,) = checkpoints_in(tmp_path / "cut")
    state = json.loads((stopped / "state.json").read_text())
    assert len(state["random"]) == 2
    assert 4 <= state["state"]["update"] <= 5
    assert in_processes(2, lambda one: short_run(tmp_path / "cut", uneven_data, tokenizer, one) and None) == [
        0,
        0,
    ]
    assert_near(weights(tmp_path / "cut"), weights(tmp_path / "whole"))


def test_when_one_process_dies_the_other_ends_soon(
    tmp_path: Path, uneven_data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    def work(ranks: Ranks) -> None:
        def after(update: int) -> None:
            if update == 3 and ranks.rank == 1:
                os._exit(9)

        short_run(tmp_path, uneven_data, tokenizer, ranks, after=after)

    codes = in_processes(2, work)
    assert codes[1] == 9
    assert codes[0] not in (0, -signal.SIGKILL)  # by itself, with an error
