"""How a trained run is decoded and scored: as its own config says, except for what is typed."""

from pathlib import Path

import pytest
import torch

from configs import run_config
from endeavour.commands.evaluate import EvaluateRoot
from endeavour.config import load_config
from endeavour.errors import UserError
from endeavour.evaluation.config import EvaluationConfig
from endeavour.pipeline.evaluation_sets import resolve_splits
from endeavour.runs.config import RunConfig
from endeavour.runs.run import Run


def trained(root: Path, *settings: str) -> RunConfig:
    """What a command looks at before it decodes, of a finished run called `run`."""
    config = run_config(["name=run", f"output_folder={root}", *settings])
    run = Run.of(config)
    run.model_folder.mkdir(parents=True)
    run.begin(config, torch.device("cpu"), ["endeavour", "train"])
    return config


def asked(root: Path, *typed: str) -> EvaluateRoot:
    return load_config("evaluate", EvaluateRoot, ["run=run", f"output_folder={root}", *typed])


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ([], ("beam", 7, 1.3, True)),
        (["decoding.beam_size=9"], ("beam", 9, 1.3, True)),
        (["evaluation.tokenized_bleu=false"], ("beam", 7, 1.3, False)),
        (["decoding=greedy"], ("greedy", 1, 0.0, True)),
    ],
)
def test_a_key_or_a_group_that_is_typed_wins_over_the_runs_own(
    typed: list[str], expected: tuple[str, int, float, bool], tmp_path: Path
) -> None:
    own = trained(
        tmp_path, "decoding.beam_size=7", "decoding.length_penalty=1.3", "evaluation.tokenized_bleu=true"
    )
    found = asked(tmp_path, *typed)
    decoding = found.decoding
    assert (
        decoding.name,
        decoding.beam_size,
        decoding.length_penalty,
        found.evaluation.tokenized_bleu,
    ) == expected
    if not typed:
        assert decoding == own.decoding


def test_a_key_and_the_runs_own_have_to_fit(tmp_path: Path) -> None:
    trained(tmp_path, "decoding=mbr")
    with pytest.raises(UserError, match=r"decoding\.num_hypotheses=12.*beam_size=3"):
        asked(tmp_path, "decoding.beam_size=3")


def test_tokenized_references_are_for_a_score_that_is_computed(tmp_path: Path) -> None:
    trained(tmp_path)
    with pytest.raises(UserError, match=r"tokenized_references.*evaluation\.tokenized_bleu=true"):
        asked(tmp_path, "evaluation.tokenized_references=file")


@pytest.mark.parametrize(
    ("after_training", "typed", "splits", "references"),
    [
        ("null", [], None, "own"),
        ("null", ["evaluation.splits=[validation]"], ["validation"], None),
        ("null", ["evaluation.splits=[test]"], ["test"], "own"),
        ("[test]", [], ["test"], "own"),
        ("[test]", ["evaluation.splits=[test]"], ["test"], "own"),
        ("[test]", ["evaluation.splits=[other]"], ["other"], None),
        ("[test]", ["+evaluation.files.news=[a.en,a.de]"], [], None),
        ("[]", [], [], None),
        ("null", ["evaluation.splits=[]"], [], None),
        (
            "[test]",
            ["evaluation.splits=[other]", "evaluation.tokenized_references=new"],
            ["other"],
            "new",
        ),
    ],
)
def test_the_runs_own_splits_are_scored_and_its_tokenized_references_serve_for_these_alone(
    after_training: str, typed: list[str], splits: list[str] | None, references: str | None, tmp_path: Path
) -> None:
    tokenized = ["evaluation.tokenized_bleu=true", "evaluation.tokenized_references=own"]
    own = trained(tmp_path, f"evaluation.splits={after_training}", *tokenized).evaluation
    found: EvaluationConfig = resolve_splits(asked(tmp_path, *typed).evaluation, own)
    assert found.splits == splits
    assert found.tokenized_bleu
    assert found.tokenized_references == references
