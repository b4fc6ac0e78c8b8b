"""Runs as ensembles: how they translate together, and which do not."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from configs import TINY, run_config
from endeavour.data.tokenizer import Tokenizers
from endeavour.data.tokenizer_training import train_tokenizer
from endeavour.decoding.ensemble import Ensemble
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.decoding.translator import Translator
from endeavour.errors import UserError
from endeavour.runs import translators
from endeavour.runs.choice import select_runs
from endeavour.runs.run import Run
from endeavour.runs.translators import load_runs, open_translator, resolve_decoding
from endeavour.training.precision import Precision
from untrained import untrained_run

CPU = torch.device("cpu")
SMALL = [*TINY, "tokenizer.vocabulary_size=300"]
SHORT = ["decoding.max_length_ratio=1", "decoding.max_length_offset=2"]
TEXT = ["the dog sees a tree", "often the old man finds the dog today", "der Hund sieht heute den alten Baum"]


@cache
def vocabularies() -> Tokenizers:
    config = run_config(SMALL).tokenizer
    tokenizer = train_tokenizer([f"{line} {i}" for i in range(99) for line in TEXT], config)
    return tokenizer, tokenizer


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The output folder of the finished runs a, b and c of one vocabulary."""
    for seed, name in enumerate("abc"):
        config = run_config([*SMALL, f"name={name}", f"output_folder={tmp_path}"])
        untrained_run(config, vocabularies(), seed=seed)
    return tmp_path


@pytest.mark.parametrize(
    "decoding", [["decoding.beam_size=3"], ["decoding=mbr", "decoding.num_hypotheses=6"]]
)
def test_several_runs_translate_as_an_ensemble_of_their_models_in_whichever_order(
    decoding: list[str], root: Path
) -> None:
    config = run_config([*SMALL, *SHORT, *decoding]).decoding
    models = [Run(root, name).load_model(CPU)[0] for name in "cab"]
    direct = Translator(PyTorchEngine(Ensemble(models), config), vocabularies(), decoding=config).translate(
        [*TEXT, ""]
    )
    runs = select_runs("a b c", root)
    together = open_translator(runs, load_runs(runs, CPU, None), config)
    assert list(together.translate([*TEXT, ""])) == list(direct)


def other_direction(run: Run) -> None:
    path = run.folder / "config.yaml"
    path.write_text(path.read_text().replace("direction: en-de", "direction: de-en"))


def other_vocabulary(run: Run) -> None:
    shutil.rmtree(run.folder)
    text = [f"ganz anderer Text von anderswo {i}" for i in range(99)]
    tokenizer = train_tokenizer(text, run_config(SMALL).tokenizer)
    config = run_config([*SMALL, f"name={run.name}", f"output_folder={run.root}"])
    untrained_run(config, (vocabularies()[0], tokenizer))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda run: (run.model_folder / "target.model").unlink(),
            r"c/model/target\.model: missing or altered",
        ),
        (other_vocabulary, "c has another target vocabulary than .*/a"),
        (other_direction, "c translates de-en and .*/a en-de"),
    ],
)
def test_models_that_do_not_decode_together(change: Callable[[Run], None], message: str, root: Path) -> None:
    change(Run(root, "c"))
    with pytest.raises(UserError, match=message):
        load_runs(select_runs("a b c", root), CPU, None)


def test_an_export_has_no_precision_to_choose(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faster = Precision("bf16", "measured")
    monkeypatch.setattr(translators, "choose_decoding_precision", lambda *_, **__: faster)
    model, _ = Run(root, "a").load_model(CPU)
    ours = run_config([*SMALL, "decoding.precision=auto"]).decoding
    exported = replace(ours, engine="ctranslate2")
    assert resolve_decoding(ours, model).precision == "bf16"
    assert resolve_decoding(exported, model) == exported


def test_an_export_decodes_alone(root: Path) -> None:
    decoding = run_config(SMALL).decoding
    decoding.engine = "ctranslate2"
    runs = select_runs("a b", root)
    with pytest.raises(UserError, match=r"decoding\.engine=ctranslate2: an export holds one model"):
        open_translator(runs, load_runs(runs, CPU, None), decoding)
