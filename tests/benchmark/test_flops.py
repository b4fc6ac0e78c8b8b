"""The formula counts what torch's own counter sees in a forward and a backward pass without padding."""

from typing import Any

import numpy as np
import pytest
import torch
from bench_config import load_bench
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from endeavour.benchmark.flops import update_flop
from endeavour.model.transformer import Transformer

BATCH, SOURCE, TARGET, VOCABULARY = 3, 7, 5, 40


@pytest.mark.parametrize("activation", ["relu", "swiglu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_equals_torchs_counter(activation: str, norm: str) -> None:
    sizes = ["width=16", "feed_forward=24", "num_heads=2", "encoder_layers=2", "decoder_layers=1"]
    kinds = [f"activation={activation}", f"norm={norm}"]
    config = load_bench([f"model.{setting}" for setting in (*sizes, *kinds)]).model
    model = Transformer(config, source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY)
    source = torch.randint(4, VOCABULARY, (BATCH, SOURCE))
    target = torch.randint(4, VOCABULARY, (BATCH, TARGET))
    counter: Any = FlopCounterMode(display=False)
    with counter:
        functional.cross_entropy(model(source, target).flatten(0, 1), target.flatten()).backward()
    lengths = (np.full(BATCH, SOURCE, np.int32), np.full(BATCH, TARGET, np.int32))
    assert update_flop(config, *lengths, target_vocabulary=VOCABULARY) == counter.get_total_flops()


def test_padding_is_not_counted_and_batches_add_up() -> None:
    config = load_bench([]).model
    source, target = np.array([3, 9, 4], np.int32), np.array([5, 2, 8], np.int32)
    whole = update_flop(config, source, target, target_vocabulary=100)
    parts = [
        update_flop(config, source[part], target[part], target_vocabulary=100)
        for part in (slice(1), slice(1, None))
    ]
    assert whole == sum(parts)
