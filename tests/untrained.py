"""Runs that are there with untrained models, for tests that need no good translations."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from configs import run_config
from endeavour.data.normalization import normalize
from endeavour.data.tokenizer import Tokenizers
from endeavour.data.tokenizer_training import train_tokenizer
from endeavour.model.transformer import Transformer
from endeavour.runs.config import RunConfig, save_config
from endeavour.runs.run import Run
from endeavour.special import BOS, EOS
from endeavour.storage import atomic_folder, write_json
from endeavour.training.checkpoint import write_model
from random_models import drawn

TINIEST = ["model.width=8", "model.num_heads=2", "model.feed_forward=8"]
TINIEST += ["model.encoder_layers=1", "model.decoder_layers=1", "tokenizer.vocabulary_size=300"]
SENTENCES = [f"Satz {i} hat Worte wie {i * 7}. Ja!" for i in range(300)]


def small_tokenizers(config: RunConfig) -> Tokenizers:
    """One of the words above, for both sides."""
    tokenizer = train_tokenizer(SENTENCES, config.tokenizer)
    return tokenizer, tokenizer


def untrained_model(config: RunConfig, tokenizers: Tokenizers, seed: int = 0) -> Transformer:
    """A model in evaluation mode, random enough that two seeds translate differently."""
    source, target = (tokenizer.vocabulary_size for tokenizer in tokenizers)
    return drawn(config.model, (source, target), alpha=0.2, seed=seed)


def untrained_run(
    config: RunConfig, tokenizers: Tokenizers, *, seed: int = 0, data_digest: str | None = None
) -> Run:
    """A finished run of this config."""
    run = Run.of(config)
    run.folder.mkdir(parents=True)
    save_config(config, run.folder / "config.yaml")
    with atomic_folder(run.model_folder) as partial:
        write_model(partial, untrained_model(config, tokenizers, seed), tokenizers)
    write_json(run.folder / "summary.json", {"data_digest": data_digest, "test": {}})
    return run


def untrained_runs(folder: Path, tokenizers: Tokenizers, runs: Mapping[str, Sequence[str]]) -> None:
    """Runs of these names and further settings, each with weights of its own."""
    for seed, (name, more) in enumerate(runs.items()):
        config = run_config([*TINIEST, f"name={name}", f"output_folder={folder}", *more])
        untrained_run(config, tokenizers, seed=seed)


def by_hand(root: Path, run: str, source: str, target: str) -> list[float]:
    """The log-probability of each token of a translation, EOS included."""
    model, (tokenizer, _) = Run(root, run).load_model(torch.device("cpu"))
    source_ids, ids = ([*tokenizer.encode([normalize(text)])[0], EOS] for text in (source, target))
    with torch.no_grad():
        logits = model(torch.tensor([source_ids]), torch.tensor([[BOS, *ids[:-1]]]))[0]
    return [float(row[number]) for row, number in zip(logits.log_softmax(dim=-1), ids, strict=True)]
