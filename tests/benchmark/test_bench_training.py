"""All who are measured train on the same tokens, and the references are the models they are said to be."""

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from bench_config import load_bench
from torch import nn

from endeavour.benchmark.contenders import make_contender, training_contenders
from endeavour.benchmark.growth import measure_growth, widened
from endeavour.benchmark.measure import product_rate, rates
from endeavour.benchmark.references import TorchTransformer, why_no_reference
from endeavour.benchmark.task import Task
from endeavour.benchmark.training import count, flop_of, run_updates
from endeavour.data.batching import collate
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.special import PAD
from endeavour.training import step
from endeavour.training.graphs import NEVER
from torch_weights import copy_layers

MakeTask = Callable[..., Task]
CPU = torch.device("cpu")
INSTALLED = ["torch", "ctranslate2", *(["huggingface"] if find_spec("transformers") else [])]
CONTENDERS = training_contenders(INSTALLED, ["fp32", "bf16"])


def test_tokens_of_an_epoch_are_those_of_the_dataset(make_task: MakeTask) -> None:
    task = make_task(updates=1000)
    dataset, batches = task.dataset(), task.rows
    first = next(n for n in range(1, 1000) if sum(map(len, batches[:n])) == len(dataset))
    epoch = batches[:first]
    assert sorted(row for rows in epoch for row in rows.tolist()) == list(range(len(dataset)))
    assert (batches[first] == batches[0]).all(), "a short epoch is gone through again"
    counted = count(dataset, epoch)
    assert counted["source_tokens"] == dataset.source.lengths.sum()
    assert counted["target_tokens"] == dataset.target.lengths.sum()
    collated = [collate(dataset, rows) for rows in epoch]
    assert counted["target_tokens"] == sum(batch.target_tokens for batch in collated)
    padding, cells = (sum(numbers) for numbers in zip(*(batch.padding for batch in collated), strict=True))
    assert counted["cells"] == cells
    assert counted["source_tokens"] + counted["target_tokens"] == cells - padding


@pytest.mark.parametrize("name", CONTENDERS)
def test_every_contender_learns(name: str, make_task: MakeTask) -> None:
    task = make_task("model.dropout=0", "model.embedding_dropout=0")
    dataset = task.dataset()
    contender = make_contender(name, task)
    collated = [collate(dataset, rows) for rows in task.rows]
    with contender.read(iter(collated)) as read:
        assert all(ours is theirs for ours, theirs in zip(read, collated, strict=True))
    losses: list[float] = []
    for _ in range(6):
        for rows in task.rows:
            losses.append(
                float(contender.update(collate(dataset, rows))) / dataset.target.lengths[rows].sum()
            )
    assert losses[-1] < losses[0]


class CannotCompile(RuntimeError):
    """As one of torch's is told."""

    __module__ = "torch._inductor.exc"


