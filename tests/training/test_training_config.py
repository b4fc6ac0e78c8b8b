"""Settings that describe no training are refused, each by its key, beside what test_config_properties.py tries."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from configs import run_config

CONFIG = run_config([]).training
NO_TRAINING: list[dict[str, Any]] = [
    {"label_smoothing": 1.0},
    {"adam_beta2": 1.0},
    {"clip_norm": 0.0},
    {"max_minutes": 0.0},
    {"patience": 0},
    {"max_updates": None, "schedule": "inverse_sqrt"},  # has no end
    {"max_updates": None, "max_epochs": 2},  # where would the cosine end?
    {"final_learning_rate": 2 * CONFIG.learning_rate, "schedule": "cosine", "max_updates": 9},  # rises
    {"optimizer": "muon", "sharded": True},
]


@pytest.mark.parametrize("changes", NO_TRAINING, ids=str)
def test_what_describes_no_training_is_refused_by_key(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=rf"\b{next(iter(changes))}\b"):
        replace(CONFIG, **changes)
