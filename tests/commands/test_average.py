"""`endeavour average`: runs of another run's checkpoints, used like any other."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from commands import endeavour, places
from configs import QUICK, TINY
from endeavour.pipeline import averaged
from endeavour.runs.choice import select_runs
from endeavour.runs.evaluations import evaluations_of
from endeavour.runs.run import Run
from endeavour.training.checkpoint import checkpoints_in

Average = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, parallel_files: list[str]) -> Run:
    """With checkpoints of three updates."""
    folder = tmp_path_factory.mktemp("average")
    short = [
        "training.max_updates=3",
        "training.validate_every=1",
        "training.keep_last=3",
        "training.average=none",
    ]
    settings = [*parallel_files, *QUICK, *TINY, *short, *places(folder), "evaluation.num_pictures=0"]
    assert endeavour("train", *settings, "name=whole") == 0
    return Run(folder / "outputs", "whole")


@pytest.fixture
def average(trained: Run, capsys: pytest.CaptureFixture[str]) -> Average:
    def run(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        code = endeavour("average", f"output_folder={trained.root}", "run=whole", *words)
        return code, capsys.readouterr().err

    return run


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "weights.safetensors")


def test_one_checkpoint_is_taken_as_it_is(trained: Run, average: Average) -> None:
    assert average("updates=[2]")[0] == 0
    made = Run(trained.root, "whole-2")
    second = weights(trained.checkpoint_folder / "update-00000002")
    assert all(torch.equal(tensor, second[name]) for name, tensor in weights(made.model_folder).items())
    assert made.summary["checkpoints"] == ["update-00000002"]


def test_of_several_the_mean_is_taken(trained: Run, average: Average) -> None:
    assert average("name=mean")[0] == 0
    several = [weights(folder) for folder in checkpoints_in(trained.checkpoint_folder)]
    assert len(several) == 3
    for name, tensor in weights(Run(trained.root, "mean").model_folder).items():
        mean = torch.stack([one[name] for one in several]).mean(dim=0)
        torch.testing.assert_close(tensor, mean)


def test_it_is_evaluated_like_the_run(
    trained: Run, average: Average, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the command that is shown, which finds the prepared data."""
    code, said = average("updates=[2]", "name=second")
    assert code == 0
    command = said.strip().splitlines()[-1].partition("score it: endeavour ")[2].split()
    assert endeavour(*command, f"data_folder={trained.root.parent / 'data'}", "device=cpu") == 0
    made = Run(trained.root, "second")
    assert evaluations_of(made)[0].record["model"]["weights_sha256"] == made.weights_digest
    assert made.weights_digest != trained.weights_digest
    capsys.readouterr()
    assert (
        endeavour("translate", f"output_folder={trained.root}", "run=second", "device=cpu", "text=the dog")
        == 0
    )


def test_a_run_that_is_not_finished_has_checkpoints_too(
    trained: Run, average: Average, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is being trained has no final weights yet, and its lock is held."""
    monkeypatch.setattr(Run, "is_trained", property(lambda _: False))
    with trained.lock():
        assert average("updates=[3]", "name=meanwhile")[0] == 0


def test_what_cannot_be_averaged_is_refused(trained: Run, average: Average) -> None:
    before = sorted(trained.root.iterdir())
    assert average("updates=[2,7]") == (
        2,
        f"endeavour average: updates=[2, 7]: there is no checkpoint of 7; {trained} has those of updates 1, 2, 3\n",
    )
    assert "names no checkpoint" in average("updates=[]")[1]
    assert "is there already" in average("name=whole")[1]
    assert "name=…" in average("name=whole/model")[1]
    assert "belongs to the run" in average("name=whole/model/deeper")[1]
    assert "must name a folder below" in average("name=../elsewhere")[1]
    assert sorted(trained.root.iterdir()) == before


def test_a_checkpoint_that_a_signal_made_is_no_part_of_the_mean(trained: Run, average: Average) -> None:
    stopped = trained.checkpoint_folder / "update-00000004-stopped"
    shutil.copytree(trained.checkpoint_folder / "update-00000003", stopped)
    assert average("name=without")[0] == 0
    assert average("updates=[4]", "name=alone")[0] == 0
    shutil.rmtree(stopped)
    assert len(Run(trained.root, "without").summary["checkpoints"]) == 3
    assert Run(trained.root, "alone").summary["checkpoints"] == [stopped.name]


def test_what_teachers_wrote_comes_along(trained: Run, average: Average) -> None:
    """So that the data can be prepared again."""
    trained.teacher_data_folder.mkdir()
    (trained.teacher_data_folder / "1.en.txt").write_text("the dog\n")
    assert average("updates=[1]", "name=taught")[0] == 0
    shutil.rmtree(trained.teacher_data_folder)
    assert (Run(trained.root, "taught").teacher_data_folder / "1.en.txt").read_text() == "the dog\n"


def test_the_newest_run_is_none_that_was_averaged(trained: Run, average: Average) -> None:
    assert average("updates=[1]", "name=newest")[0] == 0
    assert select_runs(None, trained.root) == [trained]


@pytest.mark.parametrize("moment", ["update_of", "average_weights", "load_model"])
def test_a_checkpoint_that_goes_meanwhile_is_named(
    moment: str, trained: Run, average: Average, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it is verified, while it is read, and after."""
    folder, aside = trained.checkpoint_folder / "update-00000001", trained.folder / "aside"
    original = getattr(averaged, moment)

    def goes(*arguments: Any, **named: Any) -> Any:
        if folder.exists():
            folder.rename(aside)
        return original(*arguments, **named)

    monkeypatch.setattr(averaged, moment, goes)
    code, said = average("updates=[1]", f"name=without-{moment}")
    aside.rename(folder)
    assert code == 2
    assert "have taken the place of update-00000001 meanwhile" in said


def test_a_run_that_is_begun_meanwhile_stays(trained: Run, average: Average) -> None:
    other = Run(trained.root, "other")
    with other.lock():
        code, said = average("updates=[1]", "name=other")
    assert code == 2
    assert "is being written by another process" in said
    assert not other.folder.exists()


def test_a_damaged_checkpoint_is_named(trained: Run, average: Average) -> None:
    path = trained.checkpoint_folder / "update-00000003" / "weights.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    try:
        code, said = average("updates=[3]", "name=damaged")
    finally:
        path.write_bytes(whole)
    assert code == 2
    assert str(path) in said
    assert "updates=[…]" in said
    assert not (trained.root / "damaged").exists()


def test_it_is_not_taken_for_a_training_of_its_own(
    trained: Run, average: Average, parallel_files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert average("updates=[1]", "name=made")[0] == 0
    settings = [*parallel_files, *QUICK, *TINY, *places(trained.root.parent)]
    assert endeavour("train", *settings, "name=made") == 2
    assert "was made of checkpoints of whole, not trained" in capsys.readouterr().err
    (trained.root / "made" / "model" / "weights.safetensors").write_bytes(b"")
    assert endeavour("translate", f"output_folder={trained.root}", "run=made", "device=cpu", "text=a") == 2
    assert "average checkpoints of whole again" in capsys.readouterr().err
