"""Small models, as training begins with them, or with every weight random, of norms and biases too."""

from functools import cache

import torch

from configs import TINY, run_config
from endeavour.model.config import ModelConfig
from endeavour.model.transformer import Transformer


@cache
def tiny() -> ModelConfig:
    """That of `model=tiny`."""
    return run_config(["model=tiny"]).model


def shaken(model: Transformer, alpha: float) -> Transformer:
    """The model, in evaluation mode, with noise of this deviation added to its weights."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=alpha)
    return model.eval()


def drawn(config: ModelConfig, vocabularies: tuple[int, int], *, alpha: float, seed: int = 0) -> Transformer:
    """A new model for vocabularies of source and target, shaken."""
    torch.manual_seed(seed)
    source, target = vocabularies
    return shaken(Transformer(config, source_vocabulary=source, target_vocabulary=target), alpha)


def fresh(vocabulary: int, *overrides: str, seed: int = 1) -> Transformer:
    """A model of some thousand parameters, as training begins with it; `overrides` are of the model."""
    torch.manual_seed(seed)
    config = run_config(["model=tiny", *TINY, *overrides]).model
    return Transformer(config, source_vocabulary=vocabulary, target_vocabulary=vocabulary)
