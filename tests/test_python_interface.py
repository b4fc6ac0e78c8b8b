"""The Python interface: an import that costs nothing, a run that is trained, opened, questioned and evaluated."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch

import endeavour
from commands import places
from configs import QUICK, TINY, run_config
from endeavour.runs import translators
from endeavour.runs.run import Run
from untrained import untrained_run

QUOTED = '"first run"'  # as a name with a space is given back and taken


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, parallel_files: list[str]) -> endeavour.TrainedRun:
    """Trained for a moment."""
    folder = tmp_path_factory.mktemp("interface")
    small = [*QUICK, *TINY, "model.decoder_layers=2"]
    return endeavour.train([*parallel_files, *small, *places(folder), "name=first run"])


def test_the_import_loads_nothing_and_everything_is_found() -> None:
    code = (
        "import sys, endeavour; before = set(sys.modules); "
        "assert not {'torch', 'hydra', 'numpy', 'endeavour.interface'} & before, before; "
        "[getattr(endeavour, name) for name in dir(endeavour)]; "
        "assert 'endeavour.interface' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        _ = endeavour.nothing_of_this_name  # type: ignore[attr-defined]


def test_what_translates_waits_for_nothing_that_trains_evaluates_or_reports() -> None:
    """Each of them would add tenths of a second to the first translation."""
    code = (
        "import sys, endeavour.commands.translate; "
        "late = {'endeavour.pipeline', 'endeavour.reports', 'jinja2', 'wandb', 'datasets', 'matplotlib', 'sacrebleu'}; "
        "assert not late & set(sys.modules), late & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_run_is_trained_and_known(run: endeavour.TrainedRun) -> None:
    assert (run.name, run.config.seed, run.folder.name) == (QUOTED, 1, "first run")
    assert {"train", "validation"} <= {line["kind"] for line in run.history}
    assert run.summary["test"]["test"]["bleu"] >= 0.0
    (start,) = json.loads((run.folder / "run.json").read_text("utf-8"))
    assert start["command"][:2] == ["endeavour", "train"]
    assert endeavour.train(start["command"][2:]).summary == run.summary, "it was finished"


def test_a_run_is_returned_whatever_its_name_begins_with(
    run: endeavour.TrainedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(run.folder, "outputs/outputs/x")
    (start,) = json.loads((run.folder / "run.json").read_text("utf-8"))
    again = endeavour.train([*start["command"][2:], "output_folder=outputs", "name=outputs/outputs/x"])
    assert again.folder == Path("outputs/outputs/x")
    assert again.translate("the dog") == run.translate("the dog")


def test_it_translates_a_line_or_many(run: endeavour.TrainedRun) -> None:
    lines = ["the dog sees a tree", "", "the old man"]
    found = run.translate(lines)
    assert len(found) == 3
    assert found[1] == ""
    assert run.translate(lines[0]) == found[0]
    wide = endeavour.load(
        QUOTED, output_folder=run.output_folder, device="cpu", beam_size=3, num_hypotheses=2
    )
    best = wide.translate_n_best(lines[:1])[0]
    assert len(best) == 2
    assert best[0].score >= best[1].score
    pairs = [("the dog", "der Hund"), ("the old man sees", "der alte Mann"), ("a tree", "")]
    each = [run.score(source, target) for source, target in pairs]
    assert all(value < 0.0 for value in each)
    assert run.score(*map(list, zip(*pairs, strict=True))) == pytest.approx(each, abs=1e-4)


def test_a_model_is_opened_once(run: endeavour.TrainedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Mock(wraps=translators.open_translator)
    monkeypatch.setattr(translators, "open_translator", opened)
    again = endeavour.load(QUOTED, output_folder=run.output_folder, device="cpu")
    assert again.translate("the dog") == again.translate(["the dog"])[0] == run.translate("the dog")
    again.translate_n_best(["the dog"])
    assert opened.call_count == 1


def test_it_shows_its_attention(run: endeavour.TrainedRun) -> None:
    found = run.attention("the dog sees", "der Hund sieht")
    assert found.cross.shape == (2, 2, len(found.target), len(found.source))
    assert found.encoder.shape == (1, 2, len(found.source), len(found.source))
    assert found.decoder.shape == (2, 2, len(found.target), len(found.target))
    assert isinstance(found.cross, np.ndarray)
    assert found.source[-1] == found.target[-1] == "</s>"
    own, given = run.attention("the dog sees"), run.attention("the dog sees", run.translate("the dog sees"))
    assert own.target == given.target
    assert np.array_equal(own.cross, given.cross)
    assert [word for _, word in run.align("the dog sees", "der Hund sieht")] == [0, 1, 2]
    assert len(run.align("the dog sees")) == len(run.translate("the dog sees").split())


def test_the_attention_of_a_long_pair_is_refused(run: endeavour.TrainedRun) -> None:
    for pair in (("dog " * 600, "Hund"), ("dog", "Hund " * 600)):
        with pytest.raises(endeavour.UserError, match="tokens: attention is shown of at most 512"):
            run.attention(*pair)
        with pytest.raises(endeavour.UserError, match="tokens: attention is shown of at most 512"):
            run.align(*pair)


def test_its_own_translation_is_aligned_part_by_part_as_it_was_decoded(run: endeavour.TrainedRun) -> None:
    apart = endeavour.load(QUOTED, output_folder=run.output_folder, device="cpu", split_sentences=True)
    ((best, *_),) = apart.translate_n_best(["The dog sees. The cat sees."])
    assert len(best.parts) == 2
    assert apart.align("The dog sees. The cat sees.") == apart.align_parts(best.parts)


def test_it_is_evaluated_as_by_the_command(run: endeavour.TrainedRun, tmp_path: Path) -> None:
    data = run.config.data_folder
    (score,) = run.evaluate(splits=["validation"], data_folder=data).values()
    assert set(score) >= {"bleu", "chrf"}
    assert (run.folder / "evaluation" / "validation-beam" / "report.html").is_file()
    (tmp_path / "news.tsv").write_text("en\tde\nthe dog\tder Hund\n", "utf-8")
    found = run.evaluate(files={"news": [tmp_path / "news.tsv"]}, num_pictures=0)
    assert list(found) == ["news"]
    with pytest.raises(endeavour.UserError, match="None: a folder is needed"):
        run.evaluate(data_folder=None)  # type: ignore[arg-type]
    with pytest.raises(endeavour.UserError, match="num_picture"):
        run.evaluate(num_picture=0)


def test_wrong_values_are_refused_by_key(run: endeavour.TrainedRun) -> None:
    root = run.output_folder
    with pytest.raises(endeavour.UserError, match=r"decoding\.beam_size"):
        endeavour.load(QUOTED, output_folder=root, beam_size=0)
    with pytest.raises(endeavour.UserError, match="ctranslate2-float32"):
        endeavour.load(QUOTED, output_folder=root, engine="ctranslate2", quantization="float32")
    with pytest.raises(endeavour.UserError, match="two"):
        endeavour.load("two", output_folder=root)
    for sources, targets in ((["a"], "b"), ("a", ["b"]), (["a"], ["b", "c"])):
        with pytest.raises(endeavour.UserError, match="as many"):
            run.score(sources, targets)  # type: ignore[arg-type]


@pytest.mark.parametrize(("typed", "meant"), [("beam", r"; decoding\.beam_size=… is$"), ("foo", "shows$")])
def test_a_misspelt_key_is_not_named_as_one_that_there_is(
    typed: str, meant: str, run: endeavour.TrainedRun
) -> None:
    with pytest.raises(endeavour.UserError, match=rf"^decoding\.{typed} is not a key.*{meant}"):
        endeavour.load(QUOTED, output_folder=run.output_folder, **{typed: 3})


def test_what_is_no_text_is_refused_by_its_place(run: endeavour.TrainedRun) -> None:
    for wrong in (None, b"dog", 3):
        with pytest.raises(endeavour.UserError, match=rf"^translate\({wrong!r}\): text is needed"):
            run.translate(wrong)  # type: ignore[call-overload]
    with pytest.raises(endeavour.UserError, match="number 1 of the list, from 0, is None"):
        run.translate(["the dog", None])  # type: ignore[list-item]
    with pytest.raises(endeavour.UserError, match=r"^translate_n_best: .*is 1$"):
        run.translate_n_best([1])  # type: ignore[list-item]


def test_paths_are_taken_as_their_text_is(run: endeavour.TrainedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.output_folder.parent)
    for name in (Path("outputs/first run"), [Path("first run")], run.folder):
        opened = endeavour.load(name, output_folder=Path("outputs"), device=torch.device("cpu"))
        assert opened.name == QUOTED
        assert opened.device == torch.device("cpu")


def test_what_is_neither_a_name_nor_a_path_is_refused(run: endeavour.TrainedRun) -> None:
    for name in (1, [1], [QUOTED, None], run):
        with pytest.raises(endeavour.UserError, match="a run's name or folder is needed"):
            endeavour.load(name, output_folder=run.output_folder)  # type: ignore[arg-type]
    with pytest.raises(endeavour.UserError, match="output_folder=None: a folder"):
        endeavour.load(QUOTED, output_folder=None)  # type: ignore[arg-type]
    with pytest.raises(endeavour.UserError, match="device=None is not supported"):
        endeavour.load(QUOTED, output_folder=run.output_folder, device=None).translate("dog")  # type: ignore[arg-type]


def test_a_word_in_place_of_a_list_is_not_taken_letter_by_letter(run: endeavour.TrainedRun) -> None:
    with pytest.raises(endeavour.UserError, match="list of overrides"):
        endeavour.train("model=small")
    for key, value in (("sacrebleu", "wmt14"), ("splits", "test")):
        with pytest.raises(endeavour.UserError, match=rf"evaluation\.{key}={value}"):
            run.evaluate(**{key: value})  # type: ignore[arg-type]
    with pytest.raises(endeavour.UserError, match="list of lines"):
        run.translate_n_best("the dog")


def test_several_names_are_an_ensemble(run: endeavour.TrainedRun) -> None:
    root = run.output_folder
    config = run_config([f"output_folder={root}", "name=other", "model.width=8", "model.num_heads=2"])
    untrained_run(config, Run(root, "first run").load_tokenizers())
    back = run_config([f"output_folder={root}", "name=back", "direction=de-en"])
    untrained_run(back, Run(root, "first run").load_tokenizers())
    with pytest.raises(endeavour.UserError, match="back translates de-en"):
        endeavour.load(f"{QUOTED} back", output_folder=root)
    both = endeavour.load(f"{QUOTED} other", output_folder=root, device="cpu")
    assert both.name == f"{QUOTED} other"
    assert endeavour.load(["first run", "other"], output_folder=root, device="cpu").name == both.name
    assert both.score("the dog", "der Hund") != run.score("the dog", "der Hund")
    assert both.attention("the dog", "der Hund").cross.shape[0] == 2, "the first run's"
