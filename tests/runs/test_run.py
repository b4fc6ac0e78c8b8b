"""Throwing a run away: only when asked for, once, and as a whole. Finding one: with its own ways of decoding."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from endeavour.saved_config import differing_keys, save_config
from endeavour.stages.run_folder import as_decoded, find_earlier, find_run

from commands import endeavour
from endeavour.config import load_config
from endeavour.errors import UserError


def begun(folders: list[str], parallel_files: list[str]) -> tuple[Path, list[str]]:
    """A run folder with something in it, and the overrides that name it."""
    overrides = [*parallel_files, *folders, "name=run"]
    folder = load_config(overrides).run_folder
    (folder / "checkpoints").mkdir(parents=True)
    save_config(load_config(overrides), folder / "config.yaml")
    return folder, [*overrides, "training.restart=true"]


def test_a_restart_throws_the_run_away(folders: list[str], parallel_files: list[str]) -> None:
    folder, overrides = begun(folders, parallel_files)
    assert find_earlier(load_config(overrides)) is None
    assert list(folder.parent.iterdir()) == []


def test_a_restart_empties_a_run_folder_that_is_a_link(
    tmp_path: Path, folders: list[str], parallel_files: list[str]
) -> None:
    folder, overrides = begun(folders, parallel_files)
    elsewhere = tmp_path / "large disk" / "run"
    elsewhere.parent.mkdir()
    for _ in range(2):
        folder.rename(elsewhere)
        folder.symlink_to(elsewhere)
        assert find_earlier(load_config(overrides)) is None
        assert list(folder.parent.iterdir()) == [folder]
        assert list(elsewhere.parent.iterdir()) == [elsewhere]
        assert list(folder.iterdir()) == []
        folder.unlink()
        elsewhere.rmdir()
        begun(folders, parallel_files)


@pytest.mark.parametrize("count", ["TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"])
def test_a_command_that_a_scheduler_repeats_does_not(
    count: str, folders: list[str], parallel_files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, overrides = begun(folders, parallel_files)
    monkeypatch.setenv(count, "1")
    assert find_earlier(load_config(overrides)) is None  # goes on with it
    assert (folder / "checkpoints").is_dir()


def test_a_restart_that_was_killed_leaves_nothing_to_resume(
    folders: list[str], parallel_files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, overrides = begun(folders, parallel_files)

    def killed(path: Path, **_: object) -> None:
        if path.is_dir():
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            find_earlier(load_config(overrides))
    assert not folder.exists()
    assert find_earlier(load_config(overrides)) is None
    assert list(folder.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ([], ("beam", 7, 1.3, True)),
        (["decoding.beam_size=9"], ("beam", 9, 1.3, True)),
        (["evaluation.tokenized_bleu=false"], ("beam", 7, 1.3, False)),
        (["decoding=greedy"], ("greedy", 1, 0.0, True)),
    ],
)
def test_a_run_is_decoded_and_scored_as_it_was_but_for_what_is_typed(
    typed: list[str], expected: tuple[str, int, float, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = load_config(
        ["decoding.beam_size=7", "decoding.length_penalty=1.3", "evaluation.tokenized_bleu=true"]
    )
    monkeypatch.setattr(sys, "argv", ["endeavour eval", "name=run", *typed])
    found = as_decoded(load_config(["name=run", *typed]), trained)
    decoding = found.decoding
    assert (
        decoding.name,
        decoding.beam_size,
        decoding.length_penalty,
        found.evaluation.tokenized_bleu,
    ) == expected


@pytest.mark.parametrize(
    "typed", ["corpus=multi30k", "direction=de-en", "seed=2", "model.width=64", "+training.max_updates=9"]
)
def test_what_a_trained_run_cannot_have_any_more_is_refused_by_name(
    typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    common = [f"output_folder={tmp_path}", "name=run"]
    trained = load_config([*common, "model=base"])
    (trained.run_folder / "model").mkdir(parents=True)
    save_config(trained, trained.run_folder / "config.yaml")
    # The model of no name on the command line is the default's, which means nothing; one that is typed is asked for.
    monkeypatch.setattr(sys, "argv", ["endeavour eval", *common, "model.dropout=0.1", "decoding=greedy"])
    assert find_run(load_config([*common, "decoding=greedy"]))[1] == trained
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys, "argv", ["endeavour eval", *common, typed])
    key = typed.lstrip("+").partition("=")[0]
    with pytest.raises(UserError, match=rf"run was trained with other settings \({key}.*evaluation\.files"):
        find_run(load_config([*common, typed.replace("+", "++")]))


def test_a_runs_seed_draws_the_intervals_of_its_scores_whenever_it_is_evaluated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["endeavour eval", "name=run"])
    assert as_decoded(load_config(["name=run"]), load_config(["seed=5"])).seed == 5


def test_a_key_and_the_runs_own_have_to_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = ["decoding.beam_size=3"]
    monkeypatch.setattr(sys, "argv", ["endeavour eval", *typed])
    with pytest.raises(UserError, match=r"decoding\.num_hypotheses=12.*beam_size=3"):
        as_decoded(load_config(typed), load_config(["decoding=mbr"]))


@pytest.mark.parametrize(
    ("average", "differing"), [("last", {"keep_last"}), ("best", {"keep_best"}), ("none", set())]
)
def test_how_many_checkpoints_are_kept_makes_another_run_where_they_are_averaged(
    average: str, differing: set[str]
) -> None:
    saved = load_config([f"training.average={average}"])
    ours = replace(saved, training=replace(saved.training, keep_last=9, keep_best=9))
    found = {line.partition(":")[0].removeprefix("training.") for line in differing_keys(ours, saved)}
    assert found == differing


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("corpus.splits.train=[typo.en,typo.de]", "typo.en"),
        ("evaluation.splits=[tset]", "tset"),
        ("+evaluation.files.news=[typo.en,typo.de]", "typo.en"),
    ],
)
def test_a_restart_that_cannot_begin_loses_nothing(
    wrong: str,
    message: str,
    folders: list[str],
    parallel_files: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, overrides = begun(folders, parallel_files)
    assert endeavour("train", *overrides, wrong) == 2
    assert message in capsys.readouterr().err
    assert (folder / "checkpoints").is_dir()


def test_a_damaged_summary_is_named_with_what_to_do(folders: list[str], parallel_files: list[str]) -> None:
    folder, overrides = begun(folders, parallel_files)
    (folder / "summary.json").write_text("")
    with pytest.raises(UserError, match=r"summary\.json: damaged .*\ndelete it"):
        find_earlier(load_config(overrides[:-1]))


@pytest.mark.parametrize(
    ("after_training", "typed", "kept"),
    [
        ("null", "evaluation.splits=[validation]", False),
        ("null", "evaluation.splits=[test]", True),
        ("[test]", "evaluation.splits=[test]", True),
        ("[test]", "evaluation.splits=[other]", False),
        ("[test]", "evaluation.bootstrap_samples=50", True),
        ("[test]", "evaluation.splits=[other] evaluation.tokenized_references=new", True),
    ],
)
def test_tokenized_references_are_of_the_splits_they_were_given_for(
    after_training: str, typed: str, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenized = ["evaluation.tokenized_bleu=true", "evaluation.tokenized_references=new"]
    trained = load_config([f"evaluation.splits={after_training}", *tokenized])
    monkeypatch.setattr(sys, "argv", ["endeavour eval", "name=run", *typed.split()])
    found = as_decoded(
        load_config(["name=run", *typed.replace("=new", "=new evaluation.tokenized_bleu=true").split()]),
        trained,
    )
    assert found.evaluation.tokenized_references == ("new" if kept else None)
    assert found.evaluation.tokenized_bleu
