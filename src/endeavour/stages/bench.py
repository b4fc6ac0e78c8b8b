"""The benchmark stage: what training, decoding, preparation and start-up cost here, ours beside others.

<output_folder>/bench/<name>/bench.json    everything measured, written anew after each part
                             report.md     the same as tables
                             growth.png, profile-<size>.txt, trace-<size>.json
"""

import itertools
import json
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from endeavour.__main__ import STAGES
from endeavour.benchmark.config import OURS
from endeavour.benchmark.decoders import DecodingTask, decoding_toolkits
from endeavour.benchmark.decoding import measure_decoding
from endeavour.benchmark.growth import draw_growth, measure_growth, widened
from endeavour.benchmark.preparation import measure_preparation
from endeavour.benchmark.references import PACKAGES, why_not
from endeavour.benchmark.report import as_markdown, screen_table
from endeavour.benchmark.scale import measure_scale
from endeavour.benchmark.startup import measure_startup, startup_commands
from endeavour.benchmark.trace import write_profile
from endeavour.benchmark.trainees import TrainingTask, sized
from endeavour.benchmark.training import check_budget, draw_rows, measure_training
from endeavour.config import Config, to_dict
from endeavour.data.disk import write_atomically
from endeavour.data.prepared import PreparedData
from endeavour.errors import UserError
from endeavour.export.ctranslate2 import exported_positions
from endeavour.stages.circumstances import describe_start
from endeavour.stages.prepare import prepare, progress_bar
from endeavour.stages.run_folder import named_write_error, write_json
from endeavour.training.device import choose_device, choose_precision, keep_memory

# Of the config: what the figures depend on, besides the device.
SETTINGS = (
    "seed",
    "direction",
    "corpus",
    "cleaning",
    "tokenizer",
    "model",
    "training",
    "decoding",
    "bench",
)

Rows = list[dict[str, Any]]
# Given the number of steps there will be, a function to be called after each.
Steps = Callable[[int], Callable[[], None]]


def bench(config: Config) -> dict[str, Any]:
    """Measures the parts of `config.bench`, prints a table of each and writes them to the output folder.

    Returns:
        What bench.json holds.
    Raises:
        UserError: a batch is too small for the corpus, or a size or width describes no model.
    """
    if config.decoding.sampling:
        raise UserError("bench measures searches: leave out decoding=sample")
    if config.decoding.precision != "fp32":
        raise UserError("bench decodes in bf16 besides where it is fast: leave out decoding.precision")
    if config.pretrained is not None:
        raise UserError("bench measures models that begin from nothing: leave out pretrained=…")
    if config.teachers is not None:
        raise UserError("bench trains nothing to its end: leave out teachers=…")
    console = Console(stderr=True)
    device = choose_device(config.device)
    data = prepare(config)
    _check(config, data)
    if device.type == "cpu":
        keep_memory()  # as the train stage does; the references gain from it too
    references, notes = _references(config, device)
    settings = to_dict(config)
    results: dict[str, Any] = {
        "name": config.name,
        "start": describe_start(device),
        "references": {name: version(PACKAGES[name]) for name in references},
        "settings": {key: settings[key] for key in SETTINGS} | {"device": str(device)},
        "notes": notes,
    }
    folder = result_folder(config, results["settings"])
    with named_write_error(folder):
        folder.mkdir(parents=True, exist_ok=True)
    measures: dict[str, Callable[[Steps], Rows]] = {
        "training": lambda steps: _training(config, data, device, references, steps),
        "decoding": lambda steps: _decoding(config, data, device, references, steps),
        "data": lambda steps: _preparation(config, steps),
        "startup": lambda steps: _startup(config, steps),
        "growth": lambda steps: _growth(config, data, device, folder, steps),
        "scale": lambda steps: _scale(config, steps),
    }
    for part in config.bench.parts:
        results[part] = _with_bar(console, part, measures[part])
        Console().print(screen_table(part, results[part]))
        _write(folder, config, results)
    if config.bench.profile:
        _write(folder, config, results)
        for size in config.bench.sizes:
            write_profile(_training_task(config, data, device, size), folder)
    for line in (*(f"left out: {note}" for note in notes), f"benchmark: {folder}"):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return results


def _check(config: Config, data: PreparedData) -> None:
    """Raises `UserError` for what would otherwise fail after the first parts were measured."""
    settings = config.bench
    budgets = [settings.tokens_per_batch] if {"training", "scale", "growth"} & set(settings.parts) else []
    budgets += settings.growth_batches if "growth" in settings.parts else []
    budgets += [settings.tokens_per_batch] if settings.profile else []
    if budgets:
        check_budget(data.folder, min(budgets))
    try:
        models = {f"bench.sizes={size}": sized(config.model, settings.size(size)) for size in settings.sizes}
        if "growth" in settings.parts:
            first = models[f"bench.sizes={settings.sizes[0]}"]
            models |= {
                f"bench.growth_widths={width}": widened(first, width) for width in settings.growth_widths
            }
    except ValueError as error:
        raise UserError(
            f"bench.sizes={settings.sizes}, bench.growth_widths={settings.growth_widths}: {error}"
        ) from error
    positions = exported_positions(config.model)
    if "decoding" in settings.parts and settings.decoding_tokens > positions:
        raise UserError(
            f"bench.decoding_tokens={settings.decoding_tokens}: at most the model's {positions} positions"
        )


