"""What is built before training, and a rehearsal of seconds: what would fail after hours should fail now."""

import math
import shutil
import tempfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from endeavour.data.batching import BLOCK, collate, epoch_batches, require_pair_fits
from endeavour.data.corpus import TRAIN, VALIDATION
from endeavour.data.dataset import ParallelDataset
from endeavour.data.prepared import PreparedData
from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.decoding.translator import Translator
from endeavour.errors import UserError, named_memory_error
from endeavour.evaluation.metrics import corpus_bleu
from endeavour.model.transformer import Transformer
from endeavour.runs.config import RunConfig
from endeavour.runs.run import Run
from endeavour.runs.translators import resolve_decoding
from endeavour.storage import write_errors
from endeavour.training.checkpoint import load_model, size_of
from endeavour.training.distributed import Ranks
from endeavour.training.optimizer import make_optimizer
from endeavour.training.sharding import shard
from endeavour.training.state import Checkpoints, TrainState
from endeavour.training.step import SMALLER_BATCHES, LossModel, accumulate_gradients

REHEARSAL = ".preflight-"  # how the names of its folders begin
SENTENCES = 2  # that are translated; an untrained model seldom ends one before its limit


def require_trainable(config: RunConfig, data: PreparedData) -> None:
    """Raises `UserError` for sentences longer than a batch or the positions, and for parts that are never drawn."""
    longest: dict[str, int] = {}
    for split in (TRAIN, VALIDATION):
        dataset = ParallelDataset.open(data.folder, split)
        longest[split] = int(max(dataset.source.lengths.max(), dataset.target.lengths.max()))
    require_pair_fits(longest[TRAIN], config.training.tokens_per_batch)
    model = config.model
    for split, length in longest.items():
        if model.positions == "learned" and length > model.max_length:
            raise UserError(
                f"the {split} split has a sentence of {length} tokens: model.max_length={model.max_length} must be at "
                "least as large"
            )
    for stage in config.training.mixture or []:
        stage.pairs({part: counts["pairs"] for part, counts in data.parts.items()})


def fresh_model(
    config: RunConfig, data: PreparedData, ranks: Ranks
) -> tuple[Transformer, torch.optim.Optimizer]:
    """The model as `config.seed` initialises it, perhaps sharded, and its optimizer; seeds torch's generators."""
    torch.manual_seed(config.seed)
    source, target = data.load_tokenizers()
    model = Transformer(
        config.model,
        source_vocabulary=source.vocabulary_size,
        target_vocabulary=target.vocabulary_size,
    )
    if config.training.sharded:
        shard(model, ranks.device, ranks.count)  # layer by layer: the whole need not fit on the device
    else:
        model.to(ranks.device)
    return model, make_optimizer(model, config.training)


def open_checkpoints(config: RunConfig, folder: Path, data: PreparedData) -> Checkpoints:
    """The checkpoints of a run in `folder`."""
    return Checkpoints(
        folder / "checkpoints",
        data.load_tokenizers(),
        keep_last=config.training.keep_last,
        keep_best=config.training.keep_best,
    )


def preflight(config: RunConfig, data: PreparedData, ranks: Ranks, precision: torch.dtype) -> None:
    """Rehearses a run with a model of its own: disk, longest batch, checkpoint, translation, score.

    Raises:
        UserError: something fails that would fail later.
    """
    folder = Run.of(config).folder
    model, optimizer = fresh_model(config, data, ranks)
    if ranks.main:
        with write_errors(folder, "output_folder"):
            folder.mkdir(parents=True, exist_ok=True)
        for leftover in folder.glob(f"{REHEARSAL}*"):  # of one that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        _check_room(folder, config.training.keep_last + config.training.keep_best, size_of(model))
    loss_model = LossModel(
        model.train(), label_smoothing=config.training.label_smoothing, r_drop=config.training.r_drop
    )
    for _ in range(2):  # the second time beside the optimizer's moments
        optimizer.zero_grad()
        _longest_batch(config, loss_model, data, ranks, precision)
        with named_memory_error("the optimizer's first step", SMALLER_BATCHES):
            optimizer.step()
    # The other processes give their parts of the model, and write nothing.
    here = tempfile.TemporaryDirectory(prefix=REHEARSAL, dir=folder) if ranks.main else nullcontext("")
    with here as rehearsal:
        checkpoints = open_checkpoints(config, Path(rehearsal), data)
        checkpoints.save(model, optimizer, TrainState(), ranks)
        if ranks.main:
            _translate(checkpoints.path(0), config.validation_decoding, data, ranks.device)


def _check_room(folder: Path, kept: int, checkpoint_size: int) -> None:
    """For all checkpoints that are kept, one that is being written, and the final model."""
    needed = (kept + 1) * checkpoint_size + checkpoint_size // 3
    present = sum(file.stat().st_size for file in (folder / "checkpoints").glob("*/*"))
    free = shutil.disk_usage(folder).free
    if needed - present > free:
        raise UserError(
            f"{folder}: {kept} checkpoints (training.keep_last and keep_best) need {(needed - present) / 1e6:,.0f} MB "
            f"of space, and {free / 1e6:,.0f} MB are free\n"
            "free some space, keep fewer checkpoints, or choose another output_folder"
        )


def _longest_batch(
    config: RunConfig, loss_model: LossModel, data: PreparedData, ranks: Ranks, precision: torch.dtype
) -> None:
    """Gradients of the batches that hold the longest pair and the most cells."""
    dataset = ParallelDataset.open(data.folder, TRAIN)
    source, target = dataset.source.lengths, dataset.target.lengths
    # Of many millions of pairs every n-th, the longest among them.
    step = math.ceil(len(dataset) / BLOCK)
    rows = np.arange(int(np.maximum(source, target).argmax()) % step, len(dataset), step)
    settings = config.training
    drawn = epoch_batches(
        source[rows], target[rows], tokens_per_batch=settings.tokens_per_batch, seed=config.seed, epoch=0
    )
    batches = [rows[batch] for batch in drawn]

    def longest(rows: NDArray[np.int64]) -> int:
        return int(max(source[rows].max(), target[rows].max()))

    # Batches are sorted by length: this is the share of the process that gets the longest pair.
    def share(rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return rows[::-1][:: ranks.count]

    chosen = [max(batches, key=longest), max(batches, key=lambda rows: longest(rows) * len(rows))]
    accumulate_gradients(
        loss_model,
        [collate(dataset, share(rows)) for rows in chosen],
        target_tokens=1,
        device=ranks.device,
        precision=precision,
    )


def _translate(
    model_folder: Path, decoding: DecodingConfig, data: PreparedData, device: torch.device
) -> None:
    """Loads the model from a checkpoint, translates with it and scores that."""
    model, tokenizers = load_model(model_folder, device)
    sources = data.lines(VALIDATION, "source")[:SENTENCES]
    references = data.lines(VALIDATION, "target")[:SENTENCES]
    decoding = resolve_decoding(decoding, model)
    translator = Translator(PyTorchEngine(model, decoding), tokenizers, decoding=decoding)
    corpus_bleu(list(translator.translate(sources)), references)
