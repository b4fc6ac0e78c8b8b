"""The config of a run: saved and read back, set against another, and checked as a whole."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from configs import run_config, typed_config
from endeavour.errors import UserError
from endeavour.runs.config import differing_keys, pretraining_config, read_config, save_config, teacher_config


@pytest.mark.parametrize(
    "typed",
    [
        [],
        ["experiment=multi30k_best"],
        ["experiment=wmt14_base"],
        ["experiment=small_corpus"],
        ["name=1", "corpus=wmt14", "training=long", "decoding=mbr", "tokenizer=unigram8k"],
        ["name='Größe'", 'teachers=2 "a b+3"', "direction=de-en", "model.tie=decoder"],
        ["+evaluation.files.news=[no,1]", "evaluation.splits=[]", "training.learning_rate=1e-30"],
    ],
    ids=lambda typed: typed[0] if typed else "default",
)
def test_a_saved_config_reads_back_the_same(typed: list[str], tmp_path: Path) -> None:
    config = typed_config(*typed)
    save_config(config, tmp_path / "config.yaml")
    assert read_config(tmp_path / "config.yaml") == config


def _without_model(text: str) -> str:
    values = yaml.safe_load(text)
    del values["model"]
    return yaml.safe_dump(values)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: "name: [\n",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("seed: 1\n", "seed: -1\n"),
        lambda text: text + "unknown: 1\n",
        _without_model,
    ],
)
def test_a_config_that_is_damaged_is_named(damage: Callable[[str], str], tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    save_config(typed_config(), path)
    path.write_text(damage(path.read_text("utf-8")), "utf-8")
    with pytest.raises(UserError, match=str(path)):
        read_config(path)


def test_what_is_chosen_after_training_or_shown_of_it_makes_no_other_run() -> None:
    saved = typed_config("corpus=wmt14")
    same = ["name=other", "device=cpu", "data_folder=x", "output_folder=y", "corpus.path=z", "tracking=none"]
    same += ["decoding=greedy", "evaluation.bootstrap_samples=50", "training.restart=true"]
    same += ["training.log_every=7", "training.preflight=false", "training.communication_timeout=5"]
    same += ["training.max_skipped_updates=3", "training.sharded=true"]
    same += ["training.compile=never", "validation_decoding.tokens_per_batch=100"]
    same += ["validation_decoding.cuda_graphs=true"]
    assert differing_keys(typed_config("corpus=wmt14", *same), saved) == []
    other = typed_config("corpus=wmt14", "seed=2", "model.width=64", "validation_decoding.beam_size=2")
    found = differing_keys(other, saved)
    assert [line.partition(":")[0] for line in found] == [
        "model.width",
        "seed",
        "validation_decoding.beam_size",
    ]
    assert "seed: 1 → 2" in found


@pytest.mark.parametrize(
    ("average", "differing"), [("last", {"keep_last"}), ("best", {"keep_best"}), ("none", set())]
)
def test_how_many_checkpoints_are_kept_makes_another_run_where_they_are_averaged(
    average: str, differing: set[str]
) -> None:
    saved = typed_config(f"training.average={average}")
    ours = replace(saved, training=replace(saved.training, keep_last=9, keep_best=9))
    found = {line.partition(":")[0].removeprefix("training.") for line in differing_keys(ours, saved)}
    assert found == differing


def test_what_is_said_of_the_test_sets_of_a_run_is_not_said_of_what_it_begins_with() -> None:
    first = pretraining_config(
        run_config(
            [
                "experiment=multi30k",
                "+evaluation.labels.test=domains.txt",
                "evaluation.tokenized_references=test.tok.de",
                "evaluation.splits=[test]",
                "evaluation.sacrebleu=[wmt14]",
                "+evaluation.files.news=[news.tsv]",
            ]
        )
    )
    assert first is not None
    assert (first.evaluation.labels, first.evaluation.tokenized_references) == ({}, None)
    assert (first.evaluation.files, first.evaluation.sacrebleu) == ({}, [])
    assert first.evaluation.splits == ["validation"]


LONG = "n" * 300
NO_DROPOUT = ["model.dropout=0", "model.embedding_dropout=0"]


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        (["validation_decoding=mbr"], r"validation_decoding\.utility"),
        (["validation_decoding=sample"], r"validation_decoding\.sampling"),
        (["validation_decoding.engine=ctranslate2"], r"validation_decoding\.engine"),
        (["decoding.engine=ctranslate2"], r"decoding\.engine"),
        (["tokenizer.joint=false", "model.tie=all"], r"model\.tie"),
        (["training.r_drop=0.5", *NO_DROPOUT], r"training\.r_drop=0\.5.*model\.dropout"),
        (["name=../x"], "name="),
        (["pretrained=../x"], "pretrained="),
        ([f"name={LONG}"], "name=nnn.*shorter"),
        ([f"pretrained=a/{LONG}"], "pretrained=a/nnn.*shorter"),
        ([f"teachers=2 {LONG}"], "teachers=nnn.*shorter"),
        (["seed=-1"], "seed=-1"),
        (["man"], "man: settings are key=value"),
        (["training.warmup_updates=2.5"], r"training\.warmup_updates=2\.5: a whole number .*int\(interval"),
    ],
)
def test_values_that_do_not_fit_together_are_refused_by_name(typed: list[str], key: str) -> None:
    typed = [item.replace("validation_decoding=", "decoding@validation_decoding=") for item in typed]
    with pytest.raises(UserError, match=key):
        typed_config(*typed)


def test_a_config_that_is_changed_in_python_is_checked_too() -> None:
    with pytest.raises(ValidationError, match="teachers"):
        replace(typed_config(), teachers="one two/..")


def test_a_name_is_one_however_it_is_written(tmp_path: Path) -> None:
    root = [f"output_folder={tmp_path}"]
    for name in ("my runs/a", f"{tmp_path}/my runs/a", "./my runs//a"):
        config = typed_config(*root, f"name={name}", f"pretrained={name}")
        assert (config.name, config.pretrained) == ("my runs/a", "my runs/a")
    for text in ("one 2", "one,2", "[one, 02]", f"{tmp_path}/one 2", "'one' 2"):
        assert typed_config(*root, f"teachers={text}").teachers == '"one" 2'
    assert typed_config(*root, "teachers=a+02 3").teachers == '"a+2" 3'


@pytest.mark.parametrize("text", ["", "2 + 1", "2+", "one two/..", '"one', "./2024"])
def test_teachers_that_are_badly_written_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="teachers"):
        typed_config(f"teachers={text}")


def test_a_teacher_is_the_same_run_but_for_the_settings_of_teachers() -> None:
    other = ["+teacher_settings.model.width=256", "+teacher_settings.training.r_drop=0.5"]
    config = typed_config("teachers=2 one", *other, "training.restart=true", "seed=5")
    expected = typed_config("name=t", "seed=2", "model.width=256", "training.r_drop=0.5")
    assert teacher_config(config, 2, "t") == expected


def test_the_teachers_of_the_best_experiment_are_runs_of_the_lowercased_one() -> None:
    best = typed_config("experiment=multi30k_best")
    for seed in (1, 2):
        teacher = teacher_config(best, seed, f"multi30k-lowercased-{seed}")
        assert teacher == typed_config("experiment=multi30k_lowercased", f"seed={seed}")


def test_pretraining_is_the_same_run_but_for_its_settings() -> None:
    config = typed_config("experiment=multi30k", "teachers=2 one", "training.restart=true", "seed=5")
    alone = ["experiment=multi30k", "pretrained=null", "name=multi30k-tiny-5-denoising", "seed=5"]
    own = ["augmentation.denoising=4", "training.r_drop=0", "training.validate_every=400"]
    first = pretraining_config(config)
    assert first == replace(
        typed_config(*alone, *own, "evaluation.splits=[validation]"), pretraining_settings={}
    )
    for there_is_none in ("pretrained=null", "pretrained=hf:a/b"):
        assert pretraining_config(typed_config("experiment=multi30k", there_is_none)) is None


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["+teacher_settings.model.width=64"], "set teachers"),
        (["teachers=2 9223372036854775808"], "teachers=2 9223372036854775808: a seed is at most"),
        (["+teacher_settings.model.wdth=64", "teachers=2"], "teacher_settings: model.wdth is not a key"),
        (["+teacher_settings.model.width=-1", "teachers=2"], "teacher_settings: model.width=-1"),
        (["+teacher_settings.corpus.name=a", "teachers=2"], "'model', 'training' or 'decoding'"),
        (["teacher_settings.model.width=64", "teachers=2"], r"\+teacher_settings.model.width=…"),
    ],
)
def test_teachers_that_there_cannot_be_are_refused(typed: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        typed_config(*typed)
