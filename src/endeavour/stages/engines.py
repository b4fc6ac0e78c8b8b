"""The engine that `decoding.engine` names, over a run's model or an ensemble: our own, or the run's export."""

import hashlib
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import torch

from endeavour.config import Config
from endeavour.data.disk import file_digest
from endeavour.decoding.ctranslate2 import DESCRIPTION, CTranslate2Engine
from endeavour.decoding.engine import Engine
from endeavour.decoding.ensemble import Ensemble
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.errors import UserError
from endeavour.export.formats import export_folder
from endeavour.model.transformer import Transformer
from endeavour.training.checkpoint import verify
from endeavour.training.device import choose_device

LONGEST_NAME = 100  # bytes of the names of an ensemble's runs in that of a folder; file systems take 255


def engine_name(config: Config) -> str:
    """As it stands in titles and in the names of evaluation folders: pytorch, ctranslate2-int8 …"""
    engine = config.decoding.engine
    return engine if engine == "pytorch" else f"{engine}-{config.quantization}"


def evaluation_name(config: Config, split: str, others: Sequence[Path] = ()) -> str:
    """The folder of an evaluation, which another decoding, engine or ensemble does not overwrite.

    `others` are the run folders of an ensemble's further models; their order does not matter.
    """
    suffix = "" if config.decoding.engine == "pytorch" else f"-{engine_name(config)}"
    if others:
        suffix += f"-with-{joined_names(others, Path(config.output_folder))}"
    return f"{split}-{config.decoding.name}{suffix}"


def joined_names(runs: Sequence[Path], root: Path) -> str:
    """The names of runs below `root`, in whatever order, as one that a file can have."""
    # Quoted, so that x/y and x_y, or b+c and b with c, have folders of their own.
    names = "+".join(sorted(quote(run.relative_to(root).as_posix(), safe=" ,=") for run in runs))
    if len(names.encode()) > LONGEST_NAME:
        names = f"{len(runs)}-runs-{hashlib.sha256(names.encode()).hexdigest()[:12]}"
    return names


def open_engine(config: Config, run: Path, model: Transformer | Ensemble) -> Engine:
    """The engine for `run`, whose model `model` is, perhaps joined with others.

    Raises:
        UserError: there is no export, it is damaged or made from other weights, or it does not run on this device.
    """
    if config.decoding.engine == "pytorch":
        return PyTorchEngine(model, config.decoding)
    assert not isinstance(model, Ensemble), "an export holds one model: the config should have refused this"
    folder = export_folder(run, config.decoding.engine, config.quantization)
    folders = [one for one in sys.argv[1:] if one.startswith(("output_folder=", "data_folder="))]
    export = ["endeavour", "export", "format=ctranslate2", f"quantization={config.quantization}"]
    remedy = shlex.join([*export, f"name={config.name}", *folders])
    if not folder.is_dir():
        raise UserError(f"decoding.engine=ctranslate2 needs {folder}: run `{remedy}`")
    verify(folder)
    description = json.loads((folder / DESCRIPTION).read_text("utf-8"))
    if description["weights_sha256"] != file_digest(run / "model" / "weights.safetensors"):
        raise UserError(f"{folder} was made from other weights than {run / 'model'} has: run `{remedy}`")
    device = choose_device(config.device)
    if device.type == "mps":
        raise UserError("decoding.engine=ctranslate2 runs on device=cpu or cuda")
    return CTranslate2Engine(
        folder,
        config.decoding,
        device=device.type,
        device_index=device.index or 0,
        workers=torch.get_num_threads() if device.type == "cpu" else 1,
    )
