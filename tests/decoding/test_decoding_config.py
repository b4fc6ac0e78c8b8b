"""Settings that describe no decoding are refused, each by its key and in one line."""

import pytest

from endeavour.config import load_config
from endeavour.errors import UserError

REFUSED = {
    "an unknown utility": (
        ["decoding.utility=comet"],
        "decoding.utility=comet: choose one of bleu, chrf, null",
    ),
    "unknown candidates": (
        ["decoding.candidates=all"],
        "decoding.candidates=all: choose one of beam, sampling",
    ),
    "samples of an export": (
        ["decoding=mbr", "decoding.engine=ctranslate2"],
        "decoding.engine=ctranslate2 searches and cannot draw decoding.candidates=sampling: "
        "use decoding.engine=pytorch or decoding.candidates=beam",
    ),
    "no sample": (
        ["decoding=mbr", "decoding.num_hypotheses=0"],
        "decoding.num_hypotheses=0: must be at least 1",
    ),
    "more candidates than a beam has": (
        ["decoding=mbr", "decoding.candidates=beam"],
        "decoding.num_hypotheses=50: must lie from 1 to decoding.beam_size=1",
    ),
    "an epsilon that leaves nothing": (
        ["decoding=mbr", "decoding.sampling_epsilon=1"],
        "decoding.sampling_epsilon=1.0: a probability, from 0 to below 1",
    ),
    "a validation that chooses": (
        ["validation_decoding.utility=bleu"],
        "validation_decoding.utility and candidates: a model in training decodes by beam search alone, "
        "with utility=null and candidates=beam",
    ),
    "a validation that draws": (
        ["decoding@validation_decoding=mbr", "validation_decoding.utility=null"],
        "validation_decoding.utility and candidates: a model in training decodes by beam search alone, "
        "with utility=null and candidates=beam",
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
