"""Settings that describe no decoding are refused, each by its key, beside what test_config_properties.py tries."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from configs import run_config
from endeavour.decoding.config import LONGEST_NAME

SEARCH = run_config([]).decoding
SAMPLING = run_config(["decoding=sample"]).decoding
NOT_OF_A_SEARCH: list[dict[str, Any]] = [
    {"name": "../beam"},
    {"name": "two\nlines"},
    {"name": "ü" * (LONGEST_NAME // 2) + "s"},
    {"name": "beam-with-b"},
    {"name": "beam-with"},  # with b it would be the label of beam, with with-b
    {"name": "beam-ctranslate2-int8"},
    {"utility": "comet"},
    {"engine": "ctranslate2", "precision": "bf16"},
    {"quantization": "float32"},
    {"engine": "ctranslate2", "precision": "fp16"},
    {"beam_size": 0},
    {"num_hypotheses": 0},
    {"num_hypotheses": 6},
    {"utility": "bleu"},  # with one hypothesis to choose among
    {"backward": "back"},  # likewise
    {"utility": "bleu", "num_hypotheses": 5, "backward": "back"},
    {"engine": "ctranslate2", "num_hypotheses": 5, "backward": "back"},
    {"backward_weight": -1.0},
    {"length_penalty": 10.1},
    {"max_length_ratio": 1000.1},
    {"tokens_per_batch": 0},
    {"temperature": 0.5},
    {"top_k": 3},
    {"epsilon": 0.1},
    {"seed": 2},
]
NOT_OF_SAMPLING: list[dict[str, Any]] = [
    {"temperature": 0.0},
    {"temperature": float("inf")},
    {"top_k": 0},
    {"epsilon": 1.0},
    {"seed": -1},
    {"seed": 2**63},
    {"num_hypotheses": 0},
    {"engine": "ctranslate2"},
    {"beam_size": 5},
]


@pytest.mark.parametrize("changes", NOT_OF_A_SEARCH, ids=str)
def test_what_describes_no_search_is_refused_by_key(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=rf"\b{list(changes)[-1]}\b"):
        replace(SEARCH, **changes)


@pytest.mark.parametrize("changes", NOT_OF_SAMPLING, ids=str)
def test_what_describes_no_sampling_is_refused_by_key(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=rf"\b{next(iter(changes))}\b"):
        replace(SAMPLING, **changes)


def test_an_export_decodes_with_utilities_and_automatic_precision() -> None:
    changes: dict[str, Any] = {"engine": "ctranslate2", "utility": "chrf", "num_hypotheses": 5}
    assert replace(SEARCH, **changes, precision="auto").utility == "chrf"
