"""One run on one process and on several: the same losses, the same weights, every pair once."""

import json
import multiprocessing
import os
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from silent import SilentMonitor
from torch.distributed import HashStore

from configs import run_config
from endeavour.data.dataset import ParallelDataset, save_rows
from endeavour.data.tokenizer import Tokenizer
from endeavour.errors import RunError
from endeavour.model.transformer import Transformer
from endeavour.special import PAD
from endeavour.training.checkpoint import checkpoints_in
from endeavour.training.distributed import Ranks, _agree_on_group, join_ranks
from endeavour.training.log import MetricLog
from endeavour.training.loop import train
from endeavour.training.monitor import Validation
from endeavour.training.optimizer import make_optimizer
from endeavour.training.signals import Interrupted
from endeavour.training.state import Checkpoints
from endeavour.training.updates import updates

VOCABULARY = 300
PAIRS = 70


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> ParallelDataset:
    folder = tmp_path_factory.mktemp("arrays")
    random = np.random.default_rng(0)
    for side in ("source", "target"):
        rows = [random.integers(4, VOCABULARY, random.integers(2, 9)).tolist() for _ in range(PAIRS)]
        # One pair fills a batch alone, so that some process has nothing to predict.
        rows[0] = random.integers(4, VOCABULARY, 60).tolist()
        save_rows(folder / f"train.{side}", rows, vocabulary_size=VOCABULARY)
    return ParallelDataset.open(folder, "train")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def in_processes(count: int, work: Callable[[Ranks], None], timeout_seconds: float = 60) -> list[int]:
    """Runs `work` in `count` forks, joined as torchrun would join them. Returns their exit codes."""
    port = free_port()

    def one(rank: int) -> None:
        torch.set_num_threads(1)
        os.environ |= {
            "TORCHELASTIC_RUN_ID": "test",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "RANK": str(rank),
            "WORLD_SIZE": str(count),
            "LOCAL_RANK": str(rank),
        }
        try:
            with join_ranks(torch.device("cpu"), timeout_seconds) as ranks:
                work(ranks)
        except (
            Exception
        ):  # as the command line ends: at a usual end a fork might wait for threads that it lacks
            traceback.print_exc()
            os._exit(1)

    context = multiprocessing.get_context("fork")
    children = [context.Process(target=one, args=(rank,)) for rank in range(count)]
    for child in children:
        child.start()
    for child in children:
        child.join(timeout_seconds)
        if child.is_alive():
            child.kill()
            child.join()
    return [child.exitcode or 0 for child in children]


def run(
    folder: Path,
    data: ParallelDataset,
    tokenizer: Tokenizer,
    ranks: Ranks,
    *overrides: str,
    after: Callable[[int], None] = lambda update: None,
    dropout: float = 0.0,
) -> list[str]:
    """One start of a run, as the train stage makes it. Returns the notes of the restart."""
    small = ["training.tokens_per_batch=128", "training.log_every=1", "training.validate_every=6"]
    config = run_config(["training=smoke", *small, "training.max_updates=12", *overrides]).training
    layout = run_config(["model=tiny", "model.width=16", "model.feed_forward=32", "model.num_heads=2"]).model
    layout.encoder_layers = layout.decoder_layers = 1
    layout.dropout = layout.embedding_dropout = dropout
    torch.manual_seed(1)
    model = Transformer(layout, source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY)
    optimizer = make_optimizer(model, config)
    folder.mkdir(exist_ok=True)
    checkpoints = Checkpoints(folder, (tokenizer, tokenizer), keep_last=2, keep_best=1)
    state, notes = checkpoints.restore_newest(model, optimizer, rank=ranks.rank, count=ranks.count)
    validations: list[int] = []

    def validate(_: Transformer) -> Validation:
        assert ranks.main
        validations.append(1)
        return Validation(loss=float(len(validations)), perplexity=1.0, bleu=1.0, samples=[])

    train(
        model,
        data,
        config,
        seed=1,
        precision=torch.float32,
        ranks=ranks,
        optimizer=optimizer,
        state=state,
        checkpoints=checkpoints,
        monitor=SilentMonitor(MetricLog(folder / "log.jsonl" if ranks.main else Path(os.devnull)), after),
        validate=validate,
    )
    return notes


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
        torch.manual_seed(1)
        layout = run_config(["model=tiny", "model.width=16", "model.feed_forward=32"]).model
        model = Transformer(layout, source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY)
        config = run_config(["training=smoke"]).training
        checkpoints = Checkpoints(tmp_path, (tokenizer, tokenizer), keep_last=1, keep_best=1)
        checkpoints.restore_newest(model, make_optimizer(model, config), rank=rank, count=count)
        draws.append(float(torch.rand(())))
    assert draws[0] == draws[1] != draws[2]


def losses(folder: Path) -> list[tuple[float, float]]:
    lines = MetricLog(folder / "log.jsonl").read()
    return [(line["loss"], line["gradient_norm"]) for line in lines if line["kind"] == "train"]


def weights(folder: Path) -> torch.Tensor:
    newest = load_file(checkpoints_in(folder)[-1] / "weights.safetensors")
    return torch.cat([newest[name].flatten() for name in sorted(newest)])