@pytest.mark.parametrize(
    ("error", "key"),
    [
        (MemoryError(), "bench.tokens_per_batch"),
        (CannotCompile(), "bench.compile"),
        (UserError(f"no CUDA graph could be made\n{NEVER}"), "bench.cuda_graphs"),
    ],
)
def test_an_update_that_fails_names_the_benchmarks_keys(
    error: Exception, key: str, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = make_task()
    contender = make_contender("endeavour fp32", task)

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(step, "projected_loss", fail)
    with pytest.raises(UserError, match=key) as refused:
        run_updates(contender, task.dataset(), task.rows)
    assert "training." not in str(refused.value)


@pytest.mark.parametrize(("norm", "activation"), [("pre", "relu"), ("post", "silu")])
def test_torchs_transformer_with_our_weights_has_our_logits(
    norm: str, activation: str, make_task: MakeTask
) -> None:
    parts = [f"model.norm={norm}", f"model.activation={activation}"]
    task = make_task(*parts, "model.dropout=0", "model.embedding_dropout=0")
    ours = Transformer(task.model, source_vocabulary=300, target_vocabulary=300)
    theirs = TorchTransformer(task.model, 300, 300)
    copy_weights(ours, theirs)
    dataset = task.dataset()
    batch = collate(dataset, task.rows[0])
    assert batch.padding[0] > 0
    kept = batch.target_out != PAD
    logits = [model(batch.source, batch.target_in)[kept] for model in (ours, theirs)]
    torch.testing.assert_close(logits[1], logits[0], rtol=1e-4, atol=1e-4)


def test_torchs_transformer_drops_where_the_config_says(make_task: MakeTask) -> None:
    """Its own single dropout would drop attention weights and inner activations as well."""
    rates = {"dropout": 0.1, "attention_dropout": 0.2, "activation_dropout": 0.3, "embedding_dropout": 0.4}
    model = TorchTransformer(
        make_task(*(f"model.{key}={rate}" for key, rate in rates.items())).model, 300, 300
    )
    named = {
        name.rpartition(".")[2]: {
            module.p
            for other, module in model.named_modules()
            if isinstance(module, nn.Dropout) and other.rpartition(".")[2] == name.rpartition(".")[2]
        }
        for name, module in model.named_modules()
        if isinstance(module, nn.Dropout) and name != "dropout"
    }
    # dropout1 to dropout3 end the sublayers, dropout stands within the feed-forward block.
    assert named == {"dropout": {0.3, 0.4}, "dropout1": {0.1}, "dropout2": {0.1}, "dropout3": {0.1}}
    assert model.dropout.p == 0.4
    attentions = [module for module in model.modules() if isinstance(module, nn.MultiheadAttention)]
    assert {module.dropout for module in attentions} == {0.2}


def test_growth_varies_one_thing_at_a_time(make_task: MakeTask) -> None:
    growth = ["growth_tokens=256", "growth_batches=[64,128]", "growth_widths=[8]", "tokens_per_batch=128"]
    task = make_task(*(f"bench.{setting}" for setting in growth))
    rows = measure_growth(task, "endeavour fp32", done=lambda: None)
    assert [(row["varied"], row["tokens_per_batch"], row["width"]) for row in rows] == [
        ("batch", 64, 16),
        ("batch", 128, 16),
        ("width", 128, 8),
    ]
    assert [row["updates"] for row in rows] == [4, 2, 2]
    for row in rows:
        settings = replace(task.settings, tokens_per_batch=row["tokens_per_batch"])
        model = widened(task.model, row["width"]) if row["varied"] == "width" else task.model
        point = replace(task, settings=settings, model=model).with_rows(row["updates"])
        tokens = count(point.dataset(), point.rows)["target_tokens"]
        assert row["target_tokens_per_second"] == rates(tokens, row["seconds"])
        assert row["flop_per_second"] == rates(flop_of(point, point.dataset()), row["seconds"])["median"]
    assert widened(task.model, 512).num_heads == 8


def test_what_a_reference_cannot_be_is_said() -> None:
    base = load_bench([]).model
    assert why_no_reference("torch", base, CPU) is None
    for setting in ("activation=swiglu", "positions=rotary"):
        model = load_bench([f"model.{setting}"]).model
        assert setting in (why_no_reference("torch", model, CPU) or "")


def test_the_spread_of_rates_and_the_rate_of_a_product() -> None:
    assert rates(10, [1.0, 5.0, 2.0]) == {"median": 5.0, "lowest": 2.0, "highest": 10.0}
    assert product_rate(8, 4, 4, device=CPU, precision=torch.float32) > 0


def copy_weights(ours: Transformer, theirs: TorchTransformer) -> None:
    """Puts our weights into torch's modules; the norms that end its post-norm stacks become the identity."""
    copy_layers(ours, theirs.transformer.encoder, theirs.transformer.decoder)
    with torch.no_grad():
        theirs.source_embedding.weight.copy_(ours.source_embedding.weight)
    if ours.config.norm == "post":
        theirs.transformer.encoder.norm = theirs.transformer.decoder.norm = None
