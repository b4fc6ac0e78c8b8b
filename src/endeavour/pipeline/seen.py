"""How often a training sees its pairs, before it begins, and whether that is few or many for what it is.

Estimated from tokens; knows nothing of padding, and nothing of how a training goes.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from endeavour.data.corpus import TRAIN
from endeavour.data.prepared import PreparedData
from endeavour.runs.config import RunConfig
from endeavour.runs.names import names_in
from endeavour.training.config import TrainingConfig

# Dropout from which on a training counts as strongly regularised.
STRONG_DROPOUT = 0.25
# Below how many sentences each is usually seen how often: lightly and strongly regularised; see `usual_times`.
USUAL_TIMES = (
    (100_000, (30, 100), (35, 200)),
    (1_000_000, (10, 60), (20, 270)),
    (math.inf, (5, 30), (20, 60)),
)
USUAL_TIMES_OF_THE_TEXTBOOK = (4, 30)


@dataclass(frozen=True)
class Seen:
    """What a training sees in all.

    Attributes:
        updates: after which it ends.
        times: how often each part of the training split is seen, by its name; one without a name where it has no parts.
        pairs: of these parts.
        times_on_average: a pair of the parts that are drawn at all.
    """

    updates: int
    times: dict[str, float]
    pairs: dict[str, int]

    @property
    def times_on_average(self) -> float:
        drawn = {part: self.pairs[part] * times for part, times in self.times.items() if times}
        return sum(drawn.values()) / max(sum(self.pairs[part] for part in drawn), 1)

    def __str__(self) -> str:
        if [*self.pairs] == [""]:
            return f"{_about(self.times[''])} epochs of {self.pairs['']:,} pairs"
        parts = [
            f"{_about(self.times[part])} times the {size:,} pairs of {part}"
            for part, size in self.pairs.items()
        ]
        return ", ".join(parts)


def ending_lines(config: RunConfig, data: PreparedData) -> list[str]:
    """When a run of this config ends at the latest, what it sees until then, and whether that is few or many."""
    settings = config.training
    seen = what_is_seen(settings, data)
    minutes = None if settings.max_minutes is None else f"{settings.max_minutes:g} minutes"
    if seen is None:
        return [f"ends after {minutes} at the latest"]
    limit = " or ".join(filter(None, (f"{seen.updates:,} updates", minutes)))
    lines = [f"ends after {limit} at the latest: {seen}"]
    if config.pretrained is None and not config.augmentation.denoising:
        lines.append(_judgement(config, seen))
    if settings.max_updates is not None and settings.max_updates <= settings.warmup_updates:
        lines.append(
            "note: the learning rate rises to the end, because "
            f"training.warmup_updates={settings.warmup_updates} is not less than "
            f"training.max_updates={settings.max_updates}"
        )
    return lines


def what_is_seen(settings: TrainingConfig, data: PreparedData) -> Seen | None:
    """What the limits on updates and epochs leave a training to see; None where it has neither."""
    if settings.max_updates is None and settings.max_epochs is None:
        return None
    parts = {"": data.splits[TRAIN]} if settings.mixture is None else data.parts
    sizes = {part: counts["pairs"] for part, counts in parts.items()}
    times = Counter[str]()
    update, last = 0, settings.max_updates or math.inf
    epochs_left = settings.max_epochs or math.inf
    for stage in settings.mixture or [None]:
        drawn = sizes if stage is None else stage.pairs(sizes)
        an_epoch = _updates_of_an_epoch(parts, drawn, settings)
        until = math.inf if stage is None or stage.until is None else stage.until
        end = min(until, last, update + epochs_left * an_epoch)
        epochs = (end - update) / an_epoch
        epochs_left -= math.ceil(epochs)  # the end of a stage is that of an epoch
        times.update({part: epochs * count / sizes[part] for part, count in drawn.items()})
        update = int(end)
    return Seen(update, dict(times), sizes)


def usual_times(config: RunConfig, sentences: float) -> tuple[int, int]:
    """How often each sentence of a training text of this size is usually seen, at least and at most, from nothing.

    A coarse rule, from few points. What regularises lets a text be seen more often before a model knows it by
    heart, and can need it: Transformer-Tiny trains about 140 epochs of 29,000 pairs with a dropout of 0.3 (Wu et
    al. 2021, "Good for Misconceived Reasons"), and public code with a consistency loss beside it about 170. Of
    those pairs 14 epochs fall short with a dropout of 0.2; 42, and 37 with R-Drop, are rows in docs/results.md.
    R-Drop's script lets 160,000 pairs be seen some 270 times (Liang et al. 2021). Of the 4.5 million pairs of WMT
    2014, 100,000 updates of 25,000 tokens are some 20 epochs, with a dropout of 0.1, and 300,000 some 60, with 0.3
    (Vaswani et al. 2017). What lies between is interpolated. Sentences of the textbook's grammar need fewer: 5
    epochs are the row in docs/results.md.

    Altered copies and teachers' translations of a sentence count as that sentence, seen again.
    """
    if config.corpus.kind == "textbook":
        return USUAL_TIMES_OF_THE_TEXTBOOK
    light, strong = next((light, strong) for below, light, strong in USUAL_TIMES if sentences < below)
    return strong if _regularisers(config) else light


def _about(times: float) -> str:
    return f"about {times:,.1f}" if times == 0 or times >= 0.05 else "less than 0.1"


def _judgement(config: RunConfig, seen: Seen) -> str:
    copies = _copies_of_a_sentence(config)
    times = seen.times_on_average * copies
    low, high = usual_times(config, sum(seen.pairs.values()) / copies)
    judgement = "few" if times < low else "many" if times > high else "usual"
    regularised = " and ".join(_regularisers(config))
    text = "the textbook" if config.corpus.kind == "textbook" else "a text of this size"
    usually = f"{low} to {high} are usual for {text}{regularised and f' with {regularised}'}"
    line = f"{judgement}: each sentence is seen {_about(times)} times, and {usually}"
    settings = config.training
    if judgement == "few":
        if seen.updates == settings.max_updates:
            line += f"; training.max_updates={_rounded_up(seen.updates * low / times)} makes {low}"
        elif settings.max_epochs is not None:
            line += f"; training.max_epochs={math.ceil(settings.max_epochs * low / times)} makes {low}"
    elif judgement == "many":
        # Half way down a cosine, validation may stand still for long, and gain at the end.
        if settings.schedule == "cosine":
            line += f"; training.max_updates={int(seen.updates * high / times)} makes {high}"
        elif settings.patience is None:
            line += "; training.patience=10 ends a run that no longer improves"
    return line


def _regularisers(config: RunConfig) -> list[str]:
    """What regularises strongly, in words."""
    found = {
        f"a dropout of {config.model.dropout:g}": config.model.dropout >= STRONG_DROPOUT,
        "R-Drop": config.training.r_drop > 0,
        "altered copies": bool(config.augmentation.rates),
        "teachers": config.teachers is not None,
    }
    return [name for name, strong in found.items() if strong]


def _copies_of_a_sentence(config: RunConfig) -> float:
    """How many pairs there are, on average and at most, for one of the text: itself, altered and translated."""
    teachers = 0 if config.teachers is None else len(names_in("teachers", config.teachers))
    return (1 + teachers) * (1 + sum(config.augmentation.rates.values()))


def _rounded_up(number: float) -> int:
    """To two digits."""
    unit = 10 ** max(math.floor(math.log10(number)) - 1, 0)
    return math.ceil(number / unit) * unit


def _updates_of_an_epoch(
    parts: Mapping[str, Mapping[str, int]], drawn: Mapping[str, int], settings: TrainingConfig
) -> int:
    """But for padding, some 3% on Multi30k and the textbook."""
    longer = sum(drawn[part] * counts["longer_tokens"] / counts["pairs"] for part, counts in parts.items())
    batches = math.ceil(longer / settings.tokens_per_batch)
    return math.ceil(batches / settings.accumulate)  # an update has no batches of two epochs
