"""`endeavour bench`: what training, decoding, preparation and start-up cost here, ours beside others.

<output_folder>/bench/<name>/bench.json    everything measured, written anew after each part
   or, if that is there, <name>-2, …
                             report.md     the same as tables
                             <size>-<peer>.log    all that another toolkit said
                             growth.png, profile-<size>.txt, trace-<size>.json
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from pydantic.dataclasses import dataclass
from rich.console import Console

from endeavour.benchmark.config import BenchConfig
from endeavour.benchmark.parts import Subject
from endeavour.benchmark.played_site import PlayedRun
from endeavour.benchmark.playground import JOINED_LINES, measure_page, measure_serving
from endeavour.benchmark.preparation import measure_preparation
from endeavour.benchmark.references import PACKAGES, why_no_reference
from endeavour.benchmark.results import new_folder, write_results
from endeavour.benchmark.scale import measure_scale
from endeavour.benchmark.startup import measure_startup
from endeavour.benchmark.steps import Results, Steps, with_bar
from endeavour.benchmark.tables import part_table
from endeavour.benchmark.task import Task
from endeavour.commands import COMMANDS, LONG_NAMES
from endeavour.data.cleaning import CleaningConfig
from endeavour.data.corpus import CorpusConfig
from endeavour.data.tokenizer_training import TokenizerConfig
from endeavour.decoding.config import DecodingConfig
from endeavour.directions import Direction
from endeavour.errors import UserError
from endeavour.model.config import ModelConfig
from endeavour.pipeline.data import prepare, recipe_of
from endeavour.progress import say
from endeavour.runs.choice import require_trained, select_runs
from endeavour.runs.command_lines import evaluate_command
from endeavour.runs.config import Seed
from endeavour.runs.evaluations import evaluations_of
from endeavour.runs.names import quoted, run_name
from endeavour.runs.provenance import describe_start
from endeavour.runs.run import Run
from endeavour.settings import STRICT
from endeavour.training.device import choose_device, keep_memory

# Keys of decoding that a benchmark varies: their values in conf/decoding/beam.yaml, and which key it reads instead.
VARIED = {
    "engine": ("pytorch", "bench.references"),
    "precision": ("fp32", "bench.precisions"),
    "beam_size": (5, "bench.beam_sizes"),
}


@dataclass(kw_only=True, config=STRICT)
class BenchRoot:
    """Values and their meaning: conf/bench.yaml."""

    name: str
    seed: Seed
    direction: Direction
    device: str
    data_folder: str
    output_folder: str
    corpus: CorpusConfig
    cleaning: CleaningConfig
    tokenizer: TokenizerConfig
    model: ModelConfig
    decoding: DecodingConfig
    bench: BenchConfig

    @property
    def augmentation(self) -> None:
        """Nothing is altered."""


def bench(config: BenchRoot, command: Sequence[str]) -> dict[str, Any]:
    """Measures the parts of `config.bench`, prints a table of each and writes them to the output folder.

    Returns:
        What bench.json holds.
    Raises:
        UserError: a batch is too small for the corpus, or a size or width describes no model.
    """
    if config.decoding.sampling or config.decoding.chooses:
        raise UserError(f"decoding={config.decoding.name}: a benchmark measures searches, leave it out")
    for key, (unset, instead) in VARIED.items():
        if getattr(config.decoding, key) != unset:
            raise UserError(f"decoding.{key}: a benchmark measures all of {instead}, leave it out")
    name = run_name("name", config.name, str(Path(config.output_folder) / "bench"))
    console = Console(stderr=True)
    device = choose_device(config.device)
    data = prepare(config)
    reasons = {name: why_no_reference(name, config.model, device) for name in config.bench.references}
    sizes = data.manifest["vocabularies"]
    task = Task(
        settings=config.bench,
        model=config.model,
        decoding=config.decoding,
        vocabularies=(sizes["source"]["size"], sizes["target"]["size"]),
        data=data.folder,
        device=device,
        seed=config.seed,
    )
    subject = Subject(
        task,
        references=[name for name, reason in reasons.items() if reason is None],
        notes=[f"{name}: {reason}" for name, reason in reasons.items() if reason is not None],
    )
    subject.check()
    if {"playground", "serving"} & set(config.bench.parts):
        _check_played(config)
    if device.type == "cpu":
        keep_memory()  # as `train` does; the references gain from it too
    results: dict[str, Any] = {
        "name": name,
        "start": describe_start(device, command),
        "references": {name: version(PACKAGES[name]) for name in subject.references},
        "settings": settings_of_figures(config, device),
    }
    folder = new_folder(Path(config.output_folder) / "bench" / name)
    measures = _measures(config, subject, folder)
    for part in ("precision", *config.bench.parts):
        results[part] = with_bar(console, part, measures[part])
        results["notes"] = list(dict.fromkeys(subject.notes))  # each size adds its own
        Console().print(part_table(part, results[part]))
        write_results(folder, results)
    if config.bench.profile:
        subject.profiles(folder)
    for line in (*(f"note: {note}" for note in results["notes"]), f"benchmark: {folder}"):
        say(console, line)
    return results


def settings_of_figures(config: BenchRoot, device: torch.device) -> dict[str, Any]:
    """All keys that the figures depend on; `start` in bench.json has the code, the versions and the device."""
    settings = asdict(config) | {"device": str(device)}
    for key in ("name", "data_folder", "output_folder"):
        del settings[key]
    return settings


def played_run(config: BenchRoot) -> PlayedRun:
    """Whose page is measured."""
    name = config.bench.played_run
    return PlayedRun(None if name is None else quoted(name), Path(config.output_folder), config.device)


def _check_played(config: BenchRoot) -> None:
    """Raises `UserError` where the run is not there, or has no evaluation whose sentences could be asked for."""
    key, name, root = "bench.played_run", config.bench.played_run, Path(config.output_folder)
    if name is None:
        (run,) = select_runs(None, root, begun=True)
    else:
        run = Run(root, run_name(key, name, str(root)))
        if not run.has_config:
            require_trained(run, f"name another with {key}=…, or train it first")
    if not evaluations_of(run):
        raise UserError(
            f"{key}: {run.name} has no evaluation: run `{evaluate_command(run)}`, or name another"
        )


def _measures(config: BenchRoot, subject: Subject, folder: Path) -> dict[str, Callable[[Steps], Results]]:
    """How each part is measured."""
    settings = config.bench
    played = played_run(config)
    commands = sorted(COMMANDS.keys() - LONG_NAMES)

    def data(_: Steps) -> Results:
        with tempfile.TemporaryDirectory(prefix="endeavour-bench-") as root:
            return [measure_preparation(recipe_of(config), Path(root))]

    def scale(_: Steps) -> Results:
        many, tokens = settings.scale_pairs, settings.tokens_per_batch
        row = measure_scale(
            many, config.cleaning, config.tokenizer, tokens_per_batch=tokens, seed=config.seed
        )
        return [row]

    def serving(steps: Steps) -> Results:
        clients, seconds = settings.serving_clients, settings.serving_seconds
        return measure_serving(
            played, clients=clients, seconds=seconds, joined_lines=JOINED_LINES, steps=steps
        )

    return {
        "precision": lambda _: subject.automatic(),
        "training": subject.training,
        "epochs": subject.epochs,
        "decoding": subject.decoding_rows,
        "data": data,
        "startup": lambda steps: measure_startup(commands, repeats=settings.repeats, steps=steps),
        "growth": lambda steps: subject.growth(folder, steps),
        "scale": scale,
        "playground": lambda steps: measure_page(played, repeats=settings.played_repeats, steps=steps),
        "serving": serving,
        "peers": lambda steps: subject.peers(folder, steps),
    }
