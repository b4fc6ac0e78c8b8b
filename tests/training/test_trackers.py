"""Trackers: what they are told, resuming, and that none can end a training.

TensorBoard is the real one. MLflow and trackio are replaced by the calls that are made of them, as their versions 3.17
and 0.43 have them.
"""

import ast
import inspect
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from endeavour.errors import UserError
from endeavour.training import trackers
from endeavour.training.trackers import COLUMNS, TRACKERS, open_tracker, require_tracker
from endeavour.training.tracking import GuardedTracker, NoTracker, TrackedRun, Tracker, TrackingConfig

SAMPLES = [("the dog", "der Hund", "der Hund"), ("a | b", "a\nb", "ein")]
CONFIG = {"seed": 3, "model": {"width": 16}}


def chosen(tracker: Any, *, online: bool = False, group: str | None = None) -> TrackingConfig:
    return TrackingConfig(tracker=tracker, online=online, project="project", group=group)


def opened(
    tracker: str,
    folder: Path,
    *,
    notes: list[str] | None = None,
    tracking_id: str | None = None,
    update: int = 0,
    **more: Any,
) -> Tracker:
    run = TrackedRun("run", CONFIG, folder, folder.parent, update)
    note: Callable[[str], None] = pytest.fail if notes is None else notes.append
    return open_tracker(chosen(tracker, **more), run, tracking_id=tracking_id, note=note)


# TensorBoard


def test_tensorboard_has_metrics_samples_and_config_and_forgets_what_a_resumed_run_repeats(
    tmp_path: Path,
) -> None:
    first = opened("tensorboard", tmp_path)
    for update in (2, 4, 6):
        first.log({"train/loss": 1 / update, "train/nan": math.nan}, update)
    first.log_samples(SAMPLES, 4)
    first.finish()
    again = opened("tensorboard", tmp_path, tracking_id=first.id, update=4)
    assert again.id == first.id
    again.log({"train/loss": 0.5}, 6)
    again.finish()
    written = EventAccumulator(str(tmp_path / "tensorboard"))
    written.Reload()
    losses = {event.step: event.value for event in written.Scalars("train/loss")}
    assert losses == pytest.approx({2: 0.5, 4: 0.25, 6: 0.5})
    (samples,) = written.Tensors("samples/text_summary")
    assert samples.tensor_proto.string_val[0].decode() == samples_table()
    (config,) = written.Tensors("config/text_summary")
    assert "| model.width | 16 |" in config.tensor_proto.string_val[0].decode()


def samples_table() -> str:
    return "\n".join(
        [
            "| source | hypothesis | reference |",
            "| --- | --- | --- |",
            "| the dog | der Hund | der Hund |",
            "| a \\| b | a b | ein |",
        ]
    )


# MLflow


class MlflowException(Exception):
    pass


