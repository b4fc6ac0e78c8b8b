"""Sweeps with a stub in place of training: what is tried, what is repeated, what is left of it."""

import csv
import json
import math
import shutil
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import optuna
import pytest
from endeavour.saved_config import save_config
from endeavour.stages.search import _options, search
from endeavour.stages.sweep import make_plan, sweep
from endeavour.stages.train import train
from endeavour.stages.trial import NOTE, hopeless, result_rows
from optuna.distributions import IntDistribution

from endeavour.config import Config, load_config
from endeavour.errors import RunError, UserError
from endeavour.training.checkpoint import checkpoints_in
from endeavour.training.loop import Pruned

BEST_RATE = 2e-3
RATE = "training.learning_rate"
SEARCH = ["hydra/sweeper=optuna", f"{RATE}=tag(log,interval(1e-5,1e-1))"]
VALIDATIONS = (100, 200, 300)
SETTINGS = {
    "metric": "validation.bleu",
    "n_trials": 20,
    "n_jobs": 1,
    "sampler": "tpe",
    "seed": 1,
    "prune_after": None,
}

Prune = Callable[[], bool]


class StubTraining:
    """In place of `train`: BLEU is best at BEST_RATE; a finished run is not trained again.

    `calls` are the runs that were trained; `at_call` may raise what it likes when that many were.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.rates: list[float] = []
        self.groups: set[str | None] = set()
        self.at_call: dict[int, BaseException] = {}
        self.bad_rates: list[float] = []

    def __call__(self, config: Config, prune: Prune | None = None) -> None:
        self.groups.add(config.tracking.group)
        self.run(config.run_folder, config.training.learning_rate, prune)

    def run(self, folder: Path, rate: float, prune: Prune | None = None) -> None:
        if (folder / "summary.json").is_file():
            return
        folder.mkdir(parents=True, exist_ok=True)
        self.calls.append(folder.name)
        self.rates.append(rate)
        if len(self.calls) in self.at_call:
            raise self.at_call[len(self.calls)]
        if rate in self.bad_rates:
            raise UserError(f"training diverged at {rate}")
        bleu = 40 - 10 * abs(math.log10(rate / BEST_RATE))
        lines: list[str] = []
        for update in VALIDATIONS:
            share = update / VALIDATIONS[-1]
            lines.append(json.dumps({"kind": "validation", "update": update, "bleu": bleu * share}))
            (folder / "log.jsonl").write_text("\n".join(lines) + "\n")
            if prune is not None and update < VALIDATIONS[-1] and prune():
                raise Pruned(f"after update {update}")
        scores = {"loss": 1.0, "perplexity": 3.0, "bleu": bleu}
        summary = {
            "name": folder.name,
            "status": "finished",
            "updates": 300,
            "validation": scores,
            "test": {},
        }
        (folder / "summary.json").write_text(json.dumps(summary))


class Searching:
    """`search` over a learning rate with stubs for its trials, which are noted as `trial` notes them."""

    def __init__(self, tmp_path: Path, training: StubTraining) -> None:
        self.folder = tmp_path / "sweep"
        self.folder.mkdir(parents=True)
        self.training = training
        self.prune_after: int | None = None

    def __call__(self, swept: str = SEARCH[1], **settings: Any) -> None:
        storage = f"sqlite:///{self.folder / 'study.db'}"
        search(SETTINGS | {"storage": storage} | settings, [swept, "seed=5"], self.folder, self._run)

    def _run(self, trials: Mapping[int, list[str]]) -> None:
        for number, overrides in trials.items():
            values = dict(override.split("=", 1) for override in overrides)
            assert values.pop("seed") == "5"
            folder = self.folder / str(number)
            run = self.folder.parent / "runs" / values[RATE]
            folder.mkdir(exist_ok=True)
            note: dict[str, Any] = {"run": str(run), "overrides": values}
            (folder / NOTE).write_text(json.dumps(note))
            worse = (
                partial(hopeless, folder, "validation.bleu", self.prune_after) if self.prune_after else None
            )
            try:
                self.training.run(run, float(values[RATE]), worse)
            except Pruned as reason:
                (folder / NOTE).write_text(json.dumps(note | {"pruned": str(reason)}))
            except UserError as error:
                (folder / NOTE).write_text(json.dumps(note | {"error": str(error)}))

    def states(self) -> list[str]:
        study = optuna.load_study(study_name="sweep", storage=f"sqlite:///{self.folder / 'study.db'}")
        return [trial.state.name for trial in study.trials]


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> StubTraining:
    stub = StubTraining()
    monkeypatch.setattr("endeavour.stages.trial.train", stub)
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


@pytest.fixture
def searching(tmp_path: Path, training: StubTraining) -> Searching:
    return Searching(tmp_path, training)


# Grids


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


def test_every_trial_is_its_own_run_and_all_are_one_group(tmp_path: Path, training: StubTraining) -> None:
    start(tmp_path, f"{RATE}=1e-4,2e-3")
    assert training.calls == ["textbook-tiny-1-learning_rate_0.0001", "textbook-tiny-1-learning_rate_0.002"]
    (group,) = training.groups
    assert group is not None
    assert (tmp_path / "outputs" / "sweeps" / group).is_dir()
    assert sys.argv[:2] == ["endeavour", "train"]  # what run.json notes: this run alone
    assert f"{RATE}=0.002" in sys.argv


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


def test_a_defect_is_no_fault_of_the_user_and_leaves_its_traceback(
    tmp_path: Path, sweeps: Path, training: StubTraining
) -> None:
    training.at_call[1] = IndexError("out of range")
    with pytest.raises(RuntimeError, match="IndexError: out of range"):
        start(tmp_path, "seed=1,2")
    (account,) = sweeps.glob("*/0/traceback.txt")
    assert "IndexError" in account.read_text()
    assert len(training.calls) == 2


def test_the_last_message_has_two_lines_and_names_the_traceback_of_a_defect(
    tmp_path: Path, sweeps: Path, training: StubTraining
) -> None:
    training.at_call[1] = UserError("training diverged\nlower the learning rate")
    training.at_call[2] = IndexError("out of\nrange")
    with pytest.raises(RunError) as caught:
        start(tmp_path, "seed=1,2")
    (account,) = sweeps.glob("*/1/traceback.txt")
    first, second = str(caught.value).split("\n")
    assert first.endswith("training diverged")
    assert second.startswith(f"{account} shows where it happened")
    training.at_call = {3: UserError("training diverged\nlower the learning rate")}
    with pytest.raises(UserError) as failed:
        start(tmp_path, "seed=1,2")
    assert str(failed.value).count("\n") == 1


def test_a_group_that_stands_elsewhere_in_the_config_tells_its_trials_apart(
    tmp_path: Path, sweeps: Path, training: StubTraining
) -> None:
    start(tmp_path, "decoding@validation_decoding=beam,greedy")
    assert training.calls == [f"textbook-tiny-1-validation_decoding_{name}" for name in ("beam", "greedy")]
    assert [row["decoding@validation_decoding"] for row in table(sweeps)] == ["beam", "greedy"]


def test_a_name_that_was_given_begins_the_names_of_the_runs(tmp_path: Path, training: StubTraining) -> None:
    start(tmp_path, "name=night", "seed=1,2", "experiment=multi30k")
    assert training.calls == ["night-seed_1", "night-seed_2"]
    start(tmp_path, "seed=1,2", "experiment=multi30k")
    assert training.calls[2:] == ["multi30k-tiny-1", "multi30k-tiny-2"]


def test_a_name_may_begin_with_the_output_folder(
    tmp_path: Path, sweeps: Path, training: StubTraining, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sweep(["output_folder=outputs", "name=outputs/night", "seed=1,2"])
    assert [row["status"] for row in table(sweeps)] == ["finished"] * 2
    assert training.calls == ["night-seed_1", "night-seed_2"]


def test_the_order_of_the_arguments_makes_no_other_sweep(tmp_path: Path) -> None:
    arguments = ["model=tiny,small", "seed=1,2", f"{RATE}=1e-4,1e-3", f"output_folder={tmp_path}"]
    for searches in ([], ["hydra/sweeper=optuna"]):
        plans = [make_plan([*order, *searches]) for order in (arguments, arguments[::-1])]
        assert plans[0] == plans[1]


@pytest.mark.parametrize(
    "override",
    ["output_folder=${oc.env:HOME}/runs", "hydra.sweep.subdir=x", "hydra.sweep.dir=elsewhere"],
)
def test_folders_that_results_would_not_be_found_in_are_refused(override: str) -> None:
    with pytest.raises(UserError, match=override.partition("=")[0]):
        make_plan(["seed=1,2", override])


def test_finished_runs_do_not_lend_their_scores_to_another_decoding(
    tmp_path: Path, training: StubTraining
) -> None:
    start(tmp_path, "seed=1,2")
    for call in training.calls:
        config = load_config([f"output_folder={tmp_path / 'outputs'}", f"name={call}"])
        save_config(config, config.run_folder / "config.yaml")
    start(tmp_path, "seed=1,2")
    with pytest.raises(UserError, match=r"2 of 2 trials failed.*scores are of other decoding settings"):
        start(tmp_path, "seed=1,2", "decoding=greedy")
    assert len(training.calls) == 2


# Searches


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


def test_a_search_gets_better_than_chance(searching: Searching, training: StubTraining) -> None:
    searching(n_trials=25)
    assert len(training.rates) == 25
    assert all(1e-5 <= rate <= 1e-1 for rate in training.rates)
    distances = [abs(math.log10(rate / BEST_RATE)) for rate in training.rates]
    assert min(distances[10:]) < min(distances[:10])  # the first ten are drawn blindly
    assert min(distances) < 0.1


def test_a_search_that_was_interrupted_makes_the_trials_of_an_unbroken_one(
    tmp_path: Path, searching: Searching, training: StubTraining
) -> None:
    unbroken = StubTraining()
    Searching(tmp_path / "unbroken", unbroken)(n_trials=14)
    training.at_call = {4: KeyboardInterrupt(), 12: KeyboardInterrupt()}
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            searching(n_trials=14)
    searching(n_trials=14)
    assert training.calls == [*unbroken.calls[:4], *unbroken.calls[3:11], *unbroken.calls[10:]]
    assert searching.states() == ["COMPLETE"] * 14
    searching(n_trials=14)
    assert len(training.calls) == 16  # nothing was left to do
    searching(n_trials=15)
    assert len(training.calls) == 17


def test_a_wide_range_of_whole_numbers_is_not_listed_to_be_counted() -> None:
    assert _options(IntDistribution(1, 10**6)) == range(1, 10**6 + 1)
    assert list(_options(IntDistribution(2, 8, step=3))) == [2, 5, 8]


def test_a_failed_trial_of_a_search_is_left_for_the_next_start(
    searching: Searching, training: StubTraining
) -> None:
    training.at_call[3] = UserError("the disk is full")
    searching(n_trials=5)
    assert searching.states() == ["COMPLETE", "COMPLETE", "RUNNING", "COMPLETE", "COMPLETE"]
    searching(n_trials=5)
    assert training.calls[5:] == [training.calls[2]]
    assert searching.states() == ["COMPLETE"] * 5


def test_a_search_in_which_all_fails_ends_soon(
    searching: Searching, training: StubTraining, capsys: pytest.CaptureFixture[str]
) -> None:
    training.at_call = {call: UserError("no such corpus") for call in range(1, 20)}
    searching()
    assert len(training.calls) == 3
    assert "the search ends" in capsys.readouterr().err


@pytest.mark.parametrize(("swept", "jobs"), [("range(0.01,0.045,step=0.01)", 1), ("0.01,0.02,0.03,0.04", 4)])
def test_values_that_are_few_are_tried_once_each(
    swept: str, jobs: int, searching: Searching, training: StubTraining
) -> None:
    searching(f"{RATE}={swept}", n_jobs=jobs)
    assert sorted(training.rates) == [0.01, 0.02, 0.03, 0.04]


def test_of_many_listed_values_none_is_left_out(searching: Searching, training: StubTraining) -> None:
    searching(f"{RATE}=range(1,41)", n_trials=60)
    assert sorted(training.rates) == list(range(1, 41))


def test_trials_worse_than_the_median_are_pruned(searching: Searching, training: StubTraining) -> None:
    searching.prune_after = 5
    searching(n_trials=16)
    assert len(training.calls) == 16
    rows = result_rows([searching.folder / str(number) for number in range(16)], "validation.bleu")
    pruned = [number for number, row in enumerate(rows) if row["status"] == "pruned"]
    assert pruned
    assert min(pruned) >= 5
    assert [number for number, state in enumerate(searching.states()) if state == "PRUNED"] == pruned
    assert all(rows[number]["updates"] in (100, 200) for number in pruned)
    searching(n_trials=16)
    assert len(training.calls) == 16
    shutil.rmtree(searching.folder.parent / "runs" / training.calls[pruned[0]])  # for its room on the disk
    (row,) = result_rows([searching.folder / str(pruned[0])], "validation.bleu")
    assert row["status"] == "pruned"


def test_the_median_rule(tmp_path: Path) -> None:
    def noted(number: int, *bleu: float) -> Path:
        run, folder = tmp_path / f"run-{number}", tmp_path / "sweep" / str(number)
        run.mkdir()
        folder.mkdir(parents=True)
        lines = [
            {"kind": "validation", "update": (at + 1) * 10, "bleu": value} for at, value in enumerate(bleu)
        ]
        (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (folder / "trial.json").write_text(json.dumps({"run": str(run), "overrides": {}}))
        return folder

    for number, bleu in enumerate([(1, 5, 9), (2, 6, 5), (3, 4, 30), (40,)]):
        noted(number, *bleu)
    # By update 20 the others had reached 5, 6 and 4; the fourth has not come so far.
    assert hopeless(noted(10, 4.9, 4.5), "validation.bleu", 3)
    assert not hopeless(noted(11, 5.5, 0.0), "validation.bleu", 3)
    assert not hopeless(noted(12, 0.0, 0.0), "validation.bleu", 9)

    # What a trial began with is not its own.
    worse = noted(13, 4.9, 4.5)
    log = Path(json.loads((worse / NOTE).read_text())["run"]) / "log.jsonl"
    log.write_text(json.dumps({"kind": "validation", "update": 0, "bleu": 99.0}) + "\n" + log.read_text())
    assert hopeless(worse, "validation.bleu", 3)

    # Those that had not validated by the same update say nothing.
    late = [noted(number, *(40.0,) * 3) for number in (20, 21, 22)]
    for folder in late:
        log = Path(json.loads((folder / NOTE).read_text())["run"]) / "log.jsonl"
        log.write_text(log.read_text().replace("0,", "000,"))
    assert not hopeless(noted(23, 0.0), "validation.bleu", 9)


def test_a_run_that_was_given_up_is_saved_and_can_go_on(
    parallel_files: list[str], folders: list[str], tmp_path: Path
) -> None:
    config = load_config([*parallel_files, *folders, "evaluation.splits=[validation]"])
    with pytest.raises(Pruned, match="after update 3"):
        train(config, lambda: True)
    assert [path.name for path in checkpoints_in(config.run_folder / "checkpoints")] == ["update-00000003"]
    assert not (config.run_folder / "summary.json").exists()
    assert train(config, lambda: False)["updates"] == 6


def test_ranges_become_what_optuna_draws_from(tmp_path: Path) -> None:
    tried: list[list[str]] = []

    def run(trials: Any) -> None:
        tried.extend(trials.values())

    own = {
        "metric": "validation.loss",
        "sampler": "random",
        "n_trials": 3,
        "n_jobs": 3,
    }
    settings = SETTINGS | own | {"storage": f"sqlite:///{tmp_path / 'study.db'}"}
    swept = ["a=int(interval(1,4))", "b=interval(0.5,1)", "c=range(2,9,step=3)", "d=x,null,[1,2]"]
    search(settings, [*swept, "seed=5"], tmp_path, run)
    assert len(tried) == 3
    for overrides in tried:
        assert overrides[0] == "seed=5"
        values = dict(override.split("=", 1) for override in overrides)
        assert values["a"] in "1234"
        assert 0.5 <= float(values["b"]) <= 1
        assert len(values["b"]) <= 6
        assert values["c"] in "258"
        assert values["d"] in ("x", "null", "[1,2]")


# Errors

WRONG = [
    (["seed=1"], "model=tiny,small"),
    ([f"{RATE}=interval(1e-4,1e-2)"], "hydra/sweeper=optuna"),
    (["seed=range(1"], "seed=range"),
    (["seed=1,,2"], "seed=1,,2.*extraneous input"),
    ([*SEARCH, "training.patience=choice(3,null)"], "NoneType is incompatible"),
    (["seed=1,2", "hydra/sweeper=ax"], "hydra/sweeper=ax is not known: choose basic"),
    (["seed=1,2", "hydra/launcher=slurm"], "submitit_slurm"),
    (["name=a,b"], "only what makes a run"),
    ([*SEARCH, "hydra.sweeper.direction=minimize"], r"direction"),
    ([*SEARCH, "hydra.sweeper.seed=5000000000"], r"hydra\.sweeper\.seed=5000000000: must be .* below 2\^31"),
    ([*SEARCH, "hydra.sweeper.metric=test.test.bleu"], r"metric=test\.test\.bleu is not known"),
    ([*SEARCH, "hydra.sweeper.n_trials=0"], r"n_trials=0: must be at least 1"),
    ([*SEARCH, "hydra.sweeper.n_trials=many"], r"hydra\.sweeper\.n_trials.*many"),
    ([*SEARCH, "hydra.sweeper.trials=3"], r"trials"),
    (["hydra/sweeper=optuna", f"{RATE}=tag(log,interval(0,1))"], "above 0"),
    (["hydra/sweeper=optuna", f"{RATE}=interval(2,1)"], "below the second"),
    (["hydra/sweeper=optuna", "model=glob(*)"], "list the options"),
    (["hydra/sweeper=optuna", "model=nowhere,nothing"], "nothing"),
]


@pytest.mark.parametrize(("overrides", "words"), WRONG)
def test_what_is_wrong_is_said_before_anything_is_trained(
    overrides: list[str], words: str, tmp_path: Path, training: StubTraining
) -> None:
    with pytest.raises(UserError, match=words) as caught:
        start(tmp_path, *overrides)
    assert len(str(caught.value).splitlines()) <= 2
    assert training.calls == []


def test_missing_packages_are_named_with_their_extra(
    tmp_path: Path, training: StubTraining, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UserError, match=r"pip install -e '\.\[sweep\]'"):
        start(tmp_path, *SEARCH)
    monkeypatch.setattr("endeavour.stages.sweep.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install -e '\.\[sweep\]'"):
        start(tmp_path, "seed=1,2", "hydra/launcher=joblib")


def test_where_and_how_many_do_not_make_another_search() -> None:
    folder = make_plan(SEARCH).folder
    same = ["hydra.sweeper.n_trials=99", "hydra/launcher=joblib", "hydra.sweeper.n_jobs=2"]
    assert make_plan([*SEARCH, *same]).folder == folder
    assert make_plan([*SEARCH, "training.max_updates=7"]).folder != folder
    assert make_plan(["hydra/sweeper=optuna", f"{RATE}=interval(1e-5,1e-1)"]).folder != folder
