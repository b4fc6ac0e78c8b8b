"""Translating by a run's export for CTranslate2. Imports no PyTorch, which would take most of the start."""

from collections.abc import Sequence
from pathlib import Path

from endeavour.data.parallel import usable_cores
from endeavour.data.tokenizer import load_tokenizers, with_tag
from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.ctranslate2 import DESCRIPTION, CTranslate2Engine
from endeavour.decoding.translator import Translator
from endeavour.errors import UserError
from endeavour.optional import require
from endeavour.runs.command_lines import export_command
from endeavour.runs.run import Run
from endeavour.storage import read_json_object, verify


def open_export(runs: Sequence[Run], decoding: DecodingConfig, device: str, window: int) -> Translator:
    """A translator by the export of a run.

    Args:
        runs: one.
        device: auto, which is a GPU where CTranslate2 sees one, cpu, cuda, or cuda:1 …

    Raises:
        UserError: the export is missing, damaged, or made from other weights than the run has; it cannot decode an
            ensemble, or on this device.
    """
    folder = require_export(runs, decoding)
    run = runs[0]
    _verify(folder, run, decoding.export_quantization)
    kind, index = _device(device)
    engine = CTranslate2Engine(
        folder,
        decoding,
        device=kind,
        device_index=index,
        workers=usable_cores() if kind == "cpu" else 1,
    )
    return Translator(
        engine,
        with_tag(load_tokenizers(folder), run.source_tag(decoding.tag)),
        window,
        decoding=decoding,
        language=run.source_language,
    )


def require_export(runs: Sequence[Run], decoding: DecodingConfig) -> Path:
    """The folder of the export that translates for `runs`. Raises `UserError` where there is none, or several runs."""
    run, *others = runs
    if others:
        raise UserError(
            f"decoding.engine={decoding.engine}: an export holds one model, and run=… names several"
        )
    folder = run.export_folder("ctranslate2", decoding.export_quantization)
    if not folder.is_dir():
        raise UserError(
            f"decoding.engine=ctranslate2 needs {folder}: run `{export_command(run, decoding.export_quantization)}`"
        )
    return folder


def _verify(folder: Path, run: Run, quantization: str) -> None:
    remedy = f"run `{export_command(run, quantization)}`"
    verify(folder, remedy)
    description = read_json_object(folder / DESCRIPTION)
    if description["weights_sha256"] != run.weights_digest:
        raise UserError(f"{folder} was made from other weights than {run.model_folder} has: {remedy}")


def _device(name: str) -> tuple[str, int]:
    """Kind and index."""
    kind, _, index = name.partition(":")
    if kind == "auto":
        kind = "cuda" if require("ctranslate2").get_cuda_device_count() else "cpu"
    if kind not in ("cpu", "cuda") or not (index or "0").isdecimal() or (kind == "cpu" and int(index or 0)):
        raise UserError(f"device={name}: decoding.engine=ctranslate2 runs on auto, cpu, cuda, cuda:1 …")
    return kind, int(index or 0)
