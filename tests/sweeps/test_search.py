"""Search with a stub for its trials: which values are tried, and how a search goes on where it was stopped."""

import json
import math
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import IntDistribution

from endeavour.errors import UserError
from endeavour.sweeps.search import _options, database, search
from endeavour.sweeps.trial import NOTE, falls_behind, result_rows
from endeavour.training.loop import Pruned
from stub_training import BEST_RATE, RATE, StubTraining

SETTINGS = {
    "metric": "validation.bleu",
    "n_trials": 20,
    "n_jobs": 1,
    "sampler": "tpe",
    "seed": 1,
    "prune_after": None,
    "storage": None,
}


class Searching:
    """`search` over a learning rate with stubs for its trials, which are noted as `trial` notes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "sweep"
        self.folder.mkdir(parents=True)
        self.training = StubTraining()
        self.prune_after: int | None = None

    def __call__(self, swept: str = f"{RATE}=tag(log,interval(1e-5,1e-1))", **settings: Any) -> None:
        search(SETTINGS | settings, [swept, "seed=5"], self.folder, self._run)

    def _run(self, trials: Mapping[int, list[str]]) -> None:
        for number, overrides in trials.items():
            values = dict(override.split("=", 1) for override in overrides)
            assert values.pop("seed") == "5"
            folder = self.folder / str(number)
            run = self.folder.parent / "runs" / values[RATE]
            folder.mkdir(exist_ok=True)
            note: dict[str, Any] = {"run": str(run), "overrides": values}
            (folder / NOTE).write_text(json.dumps(note))
            others = self.prune_after
            prune = partial(falls_behind, folder, "validation.bleu", others) if others else None
            try:
                self.training.run(run, float(values[RATE]), prune)
            except Pruned as reason:
                (folder / NOTE).write_text(json.dumps(note | {"pruned": str(reason)}))
            except UserError as error:
                (folder / NOTE).write_text(json.dumps(note | {"error": str(error)}))

    def states(self) -> list[str]:
        with database(None, self.folder) as storage:
            study = optuna.load_study(study_name="sweep", storage=storage)
            return [trial.state.name for trial in study.trials]


@pytest.fixture
def searching(tmp_path: Path) -> Searching:
    return Searching(tmp_path)


@pytest.fixture
def training(searching: Searching) -> StubTraining:
    return searching.training


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
    unbroken = Searching(tmp_path / "unbroken")
    unbroken(n_trials=14)
    training.at_call = {4: KeyboardInterrupt(), 12: KeyboardInterrupt()}
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            searching(n_trials=14)
    searching(n_trials=14)
    assert training.calls == [
        *unbroken.training.calls[:4],
        *unbroken.training.calls[3:11],
        *unbroken.training.calls[10:],
    ]
    assert searching.states() == ["COMPLETE"] * 14
    searching(n_trials=14)
    assert len(training.calls) == 16  # nothing was left to do
    searching(n_trials=15)
    assert len(training.calls) == 17


def test_the_study_lies_in_the_folder_whatever_its_name_or_where_the_user_says(tmp_path: Path) -> None:
    searching = Searching(tmp_path / "o?p %41{x}#ü")
    searching(n_trials=1)
    assert (searching.folder / "study.db").is_file()
    searching(n_trials=1)
    assert len(searching.training.calls) == 1
    searching(n_trials=1, storage=f"sqlite:///{tmp_path / 'other.db'}")
    assert (tmp_path / "other.db").is_file()


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


def test_a_run_that_ends_in_no_number_is_the_worst_and_not_tried_again(
    searching: Searching, training: StubTraining
) -> None:
    training.nan_rates = [0.02]
    searching(f"{RATE}=0.01,0.02,0.03")
    assert sorted(training.rates) == [0.01, 0.02, 0.03]
    assert searching.states().count("COMPLETE") == 3


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
    swept = ["a=int(interval(1,4))", "b=interval(0.5,1)", "c=range(2,9,step=3)", "d=x,null,[1,2]"]
    search(SETTINGS | own, [*swept, "seed=5"], tmp_path, run)
    assert len(tried) == 3
    for overrides in tried:
        assert overrides[0] == "seed=5"
        values = dict(override.split("=", 1) for override in overrides)
        assert values["a"] in "1234"
        assert 0.5 <= float(values["b"]) <= 1
        assert len(values["b"]) <= 6
        assert values["c"] in "258"
        assert values["d"] in ("x", "null", "[1,2]")


@pytest.mark.parametrize(
    ("swept", "settings", "named"),
    [
        ("interval(1e-5,1e-1)", {"direction": "minimize"}, "direction"),
        ("interval(1e-5,1e-1)", {"seed": 5_000_000_000}, "seed"),
        ("interval(1e-5,1e-1)", {"metric": "test.test.bleu"}, "metric"),
        ("interval(1e-5,1e-1)", {"n_trials": 0}, "n_trials"),
        ("interval(1e-5,1e-1)", {"n_trials": "many"}, "n_trials"),
        ("tag(log,interval(0,1))", {}, RATE),
        ("interval(2,1)", {}, RATE),
        ("glob(*)", {}, RATE),
    ],
)
def test_what_cannot_be_searched_is_refused(
    swept: str, settings: dict[str, Any], named: str, searching: Searching, training: StubTraining
) -> None:
    with pytest.raises(UserError, match=named):
        searching(f"{RATE}={swept}", **settings)
    assert training.calls == []
