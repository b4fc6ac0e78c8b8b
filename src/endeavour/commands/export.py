"""`endeavour export`: a trained run in the format of another program, and the proof that it is the same model."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

import torch
from pydantic.dataclasses import dataclass
from rich.console import Console

from endeavour.data.corpus import VALIDATION
from endeavour.data.prepared import PreparedData
from endeavour.data.tokenizer import tag_of
from endeavour.decoding.config import DecodingConfig, Quantization
from endeavour.errors import UserError
from endeavour.export.exporter import Exporter
from endeavour.export.format_table import Written, format_table, size_of_model
from endeavour.export.formats import FORMATS, FormatName, Trained
from endeavour.export.hub_upload import check_upload, upload
from endeavour.export.model_card import Card, ScoredSet
from endeavour.export.parity import Parity
from endeavour.optional import require
from endeavour.pipeline.data import data_of
from endeavour.progress import say
from endeavour.runs.choice import require_translators, select_run
from endeavour.runs.evaluations import decoding_label, evaluations_of
from endeavour.runs.run import Run
from endeavour.settings import STRICT
from endeavour.storage import atomic_folder, waiting_lock, write_errors

CARD_KEYS = (
    *("seed", "pretrained", "teachers", "cleaning", "augmentation"),
    *("tokenizer", "model", "training", "decoding"),
)
"""Of the config: what the weights and the translations come from, besides the corpus."""


@dataclass(kw_only=True, config=STRICT)
class ExportRoot:
    """Values and their meaning: conf/export.yaml."""

    run: str | None
    format: Literal["ctranslate2", "huggingface", "argos", "all"]
    quantization: Quantization | None
    push: str | None
    data_folder: str
    output_folder: str
    corpus_path: str | None
    decoding: DecodingConfig


def export(config: ExportRoot) -> list[Path]:
    """Writes `<run>/export/<format>[-<quantization>]/` for the run that `config` names, and prints the comparison.

    Returns:
        The folders written: one, or with `format=all` one for each format and quantization that holds the model.

    Raises:
        UserError: the format, or of all formats none, can hold this model, or a float32 export is not the same model;
            then nothing is written.
    """
    run = select_run(config.run, Path(config.output_folder), "an export holds one model")
    require_translators([run])
    _check(config)
    trained = _trained(run, config)
    console = Console(soft_wrap=True, highlight=False)
    written = _exports(run, config, trained, console)
    if config.format == "all":
        console.print()
        console.print(format_table([row for _, row in written]))
    folders = [folder for folder, _ in written]
    if config.push is not None:
        say(console, f"uploaded: {upload(folders[0], config.push)}")
    return folders


def _check(config: ExportRoot) -> None:
    if config.decoding.sampling or config.decoding.backward is not None:
        raise UserError(
            "an export is compared with PyTorch by what both find, not by what they draw or another run chooses: add "
            "decoding=beam"
        )
    if config.quantization is not None:
        if config.format == "all":
            raise UserError(f"quantization={config.quantization}: format=all writes every one")
        if config.quantization not in (offered := FORMATS[config.format].quantizations):
            raise UserError(
                f"quantization={config.quantization}: format={config.format} has {', '.join(offered)} only"
            )
    if config.push is not None:
        if config.format != "huggingface":
            raise UserError(f"push={config.push} needs format=huggingface")
        check_upload(config.push)
    for name, kind in FORMATS.items():
        if config.format in (name, "all"):
            require(kind.package)


def _exports(run: Run, config: ExportRoot, trained: Trained, console: Console) -> list[tuple[Path, Written]]:
    """Those asked for; of all, one that turns out not to hold the model is left out, with a line."""
    written: list[tuple[Path, Written]] = []
    for format, quantization in _asked(config, trained, console):
        try:
            written.append(_written(run, format, quantization, trained, console))
        except UserError as error:
            if config.format != "all" or isinstance(error.__cause__, OSError):  # a full disk is full for all
                raise
            say(console, f"left out: {format} in {quantization}: {error}")
    if not written:
        raise UserError(f"{run}: no format holds this model")
    return written


def _asked(
    config: ExportRoot, trained: Trained, console: Console
) -> Iterator[tuple[FormatName, Quantization]]:
    """The formats and quantizations to write; of all, those that cannot hold the model are left out, with a line."""
    if config.format != "all":
        kind = FORMATS[config.format]
        kind.check(trained.model.config)
        yield config.format, config.quantization or kind.quantizations[0]
        return
    for format, kind in FORMATS.items():
        try:
            kind.check(trained.model.config)
        except UserError as error:
            say(console, f"left out: {error}")
            continue
        for quantization in kind.quantizations:
            yield format, quantization


def _written(
    run: Run, format: FormatName, quantization: Quantization, trained: Trained, console: Console
) -> tuple[Path, Written]:
    several = len(FORMATS[format].quantizations) > 1
    folder = run.export_folder(format, quantization if several else None)
    exporter = Exporter(
        format=format, quantization=quantization, trained=trained, weights_digest=run.weights_digest
    )
    with (
        write_errors(folder),
        waiting_lock(folder.parent, f"exporting {run}"),
        atomic_folder(folder) as partial,
    ):
        parity = exporter.write(partial)
    _show(folder, parity, console)
    return folder, Written(name=folder.name, size=size_of_model(folder), parity=parity)


def _trained(run: Run, config: ExportRoot) -> Trained:
    if run.is_imported:
        raise UserError(
            f"{run} came without data to compare an export on: export a run that was trained from it"
        )
    model, tokenizers = run.load_model(torch.device("cpu"))
    data = data_of(run, Path(config.data_folder), config.corpus_path)
    part = run.source_tag(config.decoding.tag)
    return Trained(
        run=run.name,
        model=model,
        tokenizers=tokenizers,
        decoding=replace(config.decoding, precision="fp32"),  # the weights are exported as they are
        card=_card(run, config, data),
        tag="" if part is None else tag_of(part),
        sources=data.lines(VALIDATION, "source"),
        references=data.lines(VALIDATION, "target"),
    )


def _card(run: Run, config: ExportRoot, data: PreparedData) -> Card:
    corpus = run.config.corpus
    settings = asdict(run.config) | {"decoding": asdict(config.decoding)}
    return Card(
        address=config.push or ".",
        direction=run.config.direction,
        corpus=corpus.name,
        repository=corpus.repository,
        revision=corpus.revision,
        splits=data.splits,
        settings={key: settings[key] for key in CARD_KEYS},
        decoding=decoding_label(replace(config.decoding, engine="pytorch", quantization=None)),
        evaluations=list(_scored(run)),
    )


def _scored(run: Run) -> Iterator[ScoredSet]:
    """The evaluations of these weights by PyTorch; a damaged one is left out, with a line."""
    for evaluation in evaluations_of(run):
        try:
            model = evaluation.record["model"]
        except UserError as error:
            say(Console(stderr=True), f"note: left out of the model card: {error}")
            continue
        alone = not model.keys() & {"ensemble_weights_sha256", "backward_weights_sha256"}
        if alone and model.get("weights_sha256") == run.weights_digest and model.get("engine") == "pytorch":
            yield ScoredSet.of(evaluation.label, evaluation.record)


def _show(folder: Path, parity: Parity, console: Console) -> None:
    differing = parity.sentences - parity.identical
    say(console, f"exported: {folder}")
    say(
        console,
        f"{parity.identical} of {parity.sentences} translations identical; of the other {differing}, our model "
        f"scores {parity.ties} the same, {parity.ours_better} lower, {parity.theirs_better} higher",
    )
    say(console, f"largest difference of a log-probability: {parity.largest_difference:.1e} nats a token")
    say(
        console,
        f"validation BLEU: {parity.bleu_pytorch:.2f} PyTorch, {parity.bleu_exported:.2f} exported "
        f"({parity.bleu_difference:+.2f}); computed in {parity.compute_type}, at {parity.speed:.2f} times the speed",
    )
