"""`endeavour prepare`: the data of a run, without training anything."""

import sys

from endeavour.pipeline import data
from endeavour.runs.config import RunConfig


def prepare(config: RunConfig) -> None:
    """Builds what `endeavour train` with the same settings would train on, and says where it lies."""
    tokenizers = None
    if config.pretrained is not None:
        # Imported here: only this needs torch, which takes a second to load.
        from endeavour.pipeline.fine_tuning import pretraining_of, take_vocabularies

        if first := pretraining_of(config):
            print(f"note: `endeavour train` first trains {config.pretrained}", file=sys.stderr)
            tokenizers = data.prepare(first).load_tokenizers()
        else:
            config, tokenizers = take_vocabularies(config)
    data.prepare(config, tokenizers=tokenizers)
    if config.teachers is not None:
        print("note: `endeavour train` adds the translations of the teachers", file=sys.stderr)
