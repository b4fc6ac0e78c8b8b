"""What the card of a model says beyond the model itself: its data, its settings, its scores with their signatures.

The metadata are those of the Hugging Face Hub, by its own client. Knows plain values; neither runs nor files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from endeavour.data.cleaning_report import split_table
from endeavour.directions import Direction, Languages, languages_of
from endeavour.evaluation.metrics import Score
from endeavour.markdown import markdown_table
from endeavour.optional import require

HUB_METRICS = ("bleu", "chrf", "ter")  # that it knows by these names


@dataclass(frozen=True, kw_only=True)
class ScoredSet:
    """One evaluation: the scores by their keys, of this many sentences decoded in this way."""

    test_set: str
    decoding: str
    sentences: int
    scores: Mapping[str, Score]

    @classmethod
    def of(cls, decoding: str, record: Mapping[str, Any]) -> "ScoredSet":
        """From what scores.json holds."""
        return cls(
            test_set=record["model"]["test_set"],
            decoding=decoding,
            sentences=record["sentences"],
            scores={key: Score(**score) for key, score in record["scores"].items()},
        )


@dataclass(frozen=True, kw_only=True)
class Card:
    """The facts of a card.

    Attributes:
        address: from where the model is loaded: a repository of the hub, or "." inside its folder.
        direction: en-de or de-en.
        corpus: its name.
        repository, revision: of the corpus, where it is one of the hub.
        splits: split → pairs and tokens, after cleaning.
        settings: the keys of the config that made the model.
        decoding: of the evaluations that stand for the model in the hub's lists, where they are of a split; the card
            shows all.
    """

    address: str
    direction: Direction
    corpus: str
    repository: str | None
    revision: str | None
    splits: Mapping[str, Mapping[str, int]]
    settings: Mapping[str, Any]
    decoding: str
    evaluations: Sequence[ScoredSet]

    @property
    def languages(self) -> Languages:
        """Of source and target."""
        return languages_of(self.direction)


def metadata(card: Card, *, name: str) -> str:
    """The YAML between the two lines `---` of a card; `name` is the model's."""
    hub = require("huggingface_hub")
    listed = [
        (scored, key, scored.scores[key])
        for scored in card.evaluations
        # The hub would take any other test set, or an altered copy of one, for a split of the corpus.
        if scored.decoding == card.decoding and scored.test_set in card.splits
        for key in HUB_METRICS
        if key in scored.scores
    ]
    results = [
        hub.EvalResult(
            task_type="translation",
            task_name=f"Translation {card.direction}, {scored.decoding}",
            dataset_type=card.repository or card.corpus,
            dataset_name=card.corpus,
            dataset_split=scored.test_set,
            dataset_revision=card.revision,
            metric_type=key,
            metric_name=score.name,
            metric_value=round(score.value, 2),
            metric_args={"signature": score.signature},
        )
        for scored, key, score in listed
    ]
    data = hub.ModelCardData(
        language=list(card.languages),
        library_name="transformers",
        pipeline_tag="translation",
        tags=["endeavour"],
        datasets=[card.repository] if card.repository else None,
        metrics=list(dict.fromkeys(key for _, key, _ in listed)) or None,
        model_name=name,
        eval_results=results or None,
    )
    return f"{data.to_yaml()}\n"


def score_lines(card: Card) -> str:
    """A table of all scores with their 95% intervals, and sacreBLEU's signatures."""
    if not card.evaluations:
        return "It was not evaluated.\n"
    keys = list(dict.fromkeys(key for scored in card.evaluations for key in scored.scores))
    names = {key: score.name for scored in card.evaluations for key, score in scored.scores.items()}
    head = ["test set", "sentences", "decoding", *(names[key] for key in keys)]
    rows: list[list[str]] = []
    for scored in card.evaluations:
        cells = [
            f"{score.value:.2f} ({score.low:.2f} to {score.high:.2f})" if score else ""
            for score in map(scored.scores.get, keys)
        ]
        rows.append([scored.test_set, f"{scored.sentences:,}", scored.decoding, *cells])
    table = markdown_table(head, rows, texts=(0, 2))
    signatures = dict.fromkeys(
        f"- {score.name}: `{score.signature}`\n"
        for scored in card.evaluations
        for score in scored.scores.values()
    )
    return f"{table}\n\nIn parentheses: 95% bootstrap intervals. sacreBLEU's signatures:\n\n{''.join(signatures)}"


def data_lines(card: Card) -> str:
    """Where the text came from, and how much of it was left after cleaning."""
    source = f" (`{card.repository}` at `{card.revision}`)" if card.repository else ""
    return f"Corpus `{card.corpus}`{source}, cleaned:\n\n{split_table(card.splits)}\n"


def setting_lines(card: Card) -> str:
    """The settings as YAML."""
    return yaml.safe_dump(dict(card.settings), sort_keys=False, allow_unicode=True)
