"""Accumulated gradients, the end of training, and runs that are cut off and go on to the bit."""

import json
import math
import os
import signal
from collections.abc import Callable
from functools import partial
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from silent import SilentMonitor
from starting import (
    CPU,
    VOCABULARY,
    assert_same,
    checkpoints_of,
    make_model,
    no_validation,
    outcome,
    restore,
    run,
    training_config,
)
from torch.nn import functional

from endeavour.data.batching import collate
from endeavour.data.dataset import ParallelDataset, flat, save_rows
from endeavour.data.tokenizer import Tokenizer
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.special import PAD
from endeavour.training import loop, step
from endeavour.training.checkpoint import checkpoints_in
from endeavour.training.config import TrainingConfig
from endeavour.training.distributed import Ranks
from endeavour.training.log import MetricLog
from endeavour.training.loop import Pruned
from endeavour.training.monitor import Validation
from endeavour.training.schedule import learning_rate
from endeavour.training.signals import Interrupted
from endeavour.training.state import Checkpoints
from endeavour.training.step import LossModel, accumulate_gradients
from endeavour.training.updates import updates


def test_the_updates_are_those_of_a_plain_loop(
    device: torch.device, tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    # A large epsilon makes the size of every gradient matter, and hides the noise of those that are zero in theory.
    config = training_config(
        "training.max_updates=8",
        "training.validate_every=8",
        "training.log_every=1",
        "training.accumulate=2",
        "training.learning_rate=1.0",
        "training.warmup_updates=4",
        "training.clip_norm=0.1",
        "training.weight_decay=0.1",
        "training.label_smoothing=0.2",
        "training.adam_epsilon=0.1",
    )
    undropped = [f"model.{kind}=0" for kind in ("dropout", "attention_dropout", "embedding_dropout")]
    run(tmp_path, data, tokenizer, config, overrides=undropped, ranks=Ranks(0, 1, device))
    model = make_model(*undropped)
    optimizer = torch.optim.AdamW(
        [
            {"params": [each for each in model.parameters() if each.ndim > 1], "weight_decay": 0.1},
            {"params": [each for each in model.parameters() if each.ndim == 1], "weight_decay": 0.0},
        ],
        betas=(config.adam_beta1, config.adam_beta2),
        eps=0.1,
    )
    stream = updates(data, tokens_per_batch=128, accumulate=2, seed=1, epoch=0, position=0)
    rates: list[float] = []
    for number, made in enumerate(islice(stream, 8), start=1):
        rates.append(learning_rate(number, config))
        for group in optimizer.param_groups:
            group["lr"] = rates[-1]
        optimizer.zero_grad()
        for batch in made.batches:
            logits = model(batch.source, batch.target_in)
            loss = functional.cross_entropy(
                logits.flatten(0, 1),
                batch.target_out.flatten(),
                ignore_index=PAD,
                reduction="sum",
                label_smoothing=0.2,
            )
            (loss / made.target_tokens).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        assert norm > 0.1
        optimizer.step()
    weights = load_file(checkpoints_in(tmp_path)[-1] / "weights.safetensors")
    torch.testing.assert_close(weights, dict(model.state_dict()), rtol=1e-3, atol=1e-5)
    logged = [
        line["learning_rate"] for line in MetricLog(tmp_path / "log.jsonl").read() if line["kind"] == "train"
    ]
    assert logged == rates


@pytest.mark.parametrize("rounding", [torch.bfloat16, torch.float16])
def test_gradients_are_those_of_fp32_but_for_rounding(
    rounding: torch.dtype, device: torch.device, data: ParallelDataset
) -> None:
    model = make_model().to(device).eval()
    batch = collate(data, list(range(40)))
    gradients: list[torch.Tensor] = []
    for precision in (torch.float32, rounding):
        model.zero_grad()
        accumulate_gradients(
            LossModel(model, label_smoothing=0.1),
            [batch],
            target_tokens=batch.target_tokens,
            device=device,
            precision=precision,
        )
        gradients.append(
            torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None])
        )
    exact, rounded = gradients
    assert rounded.dtype == torch.float32
    assert not torch.equal(exact, rounded)
    assert float((exact - rounded).norm() / exact.norm()) < 0.03


