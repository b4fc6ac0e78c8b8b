"""The evaluation stage: a run's model on the test splits of its corpus."""

from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from endeavour.config import Config
from endeavour.data.prepared import PreparedData
from endeavour.evaluation.evaluate import evaluate_split
from endeavour.evaluation.metrics import Score
from endeavour.evaluation.translate import Translator
from endeavour.stages.engines import engine_name, evaluation_name, open_engine
from endeavour.stages.prepare import prepare, progress_bar
from endeavour.stages.run_folder import find_run
from endeavour.training.checkpoint import file_digest, load_model
from endeavour.training.device import choose_device

Values = dict[str, dict[str, float]]


def evaluate(config: Config) -> Values:
    """Translates and scores the test splits of the run that `config` names; see `evaluate_splits`.

    Corpus, tokenizer and direction are those the run was trained with.
    """
    folder, trained = find_run(config)
    trained.data_folder = config.data_folder
    return evaluate_splits(config, folder, prepare(trained))


def evaluate_splits(config: Config, folder: Path, data: PreparedData) -> Values:
    """Writes `<run>/evaluation/<split>-<decoding>[-<engine>]/` for each split and prints the scores.

    Returns:
        Split → metric → value.
    """
    console = Console(stderr=True)
    model, tokenizers = load_model(folder / "model", choose_device(config.device))
    translator = Translator(open_engine(config, folder, model), tokenizers)
    description = {
        "run": config.name,
        "engine": engine_name(config),
        "weights_sha256": file_digest(folder / "model" / "weights.safetensors"),
    }
    title = config.decoding.name
    if config.decoding.engine != "pytorch":
        title += f", {engine_name(config)}"
    results: dict[str, dict[str, Score]] = {}
    with progress_bar(console) as progress:
        for split in config.evaluation.splits or data.test_splits:
            results[split] = evaluate_split(
                translator,
                tokenizers,
                model=model,
                title=f"{split}, {title}",
                sources=data.lines(split, "source"),
                references=data.lines(split, "target"),
                config=config.evaluation,
                decoding=asdict(config.decoding),
                seed=config.seed,
                description=description,
                folder=folder / "evaluation" / evaluation_name(config, split),
                progress=progress,
            )
    if not results:
        console.print("the corpus has no test split, so there are no test scores")
        return {}
    output = Console(soft_wrap=True)
    output.print(_table(results, f"{config.name}, {title}"))
    for split, scores in results.items():
        output.print(f"{split}: {scores['bleu'].signature}", markup=False, highlight=False)
        page = folder / "evaluation" / evaluation_name(config, split) / "report.html"
        output.print(f"report: {page}", markup=False, highlight=False)
    return {split: {key: score.value for key, score in scores.items()} for split, scores in results.items()}


def _table(results: dict[str, dict[str, Score]], title: str) -> Table:
    table = Table(title=title)
    table.add_column("split")
    for score in next(iter(results.values())).values():
        table.add_column(score.name, justify="right")
    for split, scores in results.items():
        cells = [f"{score.value:.2f} [{score.low:.1f}, {score.high:.1f}]" for score in scores.values()]
        table.add_row(split, *cells)
    return table
