"""Search with Optuna: which values to try next, given the results of those that were tried.

Knows overrides and one number for each trial; not what the values mean, nor where trials run. The study lies in the
sweep's folder, so that a search goes on where it was stopped: a trial stands there as running until its run is
finished or pruned, whatever happened to the process, or to the trial itself.
"""

import itertools
import math
import random
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import optuna
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep, Transformer
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState
from pydantic import Field
from pydantic.dataclasses import dataclass
from sqlalchemy import URL

from endeavour.errors import UserError
from endeavour.settings import STRICT, validated
from endeavour.sweeps.table import FINISHED, PRUNED, less_is_better
from endeavour.sweeps.trial import NOTE, metric_history, read_note, result_rows

# Suggestions that were tried before: then a range is taken to hold no more values of four digits.
MOST_REPETITIONS = 50
# Combinations of listed values up to which the untried ones are looked for one by one.
MOST_COMBINATIONS = 100_000
# As many failures without one success mean that the values are not to blame.
FAILURES_AT_FIRST = 3

Space = dict[str, BaseDistribution]
RunTrials = Callable[[Mapping[int, list[str]]], None]


@dataclass(kw_only=True, config=STRICT)
class SearchConfig:
    """Values and their meaning: conf/hydra/sweeper/optuna.yaml."""

    metric: Literal["validation.bleu", "validation.loss", "validation.perplexity"]
    n_trials: Annotated[int, Field(ge=1)]
    n_jobs: Annotated[int, Field(ge=1)]
    sampler: Literal["tpe", "random"]
    seed: Annotated[int, Field(ge=0, lt=2**31)]
    prune_after: Annotated[int, Field(ge=1)] | None
    storage: str | None


def search(settings: Mapping[str, Any], arguments: list[str], folder: Path, run: RunTrials) -> None:
    """Asks for trials and has them run, until there are as many as `settings` asks for, or nothing new to try.

    Trials that an earlier start left open, because it was stopped or because they failed, come first.

    Args:
        settings: those of `SearchConfig`.
        arguments: overrides; those that are swept say what is searched.
        folder: the sweep's, with a folder for each trial.
        run: runs trials, number → overrides, and leaves a note of each in its folder.
    Raises:
        UserError: a setting or a range that cannot be searched.
    """
    config = validated(SearchConfig, settings, section="hydra.sweeper")
    parsed = OverridesParser.create().parse_overrides(arguments)
    space = {item.get_key_element(): _distribution(item) for item in parsed if item.is_sweep_override()}
    fixed = [str(item.input_line) for item in parsed if not item.is_sweep_override()]
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    direction = "minimize" if less_is_better(config.metric) else "maximize"
    with database(config.storage, folder) as storage:
        study = optuna.create_study(
            study_name=folder.name, storage=storage, direction=direction, load_if_exists=True
        )
        failed: set[int] = set()
        while batch := _next_batch(study, config, space, failed):
            run({number: [*fixed, *_overrides(trial, space)] for number, trial in batch.items()})
            for trial in batch.values():
                _tell(study, trial, config.metric, folder / str(trial.number), failed)
            if len(failed) >= FAILURES_AT_FIRST and not _in_state(study, TrialState.COMPLETE):
                print(f"the search ends: {len(failed)} trials failed, and none was finished", file=sys.stderr)
                return


@contextmanager
def database(url: str | None, folder: Path) -> Generator[RDBStorage]:
    """Optuna's storage at an address of SQLAlchemy, or else in `folder`; its connections are closed at the end."""
    storage = RDBStorage(url or str(URL.create("sqlite", database=str(folder / "study.db"))))
    try:
        yield storage
    finally:
        storage.remove_session()
        storage.engine.dispose()


def _next_batch(
    study: optuna.Study, config: SearchConfig, space: Space, failed: set[int]
) -> dict[int, FrozenTrial]:
    """The trials to run now, by number: open ones first, then new ones. Empty at the search's end."""
    left_open = [trial for trial in _in_state(study, TrialState.RUNNING) if trial.number not in failed]
    batch: dict[int, FrozenTrial] = {}
    for trial in left_open[: config.n_jobs]:
        if trial.params.keys() == space.keys():
            batch[trial.number] = trial
        else:  # cut off while it was asked for
            study.tell(trial.number, state=TrialState.FAIL)
    repetitions = 0
    while len(batch) < config.n_jobs and repetitions < MOST_REPETITIONS:
        known = _in_state(study, TrialState.RUNNING, TrialState.COMPLETE, TrialState.PRUNED)
        if len(known) >= config.n_trials:
            break
        study.sampler = _sampler(config, len(study.get_trials(deepcopy=False)), blindly=repetitions > 0)
        number = study.ask(space).number
        asked = study.get_trials(deepcopy=False)[number]
        if any(_overrides(trial, space) == _overrides(asked, space) for trial in known):
            study.tell(number, state=TrialState.FAIL)  # and so counts for nothing
            repetitions += 1
            untried = _untried(space, known)
            if untried == []:
                break
            if untried is not None:  # TPE might insist on what it found best until the end
                study.enqueue_trial(random.Random(config.seed + number).choice(untried))
        else:
            batch[number] = asked
    return batch


