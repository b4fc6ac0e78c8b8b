"""Untrained runs of one small corpus, for tests of what is done with runs."""

from pathlib import Path

from commands import places
from configs import TINY, run_config
from endeavour.pipeline.data import prepare
from untrained import untrained_run

FAST = ["decoding=greedy", "decoding.max_length_ratio=1", "evaluation.bootstrap_samples=40"]


def make_runs(folder: Path, corpus: list[str]) -> Path:
    """Data and outputs in `folder`: the runs `a`, `b` and `c` of one vocabulary, and `back` to English."""
    settings = [*corpus, *TINY, *FAST, *places(folder)]
    for direction, names in (("en-de", "abc"), ("de-en", ["back"])):
        config = run_config([*settings, f"direction={direction}"])
        data = prepare(config)
        for seed, config.name in enumerate(names):
            untrained_run(config, data.load_tokenizers(), seed=seed, data_digest=data.content_digest)
    return folder
