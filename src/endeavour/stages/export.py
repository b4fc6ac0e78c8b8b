"""The export stage: a run's model in the format of another program, and the proof that it is the same model."""

import json
import math
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from endeavour.config import Config
from endeavour.data.disk import file_digest
from endeavour.data.normalization import normalize
from endeavour.data.prepared import PreparedData
from endeavour.data.tokenizer import Tokenizers
from endeavour.decoding.beam_search import length_limit
from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.ctranslate2 import DESCRIPTION, CTranslate2Engine
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.errors import UserError
from endeavour.export.ctranslate2 import positions_of, write_ctranslate2
from endeavour.export.formats import export_folder
from endeavour.export.huggingface import HuggingFaceEngine, check_huggingface, write_huggingface
from endeavour.export.parity import TOLERANCE, Parity, compare
from endeavour.export.readme import CTRANSLATE2, HUGGINGFACE, MAX_LENGTH
from endeavour.model.transformer import Transformer
from endeavour.optional import require
from endeavour.special import BOS, EOS, PAD
from endeavour.stages.prepare import prepare
from endeavour.stages.run_folder import (
    as_decoded,
    find_run,
    named_write_error,
    require_same_data,
    write_json,
)
from endeavour.training.checkpoint import atomic_folder, load_model

PARITY_SENTENCES = 500  # of the validation split


def export(config: Config) -> Path:
    """Writes `<run>/export/<format>/` for the run that `config` names, and prints the comparison.

    Raises:
        UserError: the format cannot hold this model, or a float export is not the same model; then nothing is
            written.
    """
    run, trained = find_run(config)
    trained.data_folder = config.data_folder
    config = as_decoded(config, trained)
    if config.decoding.sampling:
        raise UserError(
            "an export is compared with PyTorch by what both find, not by what they draw: add decoding=beam"
        )
    config.decoding.precision = "fp32"  # the weights are exported as they are, and compared as such
    require("ctranslate2" if config.format == "ctranslate2" else "transformers")
    model, tokenizers = load_model(run / "model", torch.device("cpu"))
    if config.format == "huggingface":
        check_huggingface(model.config)
    data = prepare(trained, run=run)
    require_same_data(run, data)
    folder = export_folder(run, config.format, config.quantization)
    with named_write_error(folder), atomic_folder(folder) as partial:
        parity = _fill(
            partial, config, model, tokenizers, data, weights=run / "model" / "weights.safetensors"
        )
    _show(folder, parity)
    return folder


def _fill(
    folder: Path,
    config: Config,
    model: Transformer,
    tokenizers: Tokenizers,
    data: PreparedData,
    *,
    weights: Path,
) -> Parity:
    """Writes everything into the still empty folder. Raises `UserError` where a float format is not the same."""
    exact = config.format == "huggingface" or config.quantization == "float32"
    if config.format == "ctranslate2":
        pieces = [tokenizer.pieces(range(tokenizer.vocabulary_size)) for tokenizer in tokenizers]
        write_ctranslate2(folder, model, (pieces[0], pieces[1]), quantization=config.quantization)
    else:
        write_huggingface(folder, model, config.decoding)
    for side, tokenizer in zip(("source", "target"), tokenizers, strict=True):
        tokenizer.save(folder / f"{side}.model")
    package = "ctranslate2" if config.format == "ctranslate2" else "transformers"
    description = {
        "run": config.name,
        "format": config.format,
        "quantization": config.quantization if config.format == "ctranslate2" else "float32",
        "weights_sha256": file_digest(weights),
        "positions": positions_of(model),
        "versions": {name: version(name) for name in ("endeavour", "torch", package)},
    }
    write_json(folder / DESCRIPTION, description)
    parity = _parity(folder, config, model, tokenizers, data)
    (folder / "README.md").write_text(_readme(folder, config, description, data), "utf-8")
    if not math.isfinite(parity.largest_difference):
        raise UserError(
            "the exported model gives probabilities that are no numbers (NaN or infinite); nothing was written\n"
            f"another quantization=… or release of {package} than {version(package)} may help"
        )
    write_json(
        folder / "parity.json",
        {
            "split": data.validation_split,
            **asdict(parity),
            "bleu_difference": parity.bleu_difference,
            "tolerance": TOLERANCE if exact else None,
            "decoding": asdict(config.decoding),
        },
    )
    if exact and not parity.same_model:
        raise UserError(
            f"the exported model is not the same: log-probabilities differ by up to {parity.largest_difference:.2g} "
            f"nats a token (tolerance {TOLERANCE}); nothing was written\n"
            f"another release of {package} than {version(package)} may help"
        )
    return parity


