"""Random models of every option, and sentences for them."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from endeavour.data.batching import pad
from endeavour.decoding.config import DecodingConfig
from endeavour.model.transformer import Transformer
from endeavour.special import BOS, EOS, PAD
from random_models import drawn, tiny

VOCABULARIES = (31, 24)  # source and target; with tie=all both have the latter

Model = Callable[..., Transformer]


@pytest.fixture
def random_model(sources: list[list[int]]) -> Model:
    """A function of config changes to a model whose every weight, norms and biases too, is random."""

    def make(vocabularies: tuple[int, int] = VOCABULARIES, **changes: object) -> Transformer:
        small = {"width": 16, "num_heads": 2, "feed_forward": 24, "encoder_layers": 2, "decoder_layers": 3}
        config = replace(tiny(), **{**small, "max_length": 64, **changes})
        sizes = vocabularies if config.tie != "all" else (vocabularies[1],) * 2
        model = drawn(config, sizes, alpha=0.3, seed=1)
        with torch.no_grad():
            # Sentences should end, but not at once: the last norm's bias is in all states.
            norm = (
                model.decoder_norm if config.norm == "pre" else model.decoder[-1].feed_forward_residual.norm
            )
            plain, direction = model.output_weight[EOS].clone(), norm.bias / norm.bias.square().sum()
            for push in (8.0, 4.0, 2.0, 1.0, 0.5, 0.0, -0.5, -1.0):
                model.output_weight[EOS] = plain + push * direction
                logits = model.eval()(pad(sources), torch.full((len(sources), 1), BOS))
                logits[..., [PAD, BOS]] = -torch.inf
                ends = logits.softmax(dim=-1)[..., EOS]
                if (ends < 0.2).sum() > len(sources) // 2:
                    break
        return model

    return make


@pytest.fixture
def model(random_model: Model) -> Transformer:
    return random_model()


@pytest.fixture
def sources() -> list[list[int]]:
    draw = torch.Generator().manual_seed(3)
    lengths = (3, 7, 5, 3, 12, 1, 9, 4, 7, 2)
    rows = [torch.randint(EOS + 1, VOCABULARIES[1], (length,), generator=draw).tolist() for length in lengths]
    return [[*row, EOS] for row in rows]


@pytest.fixture
def targets() -> list[list[int]]:
    """Translations that nobody would make, for `sources`."""
    draw = torch.Generator().manual_seed(4)
    return [
        torch.randint(EOS + 1, VOCABULARIES[1], (length,), generator=draw).tolist() for length in range(10)
    ]


@pytest.fixture
def decoding() -> DecodingConfig:
    return DecodingConfig(
        name="test",
        tag=None,
        engine="pytorch",
        quantization=None,
        precision="fp32",
        beam_size=4,
        length_penalty=0.6,
        max_length_ratio=1.5,
        max_length_offset=6,
        num_hypotheses=3,
        sampling=False,
        temperature=1.0,
        top_k=None,
        epsilon=0.0,
        seed=1,
        utility=None,
        backward=None,
        backward_weight=1.0,
        split_sentences=False,
        tokens_per_batch=64,
        cuda_graphs=False,
    )
