"""How often a training sees its pairs, in words, before it begins. Estimated from tokens; knows nothing of padding."""

import math
from collections import Counter

from endeavour.data.corpus import TRAIN
from endeavour.data.prepared import PreparedData
from endeavour.training.config import TrainingConfig


def what_is_seen(settings: TrainingConfig, data: PreparedData) -> str:
    """How many epochs `max_updates` are; where the training draws from parts, how often each of them is seen."""
    assert settings.max_updates is not None
    counts = data.splits[TRAIN]
    if settings.mixture is None:
        epochs = settings.max_updates / _updates_of_an_epoch(counts, settings)
        return f"about {epochs:,.1f} epochs of {counts['pairs']:,} pairs"
    sizes = {part: counts["pairs"] for part, counts in data.parts.items()}
    seen: Counter[str] = Counter()
    begin = 0
    for stage in settings.mixture:
        end = settings.max_updates if stage.until is None else min(stage.until, settings.max_updates)
        drawn = stage.pairs(sizes)
        tokens = {
            key: sum(drawn[part] * counts[key] / sizes[part] for part, counts in data.parts.items())
            for key in ("source_tokens", "target_tokens")
        }
        epochs = (end - begin) / _updates_of_an_epoch(tokens, settings)
        seen.update({part: epochs * count / sizes[part] for part, count in drawn.items()})
        begin = end
    parts = [f"the {size:,} pairs of {part} {seen[part]:,.1f} times" for part, size in sizes.items()]
    return f"about {', '.join(parts)}"


def _updates_of_an_epoch(tokens: dict[str, float] | dict[str, int], settings: TrainingConfig) -> int:
    batches = math.ceil(max(tokens["source_tokens"], tokens["target_tokens"]) / settings.tokens_per_batch)
    return math.ceil(batches / settings.accumulate)  # an update has no batches of two epochs
