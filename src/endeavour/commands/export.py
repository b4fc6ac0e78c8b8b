"""`endeavour export`: a trained run in the format of another program, and the proof that it is the same model."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch
from pydantic.dataclasses import dataclass
from rich.console import Console

from endeavour.decoding.config import DecodingConfig
from endeavour.errors import UserError
from endeavour.export.exporter import Exporter
from endeavour.export.formats import FORMATS, FormatName
from endeavour.export.parity import Parity
from endeavour.optional import require
from endeavour.pipeline.data import data_of
from endeavour.runs.run import select_runs
from endeavour.settings import STRICT
from endeavour.storage import atomic_folder, write_errors


@dataclass(kw_only=True, config=STRICT)
class ExportRoot:
    """Values and their meaning: conf/export.yaml."""

    run: str | None
    format: FormatName
    quantization: Literal["int8", "float32"]
    data_folder: str
    output_folder: str
    corpus_path: str | None
    decoding: DecodingConfig


def export(config: ExportRoot) -> Path:
    """Writes `<run>/export/<format>/` for the run that `config` names, and prints the comparison.

    Raises:
        UserError: the format cannot hold this model, or a float export is not the same model; then nothing is
            written.
    """
    run, *others = select_runs(config.run, Path(config.output_folder))
    if others:
        raise UserError("an export holds one model: name one run with run=…")
    if config.decoding.sampling:
        raise UserError(
            "an export is compared with PyTorch by what both find, not by what they draw: add decoding=beam"
        )
    kind = FORMATS[config.format]
    require(kind.package)
    model, tokenizers = run.load_model(torch.device("cpu"))
    kind.check(model.config)
    data = data_of(run, Path(config.data_folder), config.corpus_path)
    exporter = Exporter(
        run=run.name,
        format=config.format,
        quantization=config.quantization,
        model=model,
        tokenizers=tokenizers,
        decoding=replace(config.decoding, precision="fp32"),  # the weights are exported as they are
        weights_digest=run.weights_digest,
        sources=data.lines(data.validation_split, "source"),
        references=data.lines(data.validation_split, "target"),
    )
    folder = run.export_folder(config.format, config.quantization if kind.quantizes else None)
    with write_errors(folder, "output_folder"), atomic_folder(folder) as partial:
        parity = exporter.write(partial)
    _show(folder, parity)
    return folder


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