class MlflowClient:
    """The part of MLflow's client that is used, over what all clients share."""

    stores: dict[str | None, dict[str, Any]]  # by address: experiment or run → what is known of it

    def __init__(self, tracking_uri: str | None) -> None:
        self.uri = tracking_uri
        self.store = self.stores.setdefault(tracking_uri, {})

    def get_experiment_by_name(self, name: str) -> Any:
        return self.store.get(name)

    def create_experiment(self, name: str, artifact_location: str | None) -> str:
        assert name not in self.store
        self.store[name] = SimpleNamespace(experiment_id=f"of {name}", artifacts=artifact_location)
        return f"of {name}"

    def create_run(self, experiment_id: str, *, run_name: str, tags: dict[str, str]) -> Any:
        run_id = f"run {len(self.store)}"
        known = {"experiment": experiment_id, "name": run_name, "tags": tags, "status": "RUNNING"}
        self.store[run_id] = {**known, "params": {}, "metrics": [], "texts": {}}
        return SimpleNamespace(info=SimpleNamespace(run_id=run_id))

    def update_run(self, run_id: str, status: str) -> None:
        if run_id not in self.store:
            raise MlflowException(f"Run with id={run_id} not found")
        self.store[run_id]["status"] = status

    def log_batch(self, run_id: str, metrics: Any = (), params: Any = ()) -> None:
        assert len(params) <= 100
        self.store[run_id]["params"] |= dict(params)
        self.store[run_id]["metrics"] += [(name, value, step) for name, value, _, step in metrics]

    def log_text(self, run_id: str, text: str, artifact_file: str) -> None:
        self.store[run_id]["texts"][artifact_file] = text

    def set_terminated(self, run_id: str) -> None:
        self.store[run_id]["status"] = "FINISHED"


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> dict[str | None, dict[str, Any]]:
    mlflow, entities = ModuleType("mlflow"), ModuleType("mlflow.entities")
    monkeypatch.setattr(MlflowClient, "stores", {}, raising=False)
    vars(mlflow).update(MlflowClient=MlflowClient, MlflowException=MlflowException)
    vars(entities).update(Metric=lambda *values: values, Param=lambda *values: values)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    for name in ("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "MLFLOW_HTTP_REQUEST_TIMEOUT"):
        monkeypatch.setenv(name, "1")
    return MlflowClient.stores


def test_mlflow_has_one_database_for_all_runs_and_a_resumed_run_goes_on_there(
    stores: dict[str | None, dict[str, Any]], tmp_path: Path
) -> None:
    one, two = (opened("mlflow", tmp_path / name, group="sweep") for name in "ab")
    one.log({"train/loss": 0.5}, 2)
    one.log_samples(SAMPLES, 2)
    one.finish()
    two.finish()
    again = opened("mlflow", tmp_path / "a", tracking_id=one.id, update=2)
    assert again.id == one.id != two.id
    again.log({"train/loss": 0.25}, 4)
    ((uri, store),) = stores.items()
    assert uri == f"sqlite:///{tmp_path}/mlflow.db"
    assert store["project"].artifacts == (tmp_path / "mlflow-artifacts").as_uri()
    run = store[str(one.id).removeprefix("mlflow:")]
    assert run["metrics"] == [("train/loss", 0.5, 2), ("train/loss", 0.25, 4)]
    assert run["params"] == {"seed": "3", "model.width": "16"}
    assert run["texts"] == {"samples/00000002.md": samples_table()}
    assert (run["name"], run["tags"], run["status"]) == ("run", {"group": "sweep"}, "RUNNING")
    again.finish()
    assert run["status"] == "FINISHED"


def test_mlflow_makes_a_new_run_where_the_old_one_was_deleted_and_asks_its_own_server_if_it_is_online(
    stores: dict[str | None, dict[str, Any]], tmp_path: Path
) -> None:
    tracker = opened("mlflow", tmp_path / "a", tracking_id="mlflow:gone", online=True)
    assert tracker.id not in ("mlflow:gone", None)
    assert list(stores) == [None]  # which means MLFLOW_TRACKING_URI


# trackio


@pytest.fixture
def inits(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What trackio was started with, the environment included, and what its runs were told."""
    made: list[dict[str, Any]] = []

    def init(**given: Any) -> Any:
        variables = {name: os.environ.get(name) for name in trackers.SERVERS["trackio"]}
        made.append(given | {"variables": variables, "logged": []})
        print("* Trackio project initialized")
        return SimpleNamespace(log=lambda metrics, step: made[-1]["logged"].append((metrics, step)))

    trackio = ModuleType("trackio")
    table = lambda columns, data: (columns, data)  # noqa: E731
    vars(trackio).update(init=init, Table=table, finish=lambda: print("* Run finished"))
    monkeypatch.setitem(sys.modules, "trackio", trackio)
    monkeypatch.setenv("TRACKIO_SPACE_ID", "me/space")
    return made


def test_trackio_finds_its_run_by_a_name_of_its_own_and_is_local_unless_it_is_online(
    inits: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = opened("trackio", tmp_path), opened("trackio", tmp_path)
    one.finish()
    again = opened("trackio", tmp_path, tracking_id=one.id, online=True)
    again.log({"train/loss": 0.5}, 2)
    again.log_samples(SAMPLES, 2)
    names = [given["name"] for given in inits]
    assert names[0] == names[2] != names[1]
    assert all(name.startswith("run-") for name in names)
    assert again.id == one.id == f"trackio:{names[0]}" != two.id
    assert {given["resume"] for given in inits} == {"allow"}
    spaces = [given["variables"]["TRACKIO_SPACE_ID"] for given in inits]
    assert spaces == [None, None, "me/space"]
    assert os.environ["TRACKIO_SPACE_ID"] == "me/space"
    table = (list(COLUMNS), [list(sample) for sample in SAMPLES])
    assert inits[2]["logged"] == [({"train/loss": 0.5}, 2), ({"samples": table}, 2)]
    assert capsys.readouterr().out == ""  # where scores are printed


# Nothing ends a training


class Failing:
    """Fails at one of its methods, and counts the calls."""

    def __init__(self, at: str, error: BaseException) -> None:
        self.id: str | None = "x"
        self.calls: list[str] = []
        self._at, self._error = at, error

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name == self._at:
            raise self._error

    def log(self, metrics: object, update: int) -> None:
        self._call("log")

    def log_samples(self, samples: object, update: int) -> None:
        self._call("log_samples")

    def finish(self) -> None:
        self._call("finish")


@pytest.mark.parametrize("error", [OSError("disk full\nmore"), SystemExit(1), AssertionError()])
@pytest.mark.parametrize("at", ["log", "log_samples", "finish"])
def test_the_first_failure_is_noted_and_the_tracker_is_closed_and_left_alone(
    at: str, error: BaseException
) -> None:
    failing, notes = Failing(at, error), list[str]()
    tracker = GuardedTracker("failing", lambda _: failing, None, notes.append)
    calls = ["log", "log_samples", "finish"]
    for _ in range(2):
        tracker.log({}, 1)
        tracker.log_samples([], 1)
        tracker.finish()
    # One left open would take what the next run of this process logs.
    assert failing.calls == list(dict.fromkeys([*calls[: calls.index(at) + 1], "finish"]))
    (note,) = notes
    assert type(error).__name__ in note
    assert "more" not in note
    assert tracker.id == "failing:x"  # by which a resumed run tries again


def test_a_tracker_that_does_not_open_is_noted_and_keeps_the_id() -> None:
    notes: list[str] = []

    def refuse(_: str | None) -> Tracker:
        raise ConnectionError("no network")

    tracker = GuardedTracker("refusing", refuse, "refusing:x", notes.append)
    tracker.log({}, 1)
    tracker.finish()
    assert tracker.id == "refusing:x"
    assert len(notes) == 1


def test_a_stop_by_the_user_is_no_failure_of_the_tracker() -> None:
    tracker = GuardedTracker("x", lambda _: Failing("log", KeyboardInterrupt()), None, pytest.fail)
    with pytest.raises(KeyboardInterrupt):
        tracker.log({}, 1)


def test_a_secret_in_a_message_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef0123")
    notes: list[str] = []
    error = ValueError("key 0123456789abcdef0123 is wrong")
    tracker = GuardedTracker("x", lambda _: Failing("log", error), None, notes.append)
    tracker.log({}, 1)
    assert "0123456789abcdef0123" not in notes[0]


@pytest.mark.parametrize("before", [None, "wandb:abc", "mlflow:abc"])
def test_a_tracker_is_given_the_id_of_its_own_run_alone(before: str | None) -> None:
    given: list[str | None] = []

    def opening(run_id: str | None) -> Tracker:
        given.append(run_id)
        return NoTracker("new")

    tracker = GuardedTracker("mlflow", opening, before, pytest.fail)
    assert given == ["abc" if before == "mlflow:abc" else None]
    assert tracker.id == "mlflow:new"


# What is asked before a training begins


def test_what_is_not_installed_or_has_no_address_is_told_before_a_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for package in ("tensorboard", "mlflow", "trackio"):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(UserError, match=rf"\[{package}\]"):
            require_tracker(chosen(package))
    for package in ("none", "wandb"):
        require_tracker(chosen(package))


def test_a_server_without_an_address(stores: object, inits: object, monkeypatch: pytest.MonkeyPatch) -> None:
    for package, variable in (("mlflow", "MLFLOW_TRACKING_URI"), ("trackio", "TRACKIO_SPACE_ID")):
        monkeypatch.delenv(variable, raising=False)
        require_tracker(chosen(package))
        with pytest.raises(UserError, match=variable):
            require_tracker(chosen(package, online=True))
        monkeypatch.setenv(variable, "somewhere")
        require_tracker(chosen(package, online=True))
    with pytest.raises(ValueError, match="no server"):
        chosen("tensorboard", online=True)


def test_no_package_is_imported_by_those_who_do_not_use_it() -> None:
    top = ast.parse(inspect.getsource(trackers)).body
    names = {node.module for node in top if isinstance(node, ast.ImportFrom)}
    names |= {alias.name for node in top if isinstance(node, ast.Import) for alias in node.names}
    assert not {str(name).partition(".")[0] for name in names} & {*TRACKERS, "torch"}
