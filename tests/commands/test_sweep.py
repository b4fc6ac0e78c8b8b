"""`endeavour sweep` with a stub in place of training: what is trained, what is repeated, what is left of it."""

import csv
import errno
import sys
from pathlib import Path

import pytest

from configs import run_config
from endeavour.commands.sweep import sweep
from endeavour.config import run_hydra
from endeavour.errors import RunError, UserError
from endeavour.runs.config import RunConfig, save_config
from endeavour.runs.restart import goes_on
from endeavour.runs.run import Run
from endeavour.storage import write_json
from endeavour.sweeps.plan import make_plan
from stub_training import RATE, StubTraining

SEARCH = ["hydra/sweeper=optuna", f"{RATE}=tag(log,interval(1e-5,1e-1))"]


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> StubTraining:
    stub = StubTraining()
    monkeypatch.setattr("endeavour.sweeps.trial.train_run", stub)
    monkeypatch.setattr(sys, "argv", ["endeavour", "sweep"])
    return stub


@pytest.fixture
def sweeps(tmp_path: Path) -> Path:
    return tmp_path / "outputs" / "sweeps"


def start(tmp_path: Path, *overrides: str) -> None:
    sweep([f"output_folder={tmp_path / 'outputs'}", *overrides])


def table(sweeps: Path) -> list[dict[str, str]]:
    (path,) = sweeps.glob("*/results.csv")
    return list(csv.DictReader(path.read_text("utf-8").splitlines()))


def test_a_grid_ends_in_a_sorted_table_and_a_picture(
    tmp_path: Path, sweeps: Path, training: StubTraining, capsys: pytest.CaptureFixture[str]
) -> None:
    start(tmp_path, f"{RATE}=1e-4,2e-3", "model=tiny,small")
    rows = table(sweeps)
    assert [float(row[RATE]) for row in rows] == [2e-3, 2e-3, 1e-4, 1e-4]
    assert {row["name"] for row in rows} == set(training.calls)
    assert len(set(training.calls)) == 4
    (picture,) = sweeps.glob("*/results.png")
    assert picture.read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert str(picture) in printed
    assert "results.csv" in printed


