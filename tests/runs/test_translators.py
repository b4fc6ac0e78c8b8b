"""Ensembles and the choice of least risk through the command line: folders, what they say, and what they hold."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from endeavour.saved_config import save_config
from endeavour.stages.engines import evaluation_name
from endeavour.stages.prepare import prepare

from commands import endeavour
from endeavour.config import load_config
from endeavour.data.tokenizer import Tokenizer, Tokenizers
from endeavour.decoding.ensemble import Ensemble
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.decoding.translator import Translator
from endeavour.model.transformer import Transformer
from endeavour.storage import atomic_folder, file_digest
from endeavour.training.checkpoint import load_model, write_model

QUICK = ["decoding.beam_size=3", "decoding.max_length_ratio=1", "decoding.max_length_offset=2"]
RISK = ["decoding=mbr", "decoding.num_hypotheses=6", *QUICK[1:]]
CPU = torch.device("cpu")
TINY = [
    "tracking=none",
    "training=smoke",
    "model.width=16",
    "model.feed_forward=32",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.num_heads=2",
    "evaluation.bootstrap_samples=40",
    "device=cpu",
]


@pytest.fixture(scope="module")
def settings(parallel_files: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Overrides of three runs a, b and c, which are there with untrained models over one vocabulary."""
    folder = tmp_path_factory.mktemp("ensembles")
    overrides = [*parallel_files, *TINY, f"data_folder={folder}/data", f"output_folder={folder}/outputs"]
    config = load_config(overrides)
    data = prepare(config)
    tokenizers = data.load_tokenizers()
    for seed, name in enumerate("abc"):
        config.name = name
        config.run_folder.mkdir(parents=True)
        save_config(config, config.run_folder / "config.yaml")
        torch.manual_seed(seed)
        model = Transformer(
            config.model,
            source_vocabulary=tokenizers[0].vocabulary_size,
            target_vocabulary=tokenizers[1].vocabulary_size,
        )
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
        with atomic_folder(config.run_folder / "model") as partial:
            write_model(partial, model, tokenizers)
    return overrides


@pytest.fixture
def outputs(settings: list[str]) -> Iterator[Path]:
    """The output folder; a run `other` in it is gone after the test."""
    folder = Path(load_config(settings).output_folder)
    yield folder
    shutil.rmtree(folder / "other", ignore_errors=True)


def models(outputs: Path, names: str) -> tuple[list[Transformer], Tokenizers]:
    loaded = [load_model(outputs / name / "model", CPU) for name in names]
    return [model for model, _ in loaded], loaded[0][1]


