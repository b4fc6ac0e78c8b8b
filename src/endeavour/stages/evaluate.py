"""The evaluation stage: a run's model on the test splits of its corpus, or on other files."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from endeavour.config import Config
from endeavour.data.disk import file_digest
from endeavour.data.files import read_pairs
from endeavour.data.prepared import PreparedData
from endeavour.errors import UserError
from endeavour.evaluation.evaluate import EvaluationSet, attention_maps, evaluate_split
from endeavour.evaluation.metrics import Score
from endeavour.evaluation.moses import read_tokenized
from endeavour.evaluation.translate import Translator
from endeavour.reports.evaluation_report import write_evaluation
from endeavour.saved_config import BEFORE
from endeavour.stages.engines import engine_name, evaluation_name, open_engine
from endeavour.stages.ensembles import further_runs, join_models
from endeavour.stages.prepare import prepare, progress_bar
from endeavour.stages.run_folder import as_decoded, find_run, named_write_error, require_same_data, splits_of
from endeavour.training.checkpoint import load_model
from endeavour.training.device import choose_device

Values = dict[str, dict[str, float]]
TestSets = dict[str, tuple[list[str], list[str]]]  # name → sources, references


def evaluate(config: Config) -> Values:
    """Translates and scores the test sets of the run that `config` names; see `evaluate_splits`.

    Corpus, tokenizer and direction are those the run was trained with; how it is decoded and scored too, but for
    what the command names.
    """
    folder, trained = find_run(config)
    others = further_runs(config)
    trained.data_folder = config.data_folder
    config = replace(as_decoded(config, trained), direction=trained.direction)
    data = None
    if config.evaluation.splits != []:  # for other files alone the corpus may be gone
        data = prepare(trained, run=folder)
        require_same_data(folder, data)
    return evaluate_splits(config, folder, data, others, splits_of(folder, trained))


def evaluate_splits(
    config: Config,
    folder: Path,
    data: PreparedData | None,
    others: Sequence[Path] = (),
    reserved: Sequence[str] = (),
) -> Values:
    """Writes `<run>/evaluation/<split>-<decoding>[-<engine>][-with-<runs>]/` for each split; prints the scores.

    Args:
        folder: the run's.
        data: with the splits of its corpus; None where only `evaluation.files` are evaluated.
        others: run folders of models that decode together with the run's own.
        reserved: see `check_splits`.

    Returns:
        Split → metric → value.
    Raises:
        UserError: an evaluation with other settings of the same `decoding.name`, or of other text by the same name,
            would be lost.
    """
    sets, published = check_splits(config, data, reserved)
    console = Console(stderr=True)
    if not sets:
        none = "evaluation.splits=[] asks for none"
        asked = none if config.evaluation.splits == [] else "the corpus has no test split"
        console.print(f"{asked}, so there are no test scores", markup=False)
        return {}
    folders = {split: folder / "evaluation" / evaluation_name(config, split, others) for split in sets}
    for split, there in folders.items():
        _check_same_decoding(there, config)
        _check_same_text(there, split, sets[split])
        with named_write_error(there):
            there.mkdir(parents=True, exist_ok=True)
    device = choose_device(config.device)
    model, tokenizers = load_model(folder / "model", device)
    joined = join_models(folder, model, tokenizers, others, config, device)
    translator = Translator(open_engine(config, folder, joined), tokenizers, decoding=config.decoding)
    title = _title(config, others)
    results: dict[str, dict[str, Score]] = {}
    with progress_bar(console) as progress:
        for split, (sources, references) in sets.items():
            with named_write_error(folders[split]):
                result = evaluate_split(
                    translator,
                    EvaluationSet(sources, references, _target_language(config), published),
                    title=f"{split}, {title}",
                    config=config.evaluation,
                    seed=config.seed,
                    decoding=asdict(config.decoding),
                    model=_description(config, folder, others),
                    progress=progress,
                )
                count = config.evaluation.num_pictures
                attention = attention_maps(translator, model, tokenizers, result, count=count)
                write_evaluation(folders[split], result, attention)
                results[split] = dict(result.scores)
    _show(results, folders, f"{config.name}, {title}")
    return {split: {key: score.value for key, score in scores.items()} for split, scores in results.items()}


def check_splits(
    config: Config, data: PreparedData | None, reserved: Sequence[str]
) -> tuple[TestSets, list[str] | None]:
    """What is to be evaluated, and the lines of `evaluation.tokenized_references`, which are one split's.

    Args:
        data: None where only `evaluation.files` are wanted.
        reserved: names that these must not have, for they are those of the corpus' splits.

    Raises:
        UserError: a split or a file is not there, or references do not belong to it; better known before training
            than after.
    """
    sets: TestSets = {}
    if data is not None:
        splits = data.test_splits if config.evaluation.splits is None else config.evaluation.splits
        sets = {split: (data.lines(split, "source"), data.lines(split, "target")) for split in splits}
    for name, paths in config.evaluation.files.items():
        if name in reserved:
            raise UserError(f"evaluation.files.{name}: the corpus has a split of this name; choose another")
        sets[name] = _read_files(config, name, paths)
    path = config.evaluation.tokenized_references
    if path is None:
        return sets, None
    if len(sets) != 1:
        raise UserError(
            f"evaluation.tokenized_references={path} are the references of one split, and evaluated are "
            f"{', '.join(sets) or 'none'}: choose one with evaluation.splits=[…], or one of evaluation.files"
        )
    [(_, references)] = sets.values()
    return sets, read_tokenized(Path(path).expanduser(), references, _target_language(config))


def _read_files(config: Config, name: str, paths: list[str]) -> tuple[list[str], list[str]]:
    """The sources and references of one of `evaluation.files`."""
    settings = config.evaluation
    columns = {"english_column": settings.english_column, "german_column": settings.german_column}
    try:
        pairs = list(read_pairs([Path(path).expanduser() for path in paths], **columns))
    except UserError as error:
        text = str(error)
        for key in columns:
            text = text.replace(f"corpus.{key}", f"evaluation.{key}")
        raise UserError(text) from error
    if not pairs:
        raise UserError(f"evaluation.files.{name}: {', '.join(paths) or 'no file'}, and no sentence in it")
    broken = [number for number, pair in enumerate(pairs, start=1) if "\n" in "".join(pair)]
    if broken:
        raise UserError(
            f"{', '.join(paths)}: a line break inside a sentence (pair {broken[0]}); put each on one line"
        )
    english, german = ([pair[side] for pair in pairs] for side in (0, 1))
    return (english, german) if config.direction == "en-de" else (german, english)


def _target_language(config: Config) -> str:
    return config.direction.partition("-")[2]


def _check_same_text(folder: Path, name: str, text: tuple[list[str], list[str]]) -> None:
    """Raises `UserError` where an evaluation of other sources or references lies in the folder."""
    for column, lines in zip(("sources", "references"), text, strict=True):
        path = folder / f"{column}.txt"
        if path.is_file() and path.read_bytes() != "".join(f"{line}\n" for line in lines).encode():
            raise UserError(
                f"{folder} holds an evaluation of other {column}: delete it, or choose another name than {name}"
            )


def _check_same_decoding(folder: Path, config: Config) -> None:
    """Raises `UserError` where an evaluation with other settings lies in the folder."""
    path = folder / "scores.json"
    if not path.is_file():
        return
    try:
        earlier: dict[str, object] = json.loads(path.read_text("utf-8"))["decoding"]
    except (ValueError, KeyError):  # damaged: nothing is lost with it
        return
    earlier = {key.removeprefix("decoding."): value for key, value in BEFORE.items()} | earlier
    differing = [
        f"decoding.{key}: {earlier[key]} → {value}"
        for key, value in asdict(config.decoding).items()
        if key in earlier
        and earlier[key] != value
        and (key != "tokens_per_batch" or config.decoding.sampling)  # otherwise it changes no translation
    ]
    if differing:
        raise UserError(
            f"{folder} holds an evaluation with other settings ({'; '.join(differing)}): "
            "give this one a name of its own, decoding.name=…, or delete that folder"
        )


def _title(config: Config, others: Sequence[Path]) -> str:
    """What the translations are of, besides the run."""
    engine = [] if config.decoding.engine == "pytorch" else [engine_name(config)]
    ensemble = [f"ensemble of {1 + len(others)}"] if others else []
    return ", ".join([config.decoding.name, *engine, *ensemble])


def _description(config: Config, folder: Path, others: Sequence[Path]) -> dict[str, object]:
    """Which model it was, to the bit; of an ensemble which models."""
    description: dict[str, object] = {
        "run": config.name,
        "engine": engine_name(config),
        "weights_sha256": file_digest(folder / "model" / "weights.safetensors"),
    }
    if others:
        root = Path(config.output_folder)
        description["ensemble_weights_sha256"] = {
            str(other.relative_to(root)): file_digest(other / "model" / "weights.safetensors")
            for other in others
        }
    return description


def _show(results: dict[str, dict[str, Score]], folders: dict[str, Path], title: str) -> None:
    """Prints the table, how the scores were made, and where the reports lie."""
    output = Console(soft_wrap=True)
    output.print(_table(results, title))
    for split, scores in results.items():
        for key in ("bleu", "bleu_tokenized"):
            if key in scores:
                output.print(f"{split}: {scores[key].signature}", markup=False, highlight=False)
        output.print(f"report: {folders[split] / 'report.html'}", markup=False, highlight=False)


def _table(results: dict[str, dict[str, Score]], title: str) -> Table:
    """A row a score and a column a split: as a column each, the scores would not fit a terminal."""
    table = Table("score", title=Text(title))
    for split in results:
        table.add_column(split, justify="right")
    for scores in zip(*(scores.values() for scores in results.values()), strict=True):
        cells = [f"{score.value:.2f} [{score.low:.1f}, {score.high:.1f}]" for score in scores]
        table.add_row(scores[0].name, *cells)
    return table