def _parity(
    folder: Path, config: Config, model: Transformer, tokenizers: Tokenizers, data: PreparedData
) -> Parity:
    settings = config.decoding
    sources, targets, references = _sentences(data, tokenizers, positions=positions_of(model))
    limits = [
        length_limit(
            len(source) - 1,
            ratio=settings.max_length_ratio,
            offset=settings.max_length_offset,
            positions=positions_of(model),
        )
        for source in sources
    ]
    return compare(
        model,
        PyTorchEngine(model, settings),
        open_exported(folder, config.format, settings),
        sources=sources,
        targets=targets,
        references=references,
        decode=tokenizers[1].decode,
        limits=limits,
        alpha=settings.length_penalty,
        # CTranslate2 excludes them before its softmax.
        excluded=(PAD, BOS) if config.format == "ctranslate2" else (),
    )


def _sentences(
    data: PreparedData, tokenizers: Tokenizers, *, positions: int
) -> tuple[list[list[int]], list[list[int]], list[str]]:
    """Of the validation split: source ids with EOS, target ids, and the untouched references.

    Empty lines are left out, and those that with EOS or BOS need more than so many positions.
    """
    split = data.validation_split
    references = data.lines(split, "target")
    sources, targets = (
        tokenizer.encode(lines)
        for tokenizer, lines in zip(tokenizers, (data.lines(split, "source"), references), strict=True)
    )
    rows = [
        row
        for row, pair in enumerate(zip(sources, targets, strict=True))
        if all(0 < len(ids) < positions for ids in pair)
    ][:PARITY_SENTENCES]
    if not rows:
        raise UserError(
            f"no validation sentence has between 1 and {positions - 2} tokens on either side, so the export cannot "
            "be checked"
        )
    return (
        [[*sources[row], EOS] for row in rows],
        [targets[row] for row in rows],
        [references[row] for row in rows],
    )


def open_exported(
    folder: Path, format: str, decoding: DecodingConfig
) -> CTranslate2Engine | HuggingFaceEngine:
    if format == "ctranslate2":
        return CTranslate2Engine(folder, decoding, workers=torch.get_num_threads())
    return HuggingFaceEngine(folder, decoding)


def _readme(folder: Path, config: Config, description: dict[str, Any], data: PreparedData) -> str:
    """With the first validation sentence in the sample."""
    first = next(line for line in data.lines(data.validation_split, "source") if normalize(line))
    values = {
        "run": config.name,
        "quantization": description["quantization"],
        "positions": description["positions"],
        "beam_size": config.decoding.beam_size,
        "length_penalty": config.decoding.length_penalty,
        "sentence": normalize(first).replace("\\", "\\\\").replace('"', '\\"'),
        "pad": PAD,
    }
    if config.format == "ctranslate2":
        return CTRANSLATE2.format(**values, max_length=min(MAX_LENGTH, description["positions"]))
    architecture = json.loads((folder / "config.json").read_text("utf-8"))["architectures"][0]
    max_length = json.loads((folder / "generation_config.json").read_text("utf-8"))["max_length"]
    return HUGGINGFACE.format(**values, architecture=architecture, max_length=max_length)


def _show(folder: Path, parity: Parity) -> None:
    console = Console(soft_wrap=True, highlight=False)
    differing = parity.sentences - parity.identical
    console.print(f"exported: {folder}", markup=False)
    console.print(
        f"{parity.identical} of {parity.sentences} translations identical; of the other {differing}, our model "
        f"scores {parity.ties} the same, {parity.ours_better} lower, {parity.theirs_better} higher"
    )
    console.print(f"largest difference of a log-probability: {parity.largest_difference:.1e} nats a token")
    console.print(
        f"validation BLEU: {parity.bleu_pytorch:.2f} PyTorch, {parity.bleu_exported:.2f} exported "
        f"({parity.bleu_difference:+.2f})"
    )
