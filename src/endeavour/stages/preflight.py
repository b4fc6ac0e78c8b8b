"""What is built before training, and a rehearsal of seconds: what would fail after hours should fail now."""

import math
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from endeavour.config import Config
from endeavour.data.batching import collate, epoch_batches
from endeavour.data.dataset import ParallelDataset
from endeavour.data.prepared import PreparedData
from endeavour.errors import UserError, named_memory_error
from endeavour.evaluation.metrics import corpus_bleu
from endeavour.evaluation.translate import PyTorchEngine, Translator
from endeavour.model.transformer import Transformer
from endeavour.training.checkpoint import load_model, random_state, size_of
from endeavour.training.loop import make_optimizer
from endeavour.training.processes import Processes
from endeavour.training.state import Checkpoints, TrainState
from endeavour.training.step import SMALLER_BATCHES, LossModel, accumulate_gradients

REHEARSAL = ".preflight-"  # how the names of its folders begin
SENTENCES = 2  # that are translated; an untrained model seldom ends one before its limit


def fresh_model(
    config: Config, data: PreparedData, device: torch.device
) -> tuple[Transformer, torch.optim.Optimizer]:
    """The model as `config.seed` initialises it, and its optimizer; seeds torch's generators."""
    torch.manual_seed(config.seed)
    source, target = data.load_tokenizers()
    model = Transformer(
        config.model,
        source_vocabulary=source.vocabulary_size,
        target_vocabulary=target.vocabulary_size,
    ).to(device)
    return model, make_optimizer(model, config.training)


def open_checkpoints(config: Config, folder: Path, data: PreparedData) -> Checkpoints:
    """The checkpoints of a run in `folder`."""
    return Checkpoints(
        folder / "checkpoints",
        data.load_tokenizers(),
        keep_last=config.training.keep_last,
        keep_best=config.training.keep_best,
    )


def preflight(config: Config, data: PreparedData, together: Processes, precision: torch.dtype) -> None:
    """Rehearses a run with a model of its own: disk, longest batch, checkpoint, translation, score.

    Raises:
        UserError: something of it fails that would fail later.
    """
    model, optimizer = fresh_model(config, data, together.device)
    if together.main:
        for leftover in config.run_folder.glob(f"{REHEARSAL}*"):  # of one that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        _check_room(config, model)
    _longest_batch(config, model, optimizer, data, together, precision)
    if together.main:
        with tempfile.TemporaryDirectory(prefix=REHEARSAL, dir=config.run_folder) as folder:
            _round_trip(config, model, optimizer, data, Path(folder))


def _check_room(config: Config, model: Transformer) -> None:
    """For all checkpoints that are kept, one that is being written, and the final model."""
    kept = config.training.keep_last + config.training.keep_best
    needed = (kept + 1) * size_of(model) + size_of(model) // 3
    present = sum(file.stat().st_size for file in (config.run_folder / "checkpoints").glob("*/*"))
    free = shutil.disk_usage(config.run_folder).free
    if needed - present > free:
        raise UserError(
            f"{config.run_folder}: {kept} checkpoints (training.keep_last and keep_best) need "
            f"{(needed - present) / 1e6:,.0f} MB of room, and {free / 1e6:,.0f} MB are free\n"
            "make room, keep fewer checkpoints, or choose another output_folder"
        )


def _longest_batch(
    config: Config,
    model: Transformer,
    optimizer: torch.optim.Optimizer,
    data: PreparedData,
    together: Processes,
    precision: torch.dtype,
) -> None:
    """One update with the batches that hold the longest pair and the most cells."""
    dataset = ParallelDataset.open(data.folder, "train")
    batches = epoch_batches(
        dataset.source.lengths,
        dataset.target.lengths,
        tokens_per_batch=config.training.tokens_per_batch,
        seed=config.seed,
        epoch=0,
    )

    def longest(rows: NDArray[np.int64]) -> int:
        return int(max(dataset.source.lengths[rows].max(), dataset.target.lengths[rows].max()))

    chosen = [
        max(batches, key=longest),
        max(batches, key=lambda rows: longest(rows) * len(rows)),
    ]
    accumulate_gradients(
        LossModel(
            model.train(),
            label_smoothing=config.training.label_smoothing,
        ),
        [collate(dataset, rows[: math.ceil(len(rows) / together.count)]) for rows in chosen],
        target_tokens=1,
        device=together.device,
        precision=precision,
    )
    with named_memory_error("the optimizer's first step", SMALLER_BATCHES):
        optimizer.step()


def _round_trip(
    config: Config,
    model: Transformer,
    optimizer: torch.optim.Optimizer,
    data: PreparedData,
    folder: Path,
) -> None:
    """Saves a checkpoint, loads the model from it, translates with it and scores that."""
    checkpoints = open_checkpoints(config, folder, data)
    checkpoints.save(model, optimizer, TrainState(), [random_state(model.output_weight.device)])
    loaded, tokenizers = load_model(checkpoints.path(0), model.output_weight.device)
    sources = data.lines(data.validation_split, "source")[:SENTENCES]
    references = data.lines(data.validation_split, "target")[:SENTENCES]
    translator = Translator(PyTorchEngine(loaded, config.validation_decoding), tokenizers)
    corpus_bleu(list(translator.translate(sources)), references)
