"""What run folders hold, as the page shows it: runs, and evaluations line by line. Loads no model."""

import math
import os
from collections.abc import Iterator
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from safetensors import safe_open

from endeavour.data.corpus import RARE
from endeavour.decoding.config import DecodingConfig
from endeavour.errors import UserError
from endeavour.evaluation.metrics import bleu_key, check_counts, length_ratio, sentence_scores
from endeavour.evaluation.rates import output_flags
from endeavour.evaluation.subsets import without_capitals
from endeavour.playground.systems import NotFound, named_run
from endeavour.runs.evaluations import Evaluation, evaluations_of
from endeavour.runs.run import OWN_FOLDERS, Run
from endeavour.storage import DIGESTS
from endeavour.training.checkpoint import checkpoints_in, update_of

EXAMPLES = 5
MODEL_KEYS = ("name", "width", "encoder_layers", "decoder_layers", "num_heads", "norm", "positions")


def all_runs(root: Path) -> Iterator[Run]:
    """Runs below `root`, by name, whether they are trained or only begun."""
    for folder, inner, files in os.walk(root, followlinks=True):
        path = Path(folder)
        is_run = "config.yaml" in files and path != root
        own = OWN_FOLDERS if is_run else set[str]()
        inner[:] = sorted(name for name in inner if not name.startswith(".") and name not in own)
        if is_run:
            run = Run(root, path.relative_to(root).as_posix())
            if not run.name.isprintable():  # nobody could ask for it
                continue
            if run.is_trained or run.was_begun or (path / "log.jsonl").is_file():
                yield run


def describe_runs(root: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """All runs below `root`, and what is wrong with those that cannot be read."""
    runs: list[dict[str, Any]] = []
    damaged: list[str] = []
    for run in all_runs(root):
        try:
            runs.append(describe_run(run))
        # Whatever a damaged file leads to: one run must not keep the page from showing the others.
        except Exception as error:
            if run.has_config:  # otherwise it was deleted meanwhile
                reason = (
                    str(error) if isinstance(error, UserError) else f"{run}: {type(error).__name__}: {error}"
                )
                damaged.append(reason.splitlines()[0])
    return runs, damaged


def describe_run(run: Run) -> dict[str, Any]:
    """One entry of /api/runs. Raises `UserError`, or what reading a file leads to, where the run is damaged."""
    parts = [run.folder / part for part in ("config.yaml", "summary.json", "model", "checkpoints")]
    parts += [one.scores_file for one in evaluations_of(run)]
    stamps = tuple((path, _changed(path)) for path in parts)
    return _describe_files(run, stamps) | {"training": run.is_locked}


@lru_cache(maxsize=1024)
def _describe_files(run: Run, stamps: tuple[tuple[Path, int], ...]) -> dict[str, Any]:
    """What follows from a run's files; the page asks again and again, and `stamps` say that they are the same."""
    summary, checkpoints = run.summary, checkpoints_in(run.checkpoint_folder)
    folder = run.model_folder if run.is_trained else next(reversed(checkpoints), None)
    model, lowercase = asdict(run.config.model), run.config.tokenizer.lowercase
    evaluations = evaluations_of(run)
    return {
        "name": run.name,
        "direction": run.config.direction,
        "finished": run.is_trained,
        # When they were written: a run that is trained again may have as many updates.
        "weights": None if folder is None else _changed(folder / DIGESTS),
        "updates": summary.get("updates", update_of(checkpoints[-1]) if checkpoints else None),
        "bleu": _bleu(summary, lowercase=lowercase),
        "lowercase": lowercase,
        "model": {key: model[key] for key in MODEL_KEYS}
        | {"parameters": None if folder is None else _parameters(folder / "weights.safetensors")},
        "decoding": describe_decoding(run.config.decoding),
        "checkpoints": sorted({update_of(path) for path in checkpoints}),
        "examples": _examples(evaluations),
        "evaluations": [
            {
                "folder": one.folder_name,
                "test_set": one.test_set,
                "label": one.label,
                "scores": _scores(one),
            }
            for one in evaluations
        ],
    }


def describe_decoding(decoding: DecodingConfig) -> dict[str, Any]:
    return {"beam_size": decoding.beam_size, "length_penalty": decoding.length_penalty}


def _changed(path: Path) -> int:
    """When a file, or the list of names in a folder, was changed last; 0 where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _scores(evaluation: Evaluation) -> dict[str, float]:
    """By metric. Raises `UserError` where the record is damaged."""
    try:
        return {key: _rounded(score["value"]) for key, score in evaluation.record["scores"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{evaluation.folder}/scores.json is damaged: run `{evaluation.command}`") from error


def _rounded(score: float) -> float:
    """Raises `ValueError` for NaN and infinities, which are no JSON."""
    if not math.isfinite(score):
        raise ValueError(f"a score is {score}")
    return round(score, 2)


def _bleu(summary: dict[str, Any], *, lowercase: bool) -> float | None:
    """Of the first test set, or else of the validation."""
    for name, scores in summary.get("test", {}).items():
        if name != RARE:
            return _rounded(scores[bleu_key(lowercase=lowercase)])
    validation = summary.get("validation", {})
    return _rounded(validation["bleu"]) if "bleu" in validation else None


def _examples(evaluations: list[Evaluation]) -> list[str]:
    """Sources of the first evaluation, evenly from all of it."""
    if not evaluations:
        return []
    sources = [line for line in evaluations[0].lines("sources") if line.strip()]
    return sources[:: max(1, len(sources) // EXAMPLES)][:EXAMPLES]


def _parameters(weights: Path) -> int | None:
    """How many numbers a file of weights holds, by its header; None if there is no such file."""
    try:
        with safe_open(weights, framework="np") as file:
            return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    except OSError:
        return None


def known_run(root: Path, name: str) -> Run:
    """Raises `NotFound` where there is no run of that name, trained or not."""
    run = named_run("run", name, root)
    if not run.has_config:
        raise NotFound(f"run={name}: there is no such run in {root}")
    return run


def describe_evaluation(run: Run, folder: str) -> dict[str, Any]:
    """An evaluation line by line.

    Raises:
        NotFound: there is none of that name.
        UserError: it is damaged.
    """
    evaluation = next((one for one in evaluations_of(run) if one.folder_name == folder), None)
    if evaluation is None:
        raise NotFound(f"{run} has no evaluation of that name")
    return {"rows": _evaluation_rows(evaluation, _changed(evaluation.scores_file))}


@lru_cache(maxsize=4)
def _evaluation_rows(evaluation: Evaluation, stamp: int) -> list[dict[str, Any]]:
    """`stamp` makes a repeated evaluation another one."""
    sources, references, hypotheses = (
        evaluation.lines(column) for column in ("sources", "references", "hypotheses")
    )
    check_counts(sources=sources, references=references, hypotheses=hypotheses)
    judged = [sources, hypotheses, references]
    if evaluation.run.config.tokenizer.lowercase:
        judged = [without_capitals(lines) for lines in judged]
    chrf, flags = sentence_scores(*judged[1:]), map(output_flags, *judged[:2])
    columns = zip(sources, references, hypotheses, chrf, flags, strict=True)
    return [
        {
            "line": line,
            "source": source,
            "reference": reference,
            "hypothesis": hypothesis,
            "chrf": round(score, 2),
            "length_ratio": round(length_ratio([hypothesis], [reference]), 3),
            "flags": found,
        }
        for line, (source, reference, hypothesis, score, found) in enumerate(columns, start=1)
    ]
