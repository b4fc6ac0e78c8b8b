"""What a sweep's overrides come to: what makes it another sweep, and what is refused."""

import sys

import pytest

from endeavour.errors import UserError
from endeavour.overrides import quote_words
from endeavour.sweeps.plan import make_plan

RATE = "training.learning_rate"
SEARCH = ["hydra/sweeper=optuna", f"{RATE}=tag(log,interval(1e-5,1e-1))"]


@pytest.mark.parametrize("searches", [[], ["hydra/sweeper=optuna"]])
def test_the_order_of_the_arguments_makes_no_other_sweep(searches: list[str]) -> None:
    arguments = ["model=tiny,small", "seed=1,2", f"{RATE}=1e-4,1e-3"]
    assert make_plan([*arguments, *searches]) == make_plan([*arguments[::-1], *searches])


def test_where_and_how_many_do_not_make_another_search() -> None:
    folder = make_plan(SEARCH).folder
    same = ["device=cpu", "data_folder=elsewhere", "tracking=none", "training.restart=true"]
    same += ["hydra.sweeper.n_trials=99", "hydra/launcher=joblib", "hydra.sweeper.n_jobs=2"]
    assert make_plan([*SEARCH, *same]).folder == folder
    for other in ("training.max_updates=7", "decoding.beam_size=2", "+corpus.path_of_another=x"):
        assert make_plan([*SEARCH, other]).folder != folder
    assert make_plan(["hydra/sweeper=optuna", f"{RATE}=interval(1e-5,1e-1)"]).folder != folder


def test_a_grid_may_be_widened_and_under_other_settings_is_another() -> None:
    folder = make_plan(["seed=1,2"]).folder
    assert make_plan(["seed=1,2,3"]).folder == folder
    assert make_plan(["seed=1,2", "training.max_updates=7"]).folder != folder
    assert make_plan(["seed=1,2", quote_words("experiment=null")]).folder == folder


def test_grids_of_keys_whose_last_words_are_the_same_are_two() -> None:
    plans = [make_plan([f"{key}=1,2"]) for key in ("seed", "corpus.seed", "augmentation.seed")]
    assert len({plan.folder for plan in plans}) == 3
    assert len({plan.added for plan in plans}) == 3


def test_a_sweep_of_many_keys_has_the_name_of_a_folder_and_of_no_other_sweep() -> None:
    keys = [f"evaluation.labels.quite_a_long_name_of_a_test_set_{number}" for number in range(16)]
    names = {make_plan([f"+{key}=1,2" for key in some]).folder.name for some in (keys, keys[:-1])}
    assert len(names) == 2
    assert all(len(name) < 150 for name in names)


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ([f"{RATE}=interval(1e-4,1e-2)"], "hydra/sweeper=optuna"),
        (["seed=range(1"], "seed=range"),
        (["seed=1,,2"], "seed=1,,2"),
        (["seed=1,2", "hydra/sweeper=ax"], "hydra/sweeper=ax"),
        (["seed=1,2", "hydra/launcher=slurm"], "submitit_slurm"),
        (["seed=1,2", "hydra/launcher=submitit_slurm"], "no srun here.*submitit_local"),
        (["name=a,b"], "name=a,b"),
        (["seed=1,2", "output_folder=${oc.env:HOME}/runs"], "output_folder"),
        (["seed=1,2", "hydra.sweep.dir=elsewhere"], r"hydra\.sweep\.dir"),
    ],
)
def test_a_sweep_that_could_not_be_run_is_refused(
    overrides: list[str], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("endeavour.sweeps.plan.which", lambda _: None)
    with pytest.raises(UserError, match=named) as caught:
        make_plan(overrides)
    assert "\n" not in str(caught.value)


def test_missing_packages_are_named_with_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.setattr("endeavour.sweeps.plan.find_spec", lambda name: None)
    for overrides in (SEARCH, ["seed=1,2", "hydra/launcher=joblib"]):
        with pytest.raises(UserError, match=r"pip install -e '\.\[sweep\]'"):
            make_plan(overrides)
