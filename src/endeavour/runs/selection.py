"""Which evaluations `compare` means: by the names of runs, a test set and a decoding, or by their own folders."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from endeavour.data.corpus import RARE, VALIDATION
from endeavour.data.perturbations import copy_of
from endeavour.errors import UserError
from endeavour.runs.choice import named_runs, require_trained
from endeavour.runs.command_lines import ensemble_of, evaluate_command
from endeavour.runs.evaluations import Evaluation, decoding_label, evaluations_of
from endeavour.runs.listing import evaluated_runs
from endeavour.runs.names import quoted
from endeavour.runs.run import Run


def find_evaluations(
    text: str | None, test_set: str | None, label: str | None, root: Path, *, alone: bool
) -> list[Evaluation]:
    """The evaluations that `runs=…` names, the baseline first.

    A name is a run's, or that of an evaluation's own folder, `NAME/evaluation/test-greedy`, so that two decodings of
    one run can be compared.

    Args:
        test_set: on which the runs are compared; None takes that of the folders beside them, or else the first that
            all were evaluated on.
        label: how they were decoded; None is as the first of the runs decodes after its training.
        alone: whether one is enough, because it is compared with something else.

    Raises:
        UserError: a run or an evaluation is not there, or of weights that are not there any more, or there are too few,
            or two are the same.
    """
    named = named_runs("runs", text, root)
    if len(named) < (1 if alone else 2):
        raise UserError(
            'compare needs two runs or more, the first being the baseline: runs="NAME NAME", or one beside '
            "translations made elsewhere: runs=NAME systems=FILE"
        )
    runs = [run for run in named if Path(run.name).parent.name != "evaluation"]
    for run in runs:
        if not run.has_config:
            there = ", ".join(one.name for one in evaluated_runs(root))
            known = f"evaluated runs: {there}" if there else "no run was evaluated yet"
            raise UserError(f"runs={text}: there is no run {run.name} in {root} ({known})")
    if not runs:
        if test_set is not None or label is not None:
            raise UserError(
                "split=… and decoding_name=… are for runs, and runs=… names evaluations: leave them out"
            )
        return [_by_folder(run) for run in named]
    label = label or decoding_label(runs[0].config.decoding)
    _require_outside(runs, label, test_set)
    folders = {run: _by_folder(run) for run in named if run not in runs}
    theirs = {one.test_set for one in folders.values()}
    test_set = test_set or (theirs.pop() if len(theirs) == 1 else _first_test_set(runs, label))
    _require_evaluated(runs, label, test_set)
    found = [folders.get(run) or Evaluation(run, f"{test_set}-{label}") for run in named]
    if len(set(found)) < len(found):
        raise UserError(
            f"runs={text}: two of them are the same evaluation, since a run's name stands for its {test_set}-{label}; "
            "name another"
        )
    return found


def _by_folder(named: Run) -> Evaluation:
    run = Run(named.root, named.folder.parents[1].relative_to(named.root).as_posix())
    evaluation = Evaluation(run, named.folder.name)
    if not evaluation.is_finished:
        raise UserError(f"{run} has no evaluation {evaluation.folder_name} ({_listed(run)})")
    _require_current(evaluation)
    return evaluation


def _require_outside(runs: Sequence[Run], label: str, test_set: str | None) -> None:
    """Raises `UserError` for one that is itself a further run of the ensemble that `label` is of."""
    names = [run.name for run in runs]
    _, ensemble = ensemble_of(label)
    if inside := [name for name in names if name in ensemble]:
        first = next((name for name in names if name not in ensemble), "NAME")
        folder = quoted(f"{first}/evaluation/{test_set or 'SPLIT'}-{label}")
        raise UserError(
            f"decoding_name={label}: {inside[0]} is in that ensemble, whose evaluation lies with its first run; name "
            f"its folder: {shlex.quote(f'runs={folder} {quoted(inside[0])}')}"
        )


def _require_current(evaluation: Evaluation) -> None:
    """Raises `UserError` for one that further runs took part in, once one of them has been trained anew."""
    model, root = evaluation.record["model"], evaluation.run.root
    others = model.get("ensemble_weights_sha256", {}) | model.get("backward_weights_sha256", {})
    for name, digest in others.items():
        run = Run(root, name)
        if run.is_trained and run.weights_digest != digest:
            raise UserError(
                f"{evaluation.folder} is of earlier weights of {run}, which was trained anew: run "
                f"`{evaluation.command}`"
            )


def _require_evaluated(runs: Sequence[Run], label: str, test_set: str) -> None:
    for run in runs:
        evaluation = Evaluation(run, f"{test_set}-{label}")
        if not evaluation.is_finished:
            require_trained(run, "train it first")
            raise UserError(
                f"{run} has no evaluation {evaluation.folder_name} ({_listed(run)}): "
                f"run `{_remedy(run, runs, label, test_set)}`"
            )
        _require_current(evaluation)


def _first_test_set(runs: Sequence[Run], label: str) -> str:
    """The first, by name, that all were evaluated on: a test split of the baseline's corpus before other files, then
    the validation splits, and altered copies if there is no other."""
    evaluated = [{one.test_set for one in evaluations_of(run) if one.label == label} for run in runs]
    own = runs[0].test_splits
    common = sorted(
        set[str].intersection(*evaluated),
        key=lambda name: (copy_of(name)[1] is not None, name in (RARE, VALIDATION), name not in own, name),
    )
    if common:
        return common[0]
    for run, there in zip(runs, evaluated, strict=True):
        if not there:
            require_trained(run, "train it first")
            raise UserError(
                f"{run} has no evaluation by {label} ({_listed(run)}): run `{_remedy(run, runs, label)}`"
            )
    listing = "; ".join(
        f"{run.name}: {', '.join(sorted(there))}" for run, there in zip(runs, evaluated, strict=True)
    )
    raise UserError(f"the runs have no evaluated test set in common ({listing}): choose one with split=…")


def _remedy(run: Run, runs: Sequence[Run], label: str, test_set: str | None = None) -> str:
    """The command by which `run` is evaluated as another of `runs` was, if one has that label."""
    same = (one for other in runs for one in evaluations_of(other) if one.label == label)
    decoding = next((one.record["decoding"] for one in same), None)
    return evaluate_command(run, label, test_set, decoding)


def _listed(run: Run) -> str:
    names = [one.folder_name for one in evaluations_of(run)]
    return f"it has {', '.join(names)}" if names else "it has none"