@pytest.mark.filterwarnings("ignore")  # torch.compile warns of its own insides
@pytest.mark.slow  # compiling takes the better part of a minute
def test_compiled_layers_give_the_same_gradients_for_all_shapes(
    device: torch.device, data: ParallelDataset
) -> None:
    gradients: list[torch.Tensor] = []
    for compiled in (False, True):
        model = make_model().to(device).eval()
        loss_model = LossModel(model, label_smoothing=0.1, compiled=compiled)
        batches = [collate(data, list(range(start, start + 10 + start // 2))) for start in range(0, 60, 20)]
        accumulate_gradients(loss_model, batches, target_tokens=100, device=device, precision=torch.float32)
        gradients.append(
            torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None])
        )
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


@pytest.mark.filterwarnings("ignore")  # torch.compile warns of its own insides
@pytest.mark.parametrize(
    ("positions", "first"), [("sinusoidal", (4, 7, 9)), ("rotary", (4, 7, 9)), ("sinusoidal", (64, 9, 9))]
)
def test_off_the_cpu_the_layers_are_one_graph_for_batches_of_all_shapes(
    positions: str, first: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without breaks, which `fullgraph` refuses; `meta` has no values, so nothing in it can depend on any."""
    graphs: list[object] = []

    def counting(graph: torch.fx.GraphModule, _: object) -> Callable[..., object]:
        graphs.append(graph)
        return graph.forward

    compile_ = torch.compile
    monkeypatch.setattr(torch, "compile", partial(compile_, backend=counting, fullgraph=True))
    torch._dynamo.reset()
    with torch.device("meta"):
        model = make_model(f"model.positions={positions}").train()
    loss_model = LossModel(model, label_smoothing=0.1, compiled=True)
    for pairs, source, target in (first, (8, 16, 5), (3, 40, 40), (5, 9, 9), (64, 300, 2)):
        ids = [torch.ones(pairs, length, dtype=torch.int64, device="meta") for length in (source, target)]
        loss_model._states(*ids)
    assert len(graphs) == 1


@pytest.fixture(
    scope="module",
    params=[
        ([], torch.float32),
        (["training.accumulate=3"], torch.float32),
        (["training.r_drop=0.5"], torch.float32),
        ([], torch.float16),
    ],
    ids=["plain", "accumulated", "R-Drop", "fp16"],
)
def whole_run(
    request: pytest.FixtureRequest,
    device: torch.device,
    tmp_path_factory: pytest.TempPathFactory,
    data: ParallelDataset,
    tokenizer: Tokenizer,
) -> tuple[Path, TrainingConfig, torch.dtype]:
    """The folder of a run that nothing stopped, its settings and its precision."""
    overrides, precision = request.param
    folder, config = tmp_path_factory.mktemp("whole"), training_config(*overrides)
    run(folder, data, tokenizer, config, ranks=Ranks(0, 1, device), precision=precision)
    return folder, config, precision


@pytest.mark.parametrize("dies_at", [4, 12])
def test_a_run_that_died_ends_as_if_it_had_not(
    whole_run: tuple[Path, TrainingConfig, torch.dtype],
    dies_at: int,
    device: torch.device,
    tmp_path: Path,
    data: ParallelDataset,
    tokenizer: Tokenizer,
) -> None:
    whole_folder, config, precision = whole_run
    validations = 0

    def die(model: Transformer) -> Validation:
        nonlocal validations
        validations += 1
        if validations * config.validate_every > dies_at:
            raise RuntimeError("power cut")
        return no_validation(model)

    with pytest.raises(RuntimeError, match="power cut"):
        run(tmp_path / "cut", data, tokenizer, config, die, ranks=Ranks(0, 1, device), precision=precision)
    assert (
        json.loads((checkpoints_in(tmp_path / "cut")[-1] / "state.json").read_text())["state"]["update"]
        == dies_at
    )
    run(tmp_path / "cut", data, tokenizer, config, ranks=Ranks(0, 1, device), precision=precision)
    if device.type == "cpu":
        assert_same(whole_folder, tmp_path / "cut")
    else:  # where sums may be taken in another order each time; other draws of dropout would be further away
        (whole, lines), (cut, other_lines) = outcome(whole_folder), outcome(tmp_path / "cut")
        torch.testing.assert_close(whole, cut, rtol=1e-2, atol=1e-4)
        assert len(lines) == len(other_lines)


SIGNALLED = training_config("training.log_every=3", "training.keep_last=3")


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, data: ParallelDataset, tokenizer: Tokenizer
) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    run(folder, data, tokenizer, SIGNALLED)
    return folder


@pytest.mark.usefixtures("not_under_nohup")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_saves_after_the_update_and_loses_none(
    number: signal.Signals, undisturbed: Path, tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer
) -> None:

    def signal_after_6(update: int) -> None:
        if update == 6:  # too late for this one: it is noticed after the next
            os.kill(os.getpid(), number)

    with pytest.raises(Interrupted, match=number.name) as stop:
        run(tmp_path / "cut", data, tokenizer, SIGNALLED, after=signal_after_6)
    assert stop.value.exit_code == 128 + number
    assert checkpoints_in(tmp_path / "cut")[-1].name == "update-00000007-stopped"
    run(tmp_path / "cut", data, tokenizer, SIGNALLED)
    assert_same(undisturbed, tmp_path / "cut")


@pytest.mark.parametrize("updates", [4, 8], ids=["of the last checkpoint", "of another"])
def test_a_signal_during_a_save_is_not_forgotten(
    updates: int, tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = Checkpoints.save

    def save_and_signal(self: Checkpoints, *arguments: Any, **keywords: Any) -> None:
        save(self, *arguments, **keywords)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Checkpoints, "save", save_and_signal)
    config = training_config(f"training.max_updates={updates}")
    with pytest.raises(Interrupted, match="SIGTERM"):
        run(tmp_path, data, tokenizer, config)
    assert [path.name for path in checkpoints_in(tmp_path)] == ["update-00000004"]


def test_a_signal_ends_a_sweep_also_where_its_trial_is_pruned(
    tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    def prune() -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return True

    with pytest.raises(Pruned):
        run(tmp_path / "pruned", data, tokenizer, training_config(), prune=lambda: True)
    with pytest.raises(Interrupted):
        run(tmp_path / "signalled", data, tokenizer, training_config(), prune=prune)


def test_a_damaged_checkpoint_is_passed_over(
    tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    config = training_config()
    run(tmp_path / "whole", data, tokenizer, config)
    run(tmp_path / "cut", data, tokenizer, config)
    newest = checkpoints_in(tmp_path / "cut")[-1]
    weights = bytearray((newest / "weights.safetensors").read_bytes())
    weights[-3] ^= 1
    (newest / "weights.safetensors").write_bytes(weights)
    _, state, notes = restore(checkpoints_of(tmp_path / "cut", tokenizer), make_model(), config)
    assert state.update == 20
    assert len(notes) == 1
    assert "weights.safetensors" in notes[0]
    run(tmp_path / "cut", data, tokenizer, config)
    assert_same(tmp_path / "whole", tmp_path / "cut")


@pytest.mark.parametrize(
    ("metric", "losses", "scores", "best"),
    [
        ("bleu", [1.0] * 6, [1.0, 9.0, 3.0, 4.0, 5.0, 6.0], 9.0),
        ("loss", [5.0, 1.0, 3.0, 4.0, 4.5, 4.7], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 1.0),
    ],
)
def test_keeps_the_last_and_the_best(
    metric: str,
    losses: list[float],
    scores: list[float],
    best: float,
    tmp_path: Path,
    data: ParallelDataset,
    tokenizer: Tokenizer,
) -> None:
    found = (
        Validation(loss=loss, perplexity=1.0, bleu=bleu, samples=[])
        for loss, bleu in zip(losses, scores, strict=True)
    )
    config = training_config("training.keep_last=2", f"training.metric={metric}")
    state = run(tmp_path, data, tokenizer, config, lambda _: next(found))
    assert [path.name[-2:] for path in checkpoints_in(tmp_path)] == ["08", "20", "24"]
    assert state.best == [(best, 8)]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (["training.max_updates=5"], 5),
        (["training.max_updates=null", "training.max_epochs=2", "training.schedule=inverse_sqrt"], None),
        (["training.max_minutes=0.00001"], 1),
        (["training.patience=2"], 12),
    ],
)
def test_ends_at_the_first_limit(
    limit: list[str], expected: int | None, tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    state = run(tmp_path, data, tokenizer, training_config(*limit))
    if expected is None:
        assert (state.epoch, state.position) == (2, 0)
    else:
        assert state.update == expected
    assert checkpoints_in(tmp_path)[-1].name == f"update-{state.update:08d}"


@pytest.mark.parametrize("dies_at", [None, 8, 16])
def test_patience_and_the_best_outlive_a_resume(
    dies_at: int | None, tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer
) -> None:
    updates = count(4, 4)
    losses = {4: 5.0, 8: 1.0, 12: 2.0, 16: 3.0, 20: 4.0, 24: 0.5}
    config = training_config("training.metric=loss", "training.patience=3")

    def validate(model: Transformer) -> Validation:
        nonlocal dies_at, updates
        update = next(updates)
        if update == dies_at:
            dies_at, updates = None, count(update, 4)
            raise RuntimeError("power cut")
        return Validation(loss=losses[update], perplexity=1.0, bleu=1.0, samples=[])

    if dies_at is not None:
        with pytest.raises(RuntimeError, match="power cut"):
            run(tmp_path, data, tokenizer, config, validate)
    state = run(tmp_path, data, tokenizer, config, validate)
    assert state.update == 20
    assert [tuple(entry) for entry in state.best] == [(1.0, 8)]


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds on the loop's clock, which stands still but for what a test does to it."""
    seconds = [0.0]
    # Not in `time` itself: threads of other tests would wait by that clock.
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    return seconds


def test_a_run_whose_time_is_up_during_a_validation_makes_no_further_update(
    tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer, now: list[float]
) -> None:
    def long_validation(model: Transformer) -> Validation:
        now[0] += 100
        return no_validation(model)

    state = run(tmp_path, data, tokenizer, training_config("training.max_minutes=1"), long_validation)
    assert state.update == 4
    assert [path.name for path in checkpoints_in(tmp_path)] == ["update-00000004"]


def test_a_stop_just_before_the_time_is_up_loses_no_update(
    tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer, now: list[float]
) -> None:
    def slow(update: int) -> None:  # as where a GPU is waited for
        if update == 1:
            os.kill(os.getpid(), signal.SIGTERM)  # noticed after the next update
        else:
            now[0] += 100

    config = training_config("training.max_minutes=1")
    with pytest.raises(Interrupted):
        run(tmp_path, data, tokenizer, config, after=slow)
    assert checkpoints_in(tmp_path)[-1].name == "update-00000002-stopped"
    assert run(tmp_path, data, tokenizer, config).update > 2


def test_the_time_of_earlier_starts_counts(
    tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer, now: list[float]
) -> None:
    def long_validation(model: Transformer) -> Validation:
        now[0] += 40
        if now[0] == 80:
            raise RuntimeError("power cut")
        return no_validation(model)

    config = training_config("training.max_minutes=1")
    with pytest.raises(RuntimeError, match="power cut"):
        run(tmp_path, data, tokenizer, config, long_validation)
    now[0] = 1000.0  # another start, with a clock of its own
    assert run(tmp_path, data, tokenizer, config, long_validation).update == 8


def test_attention_is_prepared_and_a_reason_why_it_cannot_be_is_said(
    tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[torch.device] = []
    said: list[str] = []
    for reason in (None, "attention takes longer"):
        monkeypatch.setattr(
            loop, "prepare_kernels", lambda device, reason=reason: asked.append(device) or reason
        )
        monkeypatch.setattr(SilentMonitor, "note", lambda _, text: said.append(text))
        run(tmp_path / str(reason), data, tokenizer, training_config("training.max_updates=1"))
    assert asked == [CPU, CPU]
    assert said == ["attention takes longer"]


def test_divergence_is_said_in_words(tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer) -> None:
    with pytest.raises(
        UserError, match=r"diverged(.|\n)*checkpoint is .*update-(.|\n)*training\.learning_rate"
    ):
        run(
            tmp_path,
            data,
            tokenizer,
            training_config("training.learning_rate=1e30", "training.clip_norm=null"),
        )


def poisoned(monkeypatch: pytest.MonkeyPatch, updates: set[int]) -> None:
    """From now on the gradients of these updates (from 1, counted over all runs) hold a NaN."""
    original = step.accumulate_gradients
    made = count(1)

    def accumulate(loss_model: LossModel, *args: object, **keywords: object) -> object:
        result = original(loss_model, *args, **keywords)  # type: ignore[arg-type]
        if next(made) in updates:
            next(iter(loss_model.parameters())).grad.view(-1)[0] = float("nan")  # type: ignore[union-attr]
        return result

    monkeypatch.setattr(step, "accumulate_gradients", accumulate)


def test_updates_with_gradients_that_are_not_finite_are_skipped_and_counted(
    device: torch.device,
    tmp_path: Path,
    data: ParallelDataset,
    tokenizer: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = training_config("training.max_skipped_updates=3", "training.log_every=4")
    poisoned(monkeypatch, {2, 3, 9})
    run(tmp_path, data, tokenizer, config, ranks=Ranks(0, 1, device))
    tensors, _ = outcome(tmp_path)
    assert all(tensor.isfinite().all() for tensor in tensors.values())
    steps = [tensor for name, tensor in tensors.items() if name.endswith(".step")]
    assert {float(step) for step in steps} == {config.max_updates - 3}
    lines = [line for line in MetricLog(tmp_path / "log.jsonl").read() if line["kind"] == "train"]
    assert [line["skipped"] for line in lines][:3] == [2, 0, 1]
    assert all(0 < line["loss"] < 20 for line in lines)


def test_where_every_update_is_skipped_no_loss_is_shown(
    tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    poisoned(monkeypatch, {3, 4})
    run(tmp_path, data, tokenizer, training_config("training.log_every=2", "training.max_updates=6"))
    lines = [line for line in MetricLog(tmp_path / "log.jsonl").read() if line["kind"] == "train"]
    for key in ("loss", "perplexity", "gradient_norm"):
        assert [math.isnan(line[key]) for line in lines] == [False, True, False]


def test_a_skipped_update_leaves_the_weights_alone(
    tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = training_config("training.max_updates=5", "training.validate_every=4", "training.keep_last=2")
    poisoned(monkeypatch, {5})
    run(tmp_path, data, tokenizer, config)
    before, after = (load_file(path / "weights.safetensors") for path in checkpoints_in(tmp_path))
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_too_many_skipped_updates_in_a_row_end_the_run_also_over_a_resume(
    tmp_path: Path, data: ParallelDataset, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ("training.max_skipped_updates=4", "training.validate_every=4")
    poisoned(monkeypatch, {3, 4, 5, 6})
    run(tmp_path, data, tokenizer, training_config(*settings, "training.max_updates=4"))
    with pytest.raises(UserError, match="4 updates in a row, up to update 6,"):
        run(tmp_path, data, tokenizer, training_config(*settings))
    assert [path.name for path in checkpoints_in(tmp_path)] == ["update-00000004"]


def test_what_compiling_lacks_is_named_with_its_remedy(
    data: ParallelDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss_model = LossModel(make_model(), label_smoothing=0.1)
    kind = type("InductorError", (RuntimeError,), {"__module__": "torch._inductor.exc"})

    def no_compiler(*_: object) -> None:
        said = "InvalidCxxCompiler: No working C++ compiler found\n\nSet TORCHDYNAMO_VERBOSE=1"
        raise kind(f"backend='inductor' raised:\n{said}")

    monkeypatch.setattr(loss_model, "_states", no_compiler)
    batch, device = collate(data, [0, 1]), torch.device("cpu")
    with pytest.raises(UserError, match=r"No working C\+\+ compiler found\n.*training\.compile=never$"):
        accumulate_gradients(loss_model, [batch], target_tokens=9, device=device, precision=torch.float32)


def test_learns_to_translate(device: torch.device, tmp_path: Path, tokenizer: Tokenizer) -> None:
    """What it learns of the targets is in their sources: beside those of others it learns no more than frequencies."""
    random = np.random.default_rng(0)
    rows = [random.integers(4, 16, random.integers(2, 9)).tolist() for _ in range(300)]
    eager = ["model.width=32", *(f"model.{kind}dropout=0" for kind in ("", "attention_", "embedding_"))]
    losses = {}
    for name, sources in (("own", rows), ("others", [*rows[1:], rows[0]])):
        folder = tmp_path / name
        folder.mkdir()
        for side, side_rows in (("source", sources), ("target", rows)):
            save_rows(folder / f"train.{side}", [flat(side_rows, vocabulary_size=VOCABULARY)])
        config = training_config(
            *(f"training.{key}" for key in ("max_updates=200", "validate_every=200", "learning_rate=0.01"))
        )
        dataset = ParallelDataset.open(folder, "train")
        run(folder / "run", dataset, tokenizer, config, overrides=eager, ranks=Ranks(0, 1, device))
        lines = MetricLog(folder / "run" / "log.jsonl").read()
        losses[name] = [line["loss"] for line in lines if line["kind"] == "train"][-1]
    assert losses["own"] < losses["others"] - 1.0, losses
