"""`endeavour average`: runs of another run's checkpoints, used like any other."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from commands import endeavour, places
from configs import QUICK, TINY
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
    """By the command that is shown, which finds the prepared data; its scores are not those of the other weights."""
    code, said = average("updates=[1]", "name=first")
    assert code == 0
    command = said.strip().splitlines()[-1].partition("score it: endeavour ")[2].split()
    assert endeavour(*command, f"data_folder={trained.root.parent / 'data'}", "device=cpu") == 0
    scores = Run(trained.root, "first").folder / "evaluation"
    assert (next(scores.glob("*/scores.json"))).is_file()
    capsys.readouterr()
    assert (
        endeavour("translate", f"output_folder={trained.root}", "run=first", "device=cpu", "text=the dog")
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