def _untried(space: Space, known: list[FrozenTrial]) -> list[dict[str, Any]] | None:
    """The combinations of listed values that no trial has had; None if there is a range, or too many to list."""
    if any(isinstance(kind, FloatDistribution) and kind.step is None for kind in space.values()):
        return None
    options = [_options(kind) for kind in space.values()]
    if math.prod(map(len, options)) > MOST_COMBINATIONS:
        return None
    tried = {tuple(_text(trial.params[key], space[key]) for key in space) for trial in known}
    combinations = (dict(zip(space, values, strict=True)) for values in itertools.product(*options))
    return [one for one in combinations if tuple(_text(one[key], space[key]) for key in space) not in tried]


def _options(kind: BaseDistribution) -> Sequence[Any]:
    if isinstance(kind, CategoricalDistribution):
        return kind.choices
    if isinstance(kind, IntDistribution):
        return range(kind.low, kind.high + 1, kind.step)
    assert isinstance(kind, FloatDistribution)
    assert kind.step is not None
    count = round((kind.high - kind.low) / kind.step) + 1
    return [kind.low + number * kind.step for number in range(count)]


def _tell(study: optuna.Study, trial: FrozenTrial, metric: str, folder: Path, failed: set[int]) -> None:
    """Enters into the study the result of a trial; one that failed stays open, to be tried by the next start."""
    if not (folder / NOTE).is_file():
        failed.add(trial.number)
        return
    (row,) = result_rows([folder], metric)
    if row["status"] == FINISHED:
        value, least = cast(float, row[metric]), study.direction == optuna.study.StudyDirection.MINIMIZE
        # Optuna takes NaN for a failure, and would try the same again.
        study.tell(trial.number, value if math.isfinite(value) else math.inf if least else -math.inf)
    elif row["status"] == PRUNED:
        asked = optuna.trial.Trial(study, study.get_trials(deepcopy=False)[trial.number]._trial_id)  # pyright: ignore[reportPrivateUsage]
        for update, value in metric_history(Path(read_note(folder)["run"]), metric).items():
            asked.report(value, update)
        study.tell(trial.number, state=TrialState.PRUNED)
    else:
        failed.add(trial.number)


def _in_state(study: optuna.Study, *states: TrialState) -> list[FrozenTrial]:
    return study.get_trials(deepcopy=False, states=states)


def _sampler(config: SearchConfig, number: int, *, blindly: bool) -> optuna.samplers.BaseSampler:
    """A new one for each trial: a search that was stopped then suggests what an unbroken one would have."""
    seed = config.seed + number
    if config.sampler == "random" or blindly:  # TPE would insist on what it found best
        return optuna.samplers.RandomSampler(seed=seed)
    return optuna.samplers.TPESampler(seed=seed, constant_liar=config.n_jobs > 1)


def _overrides(trial: FrozenTrial, space: Space) -> list[str]:
    return [f"{key}={_text(trial.params[key], space[key])}" for key in space if key in trial.params]


def _text(value: object, distribution: BaseDistribution) -> str:
    """A value as it is given to the run; of a continuous one four digits, which can be read and typed."""
    if isinstance(distribution, FloatDistribution):
        return f"{value:.4g}" if distribution.step is None else f"{value:.12g}"
    return str(value)


def _distribution(override: Override) -> BaseDistribution:
    """What Optuna draws from. Raises `UserError` for what it cannot."""
    value, text = override.value(), override.input_line
    if isinstance(value, IntervalSweep):
        low, high, log = value.start, value.end, "log" in value.tags
        assert low is not None
        assert high is not None
        if low >= high or (log and low <= 0):
            raise UserError(f"{text}: the first bound must be below the second" + log * ", and above 0")
        if isinstance(low, int) and isinstance(high, int):
            return IntDistribution(low, high, log=log)
        return FloatDistribution(low, high, log=log)
    if not override.is_discrete_sweep() or str(override.get_value_string()).startswith("glob("):
        raise UserError(f"{text}: a search cannot draw from that; list the options")
    if isinstance(value, RangeSweep) and not value.shuffle:
        values = cast(list[float], list(override.sweep_iterator()))
        if not values:
            raise UserError(f"{text}: an empty range")
        low, high = (float(f"{number:.12g}") for number in (min(values), max(values)))
        if all(isinstance(number, int) for number in values):
            return IntDistribution(int(low), int(high), step=abs(int(value.step)))
        return FloatDistribution(low, high, step=abs(float(value.step)))
    return CategoricalDistribution([str(item) for item in override.sweep_iterator(Transformer.str)])