@pytest.mark.parametrize(
    ("swept", "shown"),
    [
        (["seed=1,2", "tokenizer.lowercase=true"], {22}),
        (["seed=1,2"], {11}),
        (["tokenizer.lowercase=true,false"], {11, 22}),
    ],
)
def test_the_screen_has_the_bleu_by_which_the_models_are_judged(
    swept: list[str],
    shown: set[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def train(config: RunConfig, command: list[str], **_: object) -> None:
        folder = Run.of(config).folder
        folder.mkdir(parents=True)
        save_config(config, folder / "config.yaml")
        scores = {"bleu": 11.0, "bleu_lowercased": 22.0, "chrf": 33.0}
        summary = {"validation": {"bleu": 44.0, "perplexity": 55.0}, "test": {"heldout": scores}}
        write_json(folder / "summary.json", summary | {"name": config.name, "status": "finished"})

    monkeypatch.setattr("endeavour.sweeps.trial.train_run", train)
    start(tmp_path, *swept)
    printed = capsys.readouterr().out
    seeds = swept[0].startswith("seed")
    for number in (11, 22, 33, 44, 55):
        assert (f"{number}.00" in printed) == (number in {*shown, 44})
        assert (f"{number}.00, 0.00" in printed) == (seeds and number in {*shown, 44})


def test_every_trial_is_its_own_run_and_all_are_one_group(tmp_path: Path, training: StubTraining) -> None:
    start(tmp_path, f"{RATE}=1e-4,2e-3")
    assert training.calls == ["textbook-tiny-1-learning_rate_0.0001", "textbook-tiny-1-learning_rate_0.002"]
    (group,) = training.groups
    assert group is not None
    assert (tmp_path / "outputs" / "sweeps" / group).is_dir()
    noted = training.commands[1]  # in run.json: this run alone
    assert noted[:2] == ["endeavour", "train"]
    assert f"{RATE}=0.002" in noted


def test_a_grid_that_was_interrupted_repeats_nothing(
    tmp_path: Path, sweeps: Path, training: StubTraining
) -> None:
    training.at_call[3] = KeyboardInterrupt()
    grid = f"{RATE}=1e-4,1e-3,2e-3,1e-2"
    with pytest.raises(KeyboardInterrupt):
        start(tmp_path, grid)
    interrupted = training.calls[2]
    start(tmp_path, grid)
    assert len(training.calls) == 5
    assert training.calls[3] == interrupted
    assert [row["status"] for row in table(sweeps)] == ["finished"] * 4


def test_a_grid_that_is_trained_anew_and_stopped_goes_on_with_it_but_for_what_another_process_trains(
    tmp_path: Path, training: StubTraining, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, "seed=1,2,3,4")
    configs = [run_config([f"output_folder={tmp_path / 'outputs'}", f"seed={seed}"]) for seed in (1, 2, 3, 4)]
    runs = [Run.of(config) for config in configs]

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("endeavour.sweeps.trial.train_run", stopped)
    with pytest.raises(KeyboardInterrupt), runs[2].lock():
        start(tmp_path, "seed=1,2,3", "training.restart=true", "hydra/launcher=basic")
    assert list(map(goes_on, runs, configs)) == [False, False, True, True]


def test_a_trial_that_fails_stands_in_the_table_and_is_tried_again(
    tmp_path: Path, sweeps: Path, training: StubTraining
) -> None:
    training.bad_rates = [1e-3]
    grid = f"{RATE}=1e-4,1e-3,1e-2"
    with pytest.raises(UserError, match=r"1 of 3 trials failed.*diverged at 0\.001"):
        start(tmp_path, grid)
    assert [row["status"] for row in table(sweeps)] == ["finished", "finished", "failed"]
    assert "diverged at 0.001" in table(sweeps)[-1]["error"]
    training.bad_rates = []
    start(tmp_path, grid)
    assert training.calls[3:] == [training.calls[1]]
    assert [row["status"] for row in table(sweeps)] == ["finished"] * 3


def test_a_failure_is_told_with_its_remedy_which_comes_before_the_next_try(
    tmp_path: Path, training: StubTraining
) -> None:
    training.at_call[1] = UserError("out of memory on the longest batch\nlower training.tokens_per_batch")
    with pytest.raises(UserError) as caught:
        start(tmp_path, "seed=1,2")
    first, second = str(caught.value).split("\n")
    assert first.endswith("out of memory on the longest batch; lower training.tokens_per_batch")
    assert second.startswith("once that is mended, the same command tries")


def test_a_defect_is_not_the_users_error_and_its_traceback_is_named(
    tmp_path: Path, sweeps: Path, training: StubTraining
) -> None:
    training.at_call[1] = UserError("training diverged\nlower the learning rate")
    training.at_call[2] = IndexError("out of\nrange")
    with pytest.raises(RunError) as caught:
        start(tmp_path, "seed=1,2")
    (account,) = sweeps.glob("*/1/traceback.txt")
    assert "IndexError" in account.read_text()
    first, second = str(caught.value).split("\n")
    assert "training diverged" in first
    assert str(account) in second


def name_of(*overrides: str) -> str:
    """Of a trial with these values, which another trial has too."""
    plan = make_plan([f"{override},null" for override in overrides])
    return run_config([*overrides, *plan.added[1:]]).name


def test_names_of_trials_are_those_of_one_folder_however_much_is_swept() -> None:
    assert name_of("model.dropout=0.1") == "textbook-tiny-1-dropout_0.1"
    here, there = (name_of(f"data_folder=/data/{place}") for place in ("here", "there"))
    assert here != there
    assert "/" not in here + there
    rates = [
        f"training.{key}=0.25"
        for key in ("adam_beta1", "adam_beta2", "learning_rate", "final_learning_rate", "label_smoothing")
    ]
    rates += [f"model.{key}dropout=0.25" for key in ("", "attention_", "embedding_", "activation_")]
    assert len(name_of(*rates, "decoding.length_penalty=0.5").encode()) < 150


def test_after_a_launcher_that_failed_the_same_command_goes_on(
    tmp_path: Path, sweeps: Path, training: StubTraining, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*arguments: object) -> None:
        run_hydra(*arguments)  # type: ignore[arg-type]
        raise OSError("a worker was killed")

    monkeypatch.setattr("endeavour.commands.sweep.run_hydra", killed)
    with pytest.raises(RunError, match=r"OSError: a worker was killed\nthe same command continues"):
        start(tmp_path, "seed=1,2")
    assert [row["status"] for row in table(sweeps)] == ["finished"] * 2


@pytest.mark.parametrize("folder", ["oö", "a~b", "o'6"])
def test_names_of_folders_that_hydra_does_not_know(
    folder: str, tmp_path: Path, training: StubTraining
) -> None:
    typed = str(tmp_path / folder)
    quoted = f'"{typed}"' if "'" in typed else typed
    sweep([f"output_folder={quoted}", "seed=1,2"])
    assert len(list((tmp_path / folder / "sweeps").glob("*/results.csv"))) == 1


@pytest.mark.parametrize("sweeper", ["basic", "optuna"])
@pytest.mark.parametrize("choice", ["choice('ä', 'b c')", "choice(ä,b c)"])
def test_words_beyond_ascii_can_be_chosen_from(
    sweeper: str, choice: str, tmp_path: Path, sweeps: Path, training: StubTraining
) -> None:
    start(tmp_path, f"tokenizer.name={choice}", f"hydra/sweeper={sweeper}")
    assert sorted(row["tokenizer.name"].strip("'") for row in table(sweeps)) == ["b c", "ä"]


def test_a_search_through_hydra(
    tmp_path: Path, sweeps: Path, training: StubTraining, capsys: pytest.CaptureFixture[str]
) -> None:
    training.at_call[2] = UserError("the disk is full")
    with pytest.raises(UserError, match=r"1 of 3 trials failed.*the disk is full"):
        start(tmp_path, *SEARCH, "hydra.sweeper.n_trials=3")
    rows = table(sweeps)
    assert [row["status"] for row in rows] == ["finished", "finished", "failed"]
    assert {row["name"] for row in rows} == {
        f"textbook-tiny-1-learning_rate_{rate}" for rate in training.rates
    }
    assert "results.png" in capsys.readouterr().out
    start(tmp_path, *SEARCH, "hydra.sweeper.n_trials=3", "hydra/launcher=basic")
    assert training.calls[3:] == [training.calls[1]]
    assert [row["status"] for row in table(sweeps)] == ["finished"] * 3


def test_a_group_that_stands_elsewhere_in_the_config_tells_its_trials_apart(
    tmp_path: Path, sweeps: Path, training: StubTraining
) -> None:
    start(tmp_path, "decoding@validation_decoding=beam,greedy")
    assert training.calls == [f"textbook-tiny-1-validation_decoding_{name}" for name in ("beam", "greedy")]
    assert [row["decoding@validation_decoding"] for row in table(sweeps)] == ["beam", "greedy"]


def test_a_name_that_was_given_begins_the_names_of_the_runs(
    tmp_path: Path, sweeps: Path, training: StubTraining, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, "seed=1,2", "experiment=multi30k")
    assert training.calls == ["multi30k-tiny-1", "multi30k-tiny-2"]
    monkeypatch.chdir(tmp_path)
    sweep(["name=outputs/night", "seed=1,2", "experiment=multi30k"])  # with the output folder before it
    assert training.calls[2:] == ["night-seed_1", "night-seed_2"]
    (path,) = sweeps.glob("*night*/results.csv")
    assert path.read_text("utf-8").count("finished") == 2


def test_finished_runs_do_not_lend_their_scores_to_another_decoding(
    tmp_path: Path, training: StubTraining
) -> None:
    start(tmp_path, "seed=1,2")
    with pytest.raises(UserError, match=r"2 of 2 trials failed.*\bdecoding\b"):
        start(tmp_path, "seed=1,2", "decoding=greedy")
    assert len(training.calls) == 2


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        (["seed=1"], "model=tiny,small"),
        ([*SEARCH, "model=nowhere,nothing"], "model"),
        ([*SEARCH, "hydra.sweeper.trials=3"], "trials"),
        (["seed=1,2", "training.rate=3"], r"training\.rate"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_trained(
    overrides: list[str], named: str, tmp_path: Path, training: StubTraining
) -> None:
    with pytest.raises(UserError, match=named) as caught:
        start(tmp_path, *overrides)
    assert len(str(caught.value).splitlines()) <= 2
    assert training.calls == []


def test_a_name_that_cannot_be_resolved_fails_its_trials(
    tmp_path: Path, sweeps: Path, training: StubTraining
) -> None:
    with pytest.raises(UserError, match=r"2 of 2 trials failed.*sed"):
        start(tmp_path, "name=x-${sed}", "seed=1,2")
    assert [row["status"] for row in table(sweeps)] == ["failed"] * 2


@pytest.mark.parametrize("place", ["*/.results.csv.partial", "*/0/.trial.json.partial"])
def test_a_file_of_the_sweep_that_cannot_be_written_is_the_users_error(
    place: str, tmp_path: Path, sweeps: Path, training: StubTraining
) -> None:
    start(tmp_path, "seed=1,2")
    (written,) = sweeps.glob("*/results.csv")
    name = written.parent.name
    (sweeps / place.replace("*", name)).mkdir()
    with pytest.raises(UserError, match=rf"{name}.*: cannot be written \(.*output_folder=…"):
        start(tmp_path, "seed=1,2")


@pytest.mark.parametrize("search", [[], SEARCH])
def test_a_sweeps_folder_that_takes_no_files_is_told_before_anything_is_trained(
    search: list[str], tmp_path: Path, training: StubTraining, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    make_plan([f"output_folder={tmp_path / 'outputs'}", "seed=1,2", *search]).folder.mkdir(parents=True)
    monkeypatch.setattr("endeavour.commands.sweep.TemporaryFile", refuse)
    with pytest.raises(
        UserError, match=r"sweeps/.*: cannot be written \(Permission denied\).*output_folder=…"
    ):
        start(tmp_path, "seed=1,2", *search)
    assert training.calls == []


def test_what_a_trial_left_is_not_taken_for_that_of_another(
    tmp_path: Path, sweeps: Path, training: StubTraining
) -> None:
    training.at_call[1] = IndexError("out of range")
    with pytest.raises(RunError):
        start(tmp_path, "seed=1,2")
    assert list(sweeps.glob("*/*/traceback.txt"))
    start(tmp_path, "seed=1,2")
    assert not list(sweeps.glob("*/*/traceback.txt"))