def assert_near(one: torch.Tensor, other: torch.Tensor) -> None:
    """Equal but for rounding; where a gradient is nought in theory (biases of keys) Adam makes steps of its noise."""
    assert float((one - other).norm() / other.norm()) < 5e-3


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("count", [2, 4])
def test_the_number_of_processes_does_not_change_the_run(
    count: int, accumulate: int, tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    override = f"training.accumulate={accumulate}"
    run(tmp_path / "one", data, tokenizer, Ranks(0, 1, torch.device("cpu")), override)
    codes = in_processes(
        count, lambda ranks: run(tmp_path / "many", data, tokenizer, ranks, override) and None
    )
    assert codes == [0] * count
    np.testing.assert_allclose(losses(tmp_path / "many"), losses(tmp_path / "one"), rtol=2e-4)
    assert_near(weights(tmp_path / "many"), weights(tmp_path / "one"))


@pytest.mark.filterwarnings("ignore")  # torch.compile warns of its own insides
@pytest.mark.slow
def test_compiled_processes_make_the_run_that_one_makes_uncompiled(
    tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    run(tmp_path / "one", data, tokenizer, Ranks(0, 1, torch.device("cpu")))

    def compiled(ranks: Ranks) -> None:
        run(tmp_path / "two", data, tokenizer, ranks, "training.compile=always")

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


def test_processes_that_died_go_on_to_the_bit_each_with_its_own_dropout(
    tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    def start(name: str, after: Callable[[int], None] = lambda update: None) -> list[int]:
        return in_processes(
            2,
            lambda ranks: run(tmp_path / name, data, tokenizer, ranks, after=after, dropout=0.1) and None,
        )

    assert start("whole") == [0, 0]
    assert start("cut", after=lambda update: os._exit(9) if update == 8 else None) == [9, 9]
    assert checkpoints_in(tmp_path / "cut")[-1].name == "update-00000006"
    assert start("cut") == [0, 0]
    assert torch.equal(weights(tmp_path / "cut"), weights(tmp_path / "whole"))


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_shares_of_an_update_are_its_pairs_each_once(count: int, data: ParallelDataset) -> None:
    def stream(rank: int, of: int) -> Iterator[list[tuple[int, ...]]]:
        for update in updates(
            data, tokens_per_batch=128, accumulate=1, seed=1, epoch=0, position=0, rank=rank, count=of
        ):
            (batch,) = update.batches
            rows = [tuple(row[row != PAD].tolist()) for row in batch.target_out]
            yield [row for row in rows if row]

    whole = islice(stream(0, 1), 20)
    shares = zip(*(islice(stream(rank, count), 20) for rank in range(count)), strict=True)
    for rows, parts in zip(whole, shares, strict=True):
        assert sorted(rows) == sorted(row for part in parts for row in part)


def test_a_run_goes_on_with_another_number_of_processes_and_says_so(
    tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    alone = Ranks(0, 1, torch.device("cpu"))
    run(tmp_path / "whole", data, tokenizer, alone)

    def power_cut(update: int) -> None:
        if update == 8:
            os._exit(9)

    codes = in_processes(2, lambda one: run(tmp_path / "cut", data, tokenizer, one, after=power_cut) and None)
    assert codes == [9, 9]
    (note,) = run(tmp_path / "cut", data, tokenizer, alone)
    assert "2 processes" in note
    assert "now there are 1" in note
    assert_near(weights(tmp_path / "cut"), weights(tmp_path / "whole"))


def test_a_signal_to_one_process_stops_all_after_the_same_update(
    tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    alone = Ranks(0, 1, torch.device("cpu"))
    run(tmp_path / "whole", data, tokenizer, alone)

    def work(ranks: Ranks) -> None:
        def after(update: int) -> None:
            if update == 4 and ranks.rank == 1:
                os.kill(os.getpid(), signal.SIGTERM)

        try:
            run(tmp_path / "cut", data, tokenizer, ranks, after=after)
        except Interrupted as stop:
            (tmp_path / f"stopped-{ranks.rank}").write_text(str(stop))

    assert in_processes(2, work) == [0, 0]
    assert all((tmp_path / f"stopped-{rank}").is_file() for rank in range(2))
    (stopped,) = checkpoints_in(tmp_path / "cut")
    state = json.loads((stopped / "state.json").read_text())
    assert len(state["random"]) == 2
    assert 4 <= state["state"]["update"] <= 5
    assert in_processes(2, lambda one: run(tmp_path / "cut", data, tokenizer, one) and None) == [0, 0]
    assert_near(weights(tmp_path / "cut"), weights(tmp_path / "whole"))


def test_when_one_process_dies_the_other_ends_soon(
    tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    def work(ranks: Ranks) -> None:
        def after(update: int) -> None:
            if update == 3 and ranks.rank == 1:
                os._exit(9)

        run(tmp_path, data, tokenizer, ranks, after=after)

    started = time.monotonic()
    codes = in_processes(2, work)
    assert codes[1] == 9
    assert codes[0] not in (0, -signal.SIGKILL)  # by itself, with an error
    assert time.monotonic() - started < 30
