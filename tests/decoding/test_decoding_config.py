"""Settings that describe no decoding are refused, each by its key and in one line."""

import pytest

from endeavour.config import load_config
from endeavour.errors import UserError

REFUSED = {
    "an unknown utility": (
        ["decoding.utility=comet"],
        "decoding.utility=comet: choose one of bleu, chrf, null",
    ),
    "an unknown precision": (
        ["decoding.precision=int8"],
        "decoding.precision=int8: choose one of fp32, bf16",
    ),
    "a precision of an export": (
        ["decoding.precision=bf16", "decoding.engine=ctranslate2"],
        "decoding.precision=bf16 needs decoding.engine=pytorch: set fp32, an export has a quantization=… instead",
    ),
    "no candidate": (
        ["decoding=mbr", "decoding.num_hypotheses=0"],
        "decoding.num_hypotheses=0: must lie from 1 to decoding.beam_size=12",
    ),
    "more candidates than a beam has": (
        ["decoding=mbr", "decoding.num_hypotheses=13"],
        "decoding.num_hypotheses=13: must lie from 1 to decoding.beam_size=12",
    ),
    "a choice of one": (
        ["decoding.utility=bleu"],
        "decoding.utility=bleu chooses among decoding.num_hypotheses=1: ask for two or more, or for decoding=mbr",
    ),
    "no end of a length": (
        ["decoding.max_length_ratio=inf"],
        "decoding.max_length_ratio=inf: must be a number that is not negative",
    ),
    "no number": (
        ["validation_decoding.length_penalty=nan"],
        "validation_decoding.length_penalty=nan: must be a number that is not negative",
    ),
    "a validation that chooses": (
        [f"validation_decoding.{key}" for key in ("utility=bleu", "num_hypotheses=2", "beam_size=2")],
        "validation_decoding.utility: a model in training decodes by beam search alone",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_key(case: str) -> None:
    overrides, message = REFUSED[case]
    with pytest.raises(UserError) as refusal:
        load_config(overrides)
    assert str(refusal.value) == message


def test_an_n_best_list_of_an_export_may_be_chosen_from() -> None:
    engine = ["decoding.engine=ctranslate2", "decoding.utility=chrf", "decoding.num_hypotheses=5"]
    assert load_config(engine).decoding.utility == "chrf"