def test_an_evaluation_of_an_ensemble_has_its_own_folder_and_is_compared_by_it(
    settings: list[str], outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["eval", *settings, *QUICK, "name=a"]
    assert endeavour(*asked) == 0
    alone = (outputs / "a" / "evaluation" / "test-beam" / "scores.json").read_bytes()
    assert endeavour(*asked, "ensemble=b, c") == 0
    assert "a, beam, ensemble of 3" in capsys.readouterr().out
    folder = outputs / "a" / "evaluation" / "test-beam-with-b+c"
    assert (outputs / "a" / "evaluation" / "test-beam" / "scores.json").read_bytes() == alone
    assert "ensemble" not in json.loads(alone)["title"]

    record = json.loads((folder / "scores.json").read_text("utf-8"))
    weights = {name: file_digest(outputs / name / "model" / "weights.safetensors") for name in "abc"}
    assert record["title"] == "test, beam, ensemble of 3"
    assert record["model"]["run"] == "a"
    assert record["model"]["weights_sha256"] == weights.pop("a")
    assert record["model"]["ensemble_weights_sha256"] == weights

    sources = (folder / "sources.txt").read_text("utf-8").splitlines()
    together, tokenizers = models(outputs, "cab")  # in whichever order
    decoding = load_config([*settings, *QUICK]).decoding
    direct = Translator(PyTorchEngine(Ensemble(together), decoding), tokenizers)
    hypotheses = (folder / "hypotheses.txt").read_text("utf-8").splitlines()
    assert hypotheses == list(direct.translate(sources))
    assert hypotheses != (folder.parent / "test-beam" / "hypotheses.txt").read_text("utf-8").splitlines()

    trials = ["compare.bootstrap_samples=40", "compare.randomization_trials=50"]
    named = "runs=a a/evaluation/test-beam-with-b+c"
    assert endeavour("compare", *settings, *trials, named) == 0
    assert (outputs / "comparisons" / "a-vs-a%2Ftest-beam-with-b%2Bc" / "test-beam" / "report.md").is_file()


def test_each_ensemble_has_a_folder_of_its_own_whatever_the_order(settings: list[str], outputs: Path) -> None:
    config = load_config(settings)
    named = [
        evaluation_name(config, "test", [outputs / name for name in names])
        for names in (
            "bc",
            "cb",
            "bd",
            "b",
            "",
            ["b+c"],
            ["x/y"],
            ["x_y"],
            ["x/" * 60 + "b"],
            ["x/" * 60 + "c"],
        )
    ]
    assert named[:2] == ["test-beam-with-b+c"] * 2
    assert len(set(named)) == 9
    assert not any("/" in name for name in named)
    assert max(map(len, named)) < 150


def test_translate_with_an_ensemble_and_a_utility(
    settings: list[str],
    outputs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = ["the dog sees a tree", "", "often the old man finds the dog today"]
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    together, tokenizers = models(outputs, "abc")
    asked = ["translate", *settings, "name=a", f"input={tmp_path / 'in.txt'}", "ensemble=b c"]
    capsys.readouterr()
    for changes in (QUICK, RISK):
        decoding = load_config([*settings, *changes]).decoding
        engine = PyTorchEngine(Ensemble(together), decoding)
        direct = Translator(engine, tokenizers, decoding=decoding).translate(lines)
        assert endeavour(*asked, *changes) == 0
        assert capsys.readouterr().out == "".join(f"{line}\n" for line in direct)


def test_translations_are_drawn_by_seed(settings: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["translate", *settings, "name=a", "ensemble=b", "text=the dog sees a tree"]
    asked += ["decoding=sample", "decoding.num_hypotheses=5", *QUICK[1:]]

    def drawn(*more: str) -> list[str]:
        capsys.readouterr()
        assert endeavour(*asked, *more) == 0
        return capsys.readouterr().out.splitlines()

    first = drawn()
    assert len({line.split("\t")[2] for line in first}) > 1
    assert drawn() == first
    assert drawn("decoding.seed=2") != first
    assert drawn("decoding.top_k=1") == [drawn("decoding.top_k=1")[0]] * 5
    assert len(drawn("decoding.utility=chrf")) == 1


def test_a_run_trained_to_be_decoded_by_sampling_is_but_for_what_is_typed(
    settings: list[str], outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(outputs / "c", outputs / "other")
    trained = load_config([*settings, "decoding=sample", *QUICK[1:], "name=other"])
    save_config(trained, outputs / "other" / "config.yaml")
    asked = [*settings, "name=other", "text=the dog sees a tree"]
    lines: list[list[str]] = []
    for typed in (["num_hypotheses=4"], ["num_hypotheses=4", "temperature=3"], ["seed=2"]):
        capsys.readouterr()
        assert endeavour("translate", *asked, *(f"decoding.{key}" for key in typed)) == 0
        lines.append(capsys.readouterr().out.splitlines())
    assert [len(each) for each in lines] == [4, 4, 1]
    assert lines[0] != lines[1]
    # As many tokens a batch make other draws, so an evaluation of others is another one.
    evaluation = ["eval", *settings, "name=other", *QUICK[1:]]
    assert endeavour(*evaluation) == 0
    assert endeavour(*evaluation, "decoding.tokens_per_batch=60") == 2
    assert "decoding.tokens_per_batch: 8192 → 60" in capsys.readouterr().err


def test_an_evaluation_by_least_risk_says_how_it_was_made_is_the_same_again_and_is_not_lost_to_another(
    settings: list[str], outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = outputs / "b" / "evaluation" / "test-mbr"
    asked = ["eval", *settings, *RISK, "name=b"]
    assert endeavour(*asked) == 0
    record = json.loads((folder / "scores.json").read_text("utf-8"))
    assert record["decoding"]["utility"] == "bleu"
    first = (folder / "hypotheses.txt").read_bytes()
    assert endeavour(*asked, "decoding.tokens_per_batch=60") == 0
    assert (folder / "hypotheses.txt").read_bytes() == first
    capsys.readouterr()
    assert endeavour(*asked, "decoding.utility=chrf") == 2
    assert "decoding.utility: bleu → chrf): give this one a name of its own" in capsys.readouterr().err
    assert (folder / "hypotheses.txt").read_bytes() == first
    assert endeavour(*asked, "decoding.utility=chrf", "decoding.name=mbr-chrf") == 0
    assert (folder.parent / "test-mbr-chrf" / "scores.json").is_file()


def test_what_is_typed_joins_the_runs_own_decoding_before_it_is_judged(
    settings: list[str], outputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(outputs / "c", outputs / "other")
    trained = load_config([*settings, *RISK, "evaluation.tokenized_bleu=true", "name=other"])
    save_config(trained, outputs / "other" / "config.yaml")
    asked = [*settings, "name=other"]
    capsys.readouterr()
    assert endeavour("translate", *asked, "text=the dog", "decoding.utility=chrf") == 0
    assert capsys.readouterr().out.count("\n") == 1
    assert endeavour("translate", *asked, "text=the dog", "decoding.utility=null") == 0
    assert capsys.readouterr().out.count("\n") == 6  # of the n best each, as nothing chooses among them
    # Alone neither says enough: what is wrong is the file, not that tokenized_bleu was not typed.
    assert endeavour("eval", *asked, f"evaluation.tokenized_references={tmp_path}/none") == 2
    assert "no such file" in capsys.readouterr().err
    assert endeavour("translate", *asked, "text=the dog", "decoding.beam_size=3") == 2
    assert "decoding.num_hypotheses=6: must lie from 1 to decoding.beam_size=3" in capsys.readouterr().err


def other_direction(run: Path) -> None:
    path = run / "config.yaml"
    path.write_text(path.read_text().replace("direction: en-de", "direction: de-en"))


def other_vocabulary(run: Path) -> None:
    config = load_config(["tokenizer.vocabulary_size=300"]).tokenizer
    tokenizer = Tokenizer.train([f"ganz anderer Text von anderswo {i}" for i in range(99)], config)
    tokenizer.save(run / "model" / "target.model")
    path = run / "model" / "model.json"
    described = json.loads(path.read_text())
    described["tokenizers"]["target"] = tokenizer.digest
    path.write_text(json.dumps(described))
    digests = {file.name: file_digest(file) for file in (run / "model").iterdir()}
    del digests["digests.json"]
    (run / "model" / "digests.json").write_text(json.dumps(digests))


NOT_FOR = "ensemble=… is for `endeavour eval` and `endeavour translate`, not for"
# What is done to a copy of b that is called other, the command, and the message.
WRONG: dict[str, tuple[Callable[[Path], object], list[str], str]] = {
    "a run that is not there": (
        lambda run: shutil.rmtree(run),
        ["translate", "text=a", "ensemble=other"],
        "{outputs}/other holds no trained model (finished runs: a, b, c)\nan ensemble needs finished runs",
    ),
    "a run that is not finished": (
        lambda run: shutil.rmtree(run / "model"),
        ["evaluate", "ensemble=b other"],
        "{outputs}/other holds no trained model (finished runs: a, b, c)\nan ensemble needs finished runs",
    ),
    "a damaged run": (
        lambda run: (run / "model" / "target.model").unlink(),
        ["evaluate", "ensemble=other"],
        "{outputs}/other/model/target.model: missing or altered since it was written (SHA-256 differs)",
    ),
    "another vocabulary": (
        other_vocabulary,
        ["translate", "text=a", "ensemble=b other"],
        "{outputs}/other has another target vocabulary than {outputs}/a: "
        "only models over the same tokenizers decode together",
    ),
    "another direction": (
        other_direction,
        ["evaluate", "ensemble=other"],
        "{outputs}/other translates de-en and {outputs}/a en-de: no ensemble of them",
    ),
    "the run itself": (
        lambda run: None,
        ["evaluate", "ensemble=b,a"],
        "ensemble=b,a: a is the run itself; name further ones",
    ),
    "a run twice": (
        lambda run: None,
        ["translate", "text=a", "ensemble=other other"],
        "ensemble=other other: other is named twice",
    ),
    "nothing": (
        lambda run: None,
        ["translate", "text=a", "ensemble=[]"],
        'ensemble names no run: ensemble="NAME NAME", or null for the run alone',
    ),
    "a folder elsewhere": (
        lambda run: None,
        ["translate", "text=a", "ensemble=../other"],
        "ensemble='../other' must name a folder below output_folder ({outputs})",
    ),
    "an open quote": (
        lambda run: None,
        ["translate", "text=a", "ensemble='other"],
        "ensemble='other: a quote that is not closed",
    ),
    "an engine of one model": (
        lambda run: None,
        ["evaluate", "ensemble=other", "decoding.engine=ctranslate2"],
        "ensemble=other needs decoding.engine=pytorch: an export holds one model",
    ),
    "training": (
        lambda run: None,
        ["train", "ensemble=other"],
        f"{NOT_FOR} train: each run trains its own model, with a seed=… of its own",
    ),
    "comparing": (
        lambda run: None,
        ["compare", "runs=a b", "ensemble=b"],
        f"{NOT_FOR} compare: its evaluation has a folder of its own, to be named in runs=…",
    ),
    "comparing what is not there": (
        lambda run: shutil.rmtree(run / "evaluation", ignore_errors=True),
        ["compare", "runs=other/evaluation/test-beam-with-x other/evaluation/test-greedy"],
        "{outputs}/other has no evaluation test-beam-with-x (there is: none)",
    ),
    "export": (
        lambda run: None,
        ["export", "ensemble=other"],
        f"{NOT_FOR} export: an export holds one model",
    ),
    "preparing": (
        lambda run: None,
        ["prepare", "ensemble=other"],
        f"{NOT_FOR} prepare",
    ),
    "measuring": (
        lambda run: None,
        ["bench", "ensemble=other"],
        f"{NOT_FOR} bench",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_a_user_can_get_wrong(
    case: str,
    settings: list[str],
    outputs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    change, (stage, *arguments), message = WRONG[case]
    shutil.copytree(outputs / "b", outputs / "other")
    change(outputs / "other")
    capsys.readouterr()
    code = endeavour(stage, *settings, "name=a", *arguments)
    captured = capsys.readouterr()
    said = captured.err[captured.err.index("endeavour ") :]
    assert said == f"endeavour {stage}: {message.format(outputs=outputs)}\n"
    assert (code, captured.out) == (2, "")
