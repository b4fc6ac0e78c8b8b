"""Runs that are there with untrained models, for tests that need no good translations."""

from endeavour.data.tokenizer import Tokenizer, Tokenizers
from endeavour.model.transformer import Transformer
from endeavour.runs.config import RunConfig, save_config
from endeavour.runs.run import Run
from endeavour.storage import atomic_folder, write_json
from endeavour.training.checkpoint import write_model
from random_models import drawn

TINY = ["model.width=8", "model.num_heads=2", "model.feed_forward=8"]
TINY += ["model.encoder_layers=1", "model.decoder_layers=1", "tokenizer.vocabulary_size=300"]
SENTENCES = [f"Satz {i} hat Worte wie {i * 7}. Ja!" for i in range(300)]


def small_tokenizers(config: RunConfig) -> Tokenizers:
    """One of the words above, for both sides."""
    tokenizer = Tokenizer.train(SENTENCES, config.tokenizer)
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