def _write(folder: Path, config: Config, results: dict[str, Any]) -> None:
    with named_write_error(folder):
        write_json(folder / "bench.json", results)
        write_atomically(folder / "report.md", as_markdown(f"Benchmark {config.name}", results))


def result_folder(config: Config, settings: dict[str, Any]) -> Path:
    """`bench/<name>`, or with a number after it where that holds what was measured with other settings."""
    base = Path(config.output_folder) / "bench" / config.name
    for number in itertools.count(1):
        folder = base if number == 1 else base.with_name(f"{base.name}-{number}")
        path = folder / "bench.json"
        if not path.is_file() or _settings_in(path) == settings:
            return folder
    raise AssertionError("numbers do not end")


def _settings_in(path: Path) -> object:
    """None where the file is damaged."""
    try:
        return json.loads(path.read_text("utf-8"))["settings"]
    except (ValueError, KeyError, TypeError):
        return None


def _with_bar(console: Console, part: str, measure: Callable[[Steps], Rows]) -> Rows:
    """Calls `measure` under a progress bar, or after one line where there is no terminal."""
    if not console.is_terminal:
        console.print(f"measuring {part}", markup=False, highlight=False)
    with progress_bar(console) as progress:
        task = progress.add_task(part, total=None)

        def steps(total: int) -> Callable[[], None]:
            progress.update(task, total=total)
            return lambda: progress.advance(task)

        return measure(steps)


def _references(config: Config, device: torch.device) -> tuple[list[str], list[str]]:
    """The references that can be measured, and a line for each that cannot."""
    reasons = {name: why_not(name, config.model, device) for name in config.bench.references}
    usable = [name for name, reason in reasons.items() if reason is None]
    return usable, [f"{name}: {reason}" for name, reason in reasons.items() if reason is not None]


def _vocabularies(data: PreparedData) -> tuple[int, int]:
    sizes = data.manifest["vocabularies"]
    return sizes["source"]["size"], sizes["target"]["size"]


def _training_task(config: Config, data: PreparedData, device: torch.device, size: str) -> TrainingTask:
    settings = config.bench
    return TrainingTask(
        model=sized(config.model, settings.size(size)),
        training=config.training,
        vocabularies=_vocabularies(data),
        data=data.folder,
        rows=draw_rows(
            data.folder,
            tokens_per_batch=settings.tokens_per_batch,
            seed=config.seed,
            updates=settings.updates,
        ),
        warmup=settings.warmup_updates,
        device=device,
        seed=config.seed,
    )


def _training(
    config: Config, data: PreparedData, device: torch.device, references: list[str], steps: Steps
) -> Rows:
    settings = config.bench
    toolkits = [OURS, *(name for name in references if name != "ctranslate2")]
    done = steps(len(settings.sizes) * len(toolkits) * (settings.repeats + 1))
    rows: Rows = []
    for size in settings.sizes:
        task = _training_task(config, data, device, size)
        rows += measure_training(task, toolkits, repeats=settings.repeats, done=done)
    return rows


def _decoding(
    config: Config, data: PreparedData, device: torch.device, references: list[str], steps: Steps
) -> Rows:
    settings = config.bench
    toolkits = decoding_toolkits(references, bf16=choose_precision("auto", device) == torch.bfloat16)
    done = steps(len(settings.sizes) * len(toolkits) * len(settings.beam_sizes) * 2 * settings.repeats)
    rows: Rows = []
    for size in settings.sizes:
        task = DecodingTask(
            model=sized(config.model, settings.size(size)),
            decoding=config.decoding,
            vocabularies=_vocabularies(data),
            data=data.folder,
            sentences=settings.decoding_sentences,
            latency_sentences=settings.latency_sentences,
            batch=settings.decoding_batch,
            tokens=settings.decoding_tokens,
            beam_sizes=settings.beam_sizes,
            device=device,
            seed=config.seed,
        )
        rows += measure_decoding(task, toolkits, repeats=settings.repeats, done=done)
    return rows


def _preparation(config: Config, steps: Steps) -> Rows:
    done = steps(1)
    with tempfile.TemporaryDirectory(prefix="endeavour-bench-") as folder:
        row = measure_preparation(
            config.corpus, config.cleaning, config.tokenizer, config.direction, folder=Path(folder)
        )
    done()
    return [row]


def _scale(config: Config, steps: Steps) -> Rows:
    done = steps(1)
    row = measure_scale(
        config.bench.scale_pairs,
        config.cleaning,
        config.tokenizer,
        tokens_per_batch=config.bench.tokens_per_batch,
        seed=config.seed,
    )
    done()
    return [row]


def _startup(config: Config, steps: Steps) -> Rows:
    stages = list(dict.fromkeys(STAGES.values()))
    repeats = config.bench.repeats
    return measure_startup(stages, repeats=repeats, done=steps(repeats * len(startup_commands(stages))))


def _growth(config: Config, data: PreparedData, device: torch.device, folder: Path, steps: Steps) -> Rows:
    settings = config.bench
    task = _training_task(config, data, device, settings.sizes[0])
    rows = measure_growth(
        task,
        tokens=settings.growth_tokens,
        tokens_per_batch=settings.tokens_per_batch,
        batches=settings.growth_batches,
        widths=settings.growth_widths,
        repeats=settings.repeats,
        done=steps(len(settings.growth_batches) + len(settings.growth_widths)),
    )
    draw_growth(rows, folder / "growth.png", title=f"training {task.model.name}, {device.type}")
    return rows
