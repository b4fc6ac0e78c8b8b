"""What run folders hold, as the page shows it: runs, evaluations line by line, logs as they grow. Loads no model."""

import asyncio
import json
import os
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from endeavour.decoding.config import DecodingConfig
from endeavour.errors import UserError
from endeavour.evaluation.metrics import length_ratio, sentence_scores
from endeavour.evaluation.rates import output_flags
from endeavour.playground.event_stream import KEEP_ALIVE, event
from endeavour.playground.systems import checkpoint_update
from endeavour.runs.evaluations import Evaluation, evaluations_of
from endeavour.runs.names import run_name
from endeavour.runs.run import Run
from endeavour.training.checkpoint import checkpoints_in

# Folders of a run, in which no other run is looked for.
OWN_FOLDERS = {"checkpoints", "model", "evaluation", "export", "teacher_data"}
EXAMPLES = 5
MODEL_KEYS = (
    "name", "width", "encoder_layers", "decoder_layers", "num_heads", "feed_forward", "activation", "norm",
    "positions", "tie",
)  # fmt: skip
POLL_SECONDS = 0.25
KEEP_ALIVE_SECONDS = 15.0
BLOCK = 2**16  # bytes of a log that are read at a time


def all_runs(root: Path) -> Iterator[Run]:
    """Runs below `root`, by name, whether they are trained or only begun."""
    for folder, inner, files in os.walk(root):
        inner[:] = sorted(name for name in inner if not name.startswith(".") and name not in OWN_FOLDERS)
        path = Path(folder)
        if "config.yaml" in files and path != root:
            run = Run(root, path.relative_to(root).as_posix())
            if run.is_trained or run.was_begun or (path / "log.jsonl").is_file():
                yield run


def describe_run(run: Run, decoding: DecodingConfig) -> dict[str, Any]:
    """One entry of /api/runs. Raises `UserError` where the run is damaged."""
    config, summary, training = run.config, run.summary, run.is_locked
    checkpoints = checkpoints_in(run.checkpoint_folder)
    folder = run.model_folder if run.is_trained else next(reversed(checkpoints), None)
    evaluations = evaluations_of(run)
    return {
        "name": run.name,
        "direction": config.direction,
        "finished": run.is_trained,
        "training": training,
        "updates": summary.get("updates", checkpoint_update(checkpoints[-1]) if checkpoints else None),
        "bleu": _bleu(summary),
        "model": {key: value for key, value in asdict(config.model).items() if key in MODEL_KEYS}
        | {"parameters": None if folder is None else _parameters(folder / "weights.safetensors")},
        "decoding": {
            "name": decoding.name,
            "beam_size": decoding.beam_size,
            "length_penalty": decoding.length_penalty,
        },
        "checkpoints": sorted({checkpoint_update(path) for path in checkpoints}),
        "examples": _examples(evaluations),
        "evaluations": [
            {
                "folder": one.folder_name,
                "test_set": one.test_set,
                "label": one.label,
                "scores": {key: round(score["value"], 2) for key, score in one.record["scores"].items()},
            }
            for one in evaluations
        ],
    }


def _bleu(summary: dict[str, Any]) -> float | None:
    """Of the first test set, or else of the validation."""
    for scores in (*summary.get("test", {}).values(), summary.get("validation", {})):
        if "bleu" in scores:
            return round(scores["bleu"], 2)
    return None


def _examples(evaluations: list[Evaluation]) -> list[str]:
    """Sources of the first evaluation, evenly from all of it."""
    if not evaluations:
        return []
    sources = [line for line in evaluations[0].lines("sources") if line.strip()]
    return sources[:: max(1, len(sources) // EXAMPLES)][:EXAMPLES]


def _parameters(weights: Path) -> int | None:
    """How many numbers a file of weights holds, by its header (the format: https://github.com/huggingface/safetensors)."""
    try:
        with weights.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header: dict[str, Any] = json.loads(file.read(length))
    except (OSError, ValueError, struct.error):
        return None
    total = 0
    for name, tensor in header.items():
        if name != "__metadata__":
            count = 1
            for size in tensor["shape"]:
                count *= size
            total += count
    return total


def known_run(root: Path, name: str) -> Run:
    """Raises `UserError` where there is no run of that name."""
    run = Run(root, run_name("run", name, str(root))) if name.isprintable() else None
    if run is None or not run.has_config:
        raise UserError(f"run={name[:100]!r}: there is no such run in {root}")
    return run


def describe_evaluation(run: Run, folder: str) -> dict[str, Any]:
    """An evaluation line by line. Raises `UserError` where there is none of that name, or it is damaged."""
    evaluation = next((one for one in evaluations_of(run) if one.folder_name == folder), None)
    if evaluation is None:
        raise UserError(f"{run} has no evaluation of that name")
    stamp = (evaluation.folder / "scores.json").stat().st_mtime_ns
    return _evaluation_rows(evaluation, stamp)


@lru_cache(maxsize=4)
def _evaluation_rows(evaluation: Evaluation, stamp: int) -> dict[str, Any]:
    """`stamp` makes a repeated evaluation another one."""
    sources, references, hypotheses = (
        evaluation.lines(column) for column in ("sources", "references", "hypotheses")
    )
    chrf = sentence_scores(hypotheses, references)
    columns = zip(sources, references, hypotheses, chrf, strict=True)
    return {
        "test_set": evaluation.test_set,
        "label": evaluation.label,
        "scores": {key: round(score["value"], 2) for key, score in evaluation.record["scores"].items()},
        "rows": [
            {
                "line": line,
                "source": source,
                "reference": reference,
                "hypothesis": hypothesis,
                "chrf": round(score, 2),
                "length_ratio": round(length_ratio([hypothesis], [reference]), 3),
                "flags": output_flags(source, hypothesis),
            }
            for line, (source, reference, hypothesis, score) in enumerate(columns, start=1)
        ],
    }


async def follow_log(run: Run, stopping: Callable[[], bool]) -> AsyncIterator[str]:
    """The lines of a run's log as events, those that are there and those that come.

    The path is followed, not the file: a run that is resumed replaces it, and then `reset` comes again. `end` comes
    once the run is finished, and when the server stops.
    """
    identity, position, rest = None, 0, b""
    quiet = 0.0
    yield event("reset", {})
    while True:
        ended = stopping() or (
            run.is_trained and bool(_status(run.folder / "summary.json")) and not run.is_locked
        )
        status = _status(run.folder / "log.jsonl")
        if status is None and not run.has_config:
            yield event("error", {"error": f"{run} was deleted or moved"})
            return
        if status is not None:
            if identity is not None and (status.st_ino != identity or status.st_size < position):
                position, rest = 0, b""
                yield event("reset", {})
            identity = status.st_ino
            while block := _read(run.folder / "log.jsonl", position):
                position, quiet = position + len(block), 0.0
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    if (entry := _entry(line)) is not None:
                        yield event("line", entry)
                await asyncio.sleep(0)
        if ended:
            yield event("end", {})
            return
        await asyncio.sleep(POLL_SECONDS)
        quiet += POLL_SECONDS
        if quiet >= KEEP_ALIVE_SECONDS:
            quiet = 0.0
            yield KEEP_ALIVE


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _read(path: Path, position: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(position)
            return file.read(BLOCK)
    except OSError:
        return b""


def _entry(line: bytes) -> dict[str, Any] | None:
    """A line of a log, with null for what is not a number; None for a line that is damaged."""
    try:
        entry = json.loads(line, parse_constant=lambda _: None)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
