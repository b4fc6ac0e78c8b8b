"""The card of a model: metadata that the hub can read, every score with its signature, data and settings."""

from dataclasses import replace

import pytest
import yaml

from endeavour.evaluation.metrics import Score
from endeavour.export.model_card import Card, ScoredSet, data_lines, metadata, score_lines, setting_lines


def scored(test_set: str, decoding: str, value: float) -> ScoredSet:
    names = {"bleu": "BLEU", "bleu_lowercased": "BLEU, lowercased", "chrf": "chrF2"}
    return ScoredSet(
        test_set=test_set,
        decoding=decoding,
        sentences=1000,
        scores={
            key: Score(name, value, value - 1, value + 1, f"signature of {key}")
            for key, name in names.items()
        },
    )


CARD = Card(
    address=".",
    direction="de-en",
    corpus="pairs",
    repository="someone/pairs",
    revision="0123",
    splits={
        "train": {"pairs": 29000, "source_tokens": 400000, "target_tokens": 410000},
        "test": {"pairs": 1000, "source_tokens": 14000, "target_tokens": 14000},
    },
    settings={"model": {"width": 128, "name": "größer"}},
    decoding="beam",
    evaluations=[scored("test", "beam", 30.123), scored("test", "greedy", 20.0)],
)


def test_the_hub_finds_languages_data_and_the_scores_of_the_models_own_decoding() -> None:
    content = yaml.safe_load(metadata(CARD, name="run"))
    assert content["language"] == ["de", "en"]
    assert content["datasets"] == ["someone/pairs"]
    assert content["pipeline_tag"] == "translation"
    assert content["library_name"] == "transformers"
    (model,) = content["model-index"]
    assert model["name"] == "run"
    (result,) = model["results"]
    assert result["dataset"]["split"] == "test"
    found = {metric["type"]: metric for metric in result["metrics"]}
    assert found.keys() == {"bleu", "chrf"}
    assert found["bleu"]["value"] == 30.12
    assert found["bleu"]["args"]["signature"] == "signature of bleu"


def test_the_hub_takes_no_other_test_set_and_no_copy_for_a_split_of_the_corpus() -> None:
    others = [scored("news", "beam", 12.0), scored("test.typos", "beam", 11.0)]
    assert metadata(replace(CARD, evaluations=[*CARD.evaluations, *others]), name="run") == metadata(
        CARD, name="run"
    )


def test_the_table_has_every_score_with_its_interval_and_signature() -> None:
    text = score_lines(replace(CARD, evaluations=[*CARD.evaluations, scored("other", "beam", 12.0)]))
    assert "| test | 1,000 | beam | 30.12 (29.12 to 31.12) | 30.12" in text
    assert "| test | 1,000 | greedy | 20.00 (19.00 to 21.00) |" in text
    assert "| other | 1,000 | beam | 12.00" in text
    for key in ("bleu", "bleu_lowercased", "chrf"):
        assert text.count(f"`signature of {key}`") == 1


def test_a_model_without_scores_or_a_repository_has_a_card_too() -> None:
    card = replace(CARD, evaluations=[], repository=None, revision=None)
    content = yaml.safe_load(metadata(card, name="run"))
    assert not content.keys() & {"model-index", "datasets", "metrics"}
    assert "not evaluated" in score_lines(card)
    assert "None" not in data_lines(card)


@pytest.mark.parametrize(
    "said", ["`pairs`", "`someone/pairs` at `0123`", "| train | 29,000 | 400,000 | 410,000 |"]
)
def test_the_data_are_named_and_counted(said: str) -> None:
    assert said in data_lines(CARD)


def test_the_settings_are_what_they_were() -> None:
    assert yaml.safe_load(setting_lines(CARD)) == CARD.settings
