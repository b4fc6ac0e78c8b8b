"""Marian checkpoints as transformers writes them: the same probabilities and ids, fine-tuned, and as a teacher."""

import io
import json
import re
import shutil
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from safetensors.torch import load_file, save_file
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

from commands import endeavour, places, write_lines
from configs import QUICK, run_config
from endeavour.decoding.scoring import log_probabilities
from endeavour.errors import UserError
from endeavour.pipeline.distillation import Teachers
from endeavour.pipeline.imported import run_named
from endeavour.runs.run import Run
from endeavour.special import EOS
from local_server import LocalServer
from textbook_sides import textbook_sides

BASE = [*QUICK, "training.precision=fp32", "decoding=greedy", "evaluation.num_pictures=0"]


def english() -> list[str]:
    return textbook_sides(300)[0]


def german() -> list[str]:
    return textbook_sides(300)[1]


def write_checkpoint(folder: Path, *, algorithm: str, activation: str, lacking: int, begins: bool) -> Path:
    """A random model with vocabularies learnt from a few sentences.

    Args:
        lacking: pieces that vocab.json lacks.
        begins: whether vocab.json has <s> too.
    """
    folder.mkdir(parents=True)
    pieces: list[str] = []
    for side, lines, size in (("source", english(), 200), ("target", german(), 210)):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            vocab_size=size,
            model_type=algorithm,
            minloglevel=2,
        )
        (folder / f"{side}.spm").write_bytes(model.getvalue())
        one = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        pieces += [one.id_to_piece(number) for number in range(3, one.vocab_size())]
    kept = list(dict.fromkeys(pieces))
    for lost in [piece for piece in kept if len(piece) > 2][:lacking]:
        kept.remove(lost)
    names = ["</s>", "<unk>", *(["<s>"] if begins else []), *kept, "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({piece: number for number, piece in enumerate(names)}))
    torch.manual_seed(0)
    model = MarianMTModel(
        MarianConfig(
            vocab_size=len(names),
            d_model=32,
            encoder_layers=2,
            decoder_layers=3,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=48,
            decoder_ffn_dim=48,
            activation_function=activation,
            scale_embedding=True,
            pad_token_id=len(names) - 1,
            decoder_start_token_id=len(names) - 1,
            max_position_embeddings=64,
        )
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
        model.final_logits_bias.add_(torch.randn_like(model.final_logits_bias), alpha=3)
    model.save_pretrained(folder)
    files = [str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")]
    MarianTokenizer(*files, source_lang="en", target_lang="de").save_pretrained(folder)
    return folder


KINDS: dict[str, dict[str, Any]] = {
    "opus": {"algorithm": "unigram", "activation": "swish", "lacking": 0, "begins": False},
    "bpe": {"algorithm": "bpe", "activation": "relu", "lacking": 5, "begins": True},
}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints")
    for name, kind in KINDS.items():
        write_checkpoint(folder / name, **kind)
    weights = load_file(folder / "bpe" / "model.safetensors")
    torch.save(weights, folder / "bpe" / "pytorch_model.bin")  # as older ones have them
    return folder


@pytest.fixture
def command(parallel_files: list[str], tmp_path: Path) -> Callable[..., int]:
    """`endeavour COMMAND`, with a corpus and folders for this test alone."""

    def run(name: str, *overrides: str) -> int:
        return endeavour(name, *parallel_files, *BASE, *places(tmp_path), *overrides)

    return run


def imported(root: Path, folder: Path) -> Run:
    return Run(root, f"hf/{folder.relative_to('/').as_posix()}")


def test_its_folder_may_lie_anywhere(tmp_path: Path) -> None:
    settings = ["pretrained=hf:../../opus", "teachers=hf:../../opus", f"output_folder={tmp_path}"]
    config = run_config(settings)
    assert (config.pretrained, config.teachers) == ("hf:../../opus", '"hf:../../opus"')


def test_its_run_lies_among_those_from_elsewhere_however_it_is_named(tmp_path: Path) -> None:
    for name in ("opus", "../opus", "/../opus", "./opus"):
        assert run_named(tmp_path, f"hf:{name}") == Run(tmp_path, "hf/opus")


@pytest.mark.parametrize("name", KINDS)
def test_it_gives_the_probabilities_that_transformers_gives(
    name: str, checkpoints: Path, command: Callable[..., int], tmp_path: Path
) -> None:
    folder = checkpoints / name
    if name == "bpe":
        shutil.copytree(folder, tmp_path / "old")
        folder = tmp_path / "old"
        (folder / "model.safetensors").unlink()
    assert command("prepare", f"pretrained=hf:{folder}") == 0
    model, tokenizers = imported(tmp_path / "outputs", folder).load_model(torch.device("cpu"))
    theirs = MarianMTModel.from_pretrained(checkpoints / name).eval()
    names = json.loads((folder / "vocab.json").read_text())
    pad, end = names["<pad>"], names["</s>"]
    sources, targets = [*english()[:40], "A ½ 漢字 dog …", "x"], [*german()[:40], "Ein ² 猫", "y"]
    ids = [tokenizer.encode(side) for tokenizer, side in zip(tokenizers, (sources, targets), strict=True)]
    rows = [
        [[names[piece] for piece in tokenizer.pieces(row)] for row in side]
        for tokenizer, side in zip(tokenizers, ids, strict=True)
    ]
    if name == "opus":  # with all pieces the ids are MarianTokenizer's too
        encoded = MarianTokenizer.from_pretrained(folder)(sources, text_target=targets)
        assert [[*row, end] for row in rows[0]] == encoded["input_ids"]
        assert [[*row, end] for row in rows[1]] == encoded["labels"]
    ours = log_probabilities(model, [[*row, EOS] for row in ids[0]], ids[1])
    for source, target, probability in zip(*rows, ours, strict=True):
        with torch.no_grad():
            logits = theirs(
                input_ids=torch.tensor([[*source, end]]), decoder_input_ids=torch.tensor([[pad, *target]])
            ).logits[0]
        expected = logits.log_softmax(-1).gather(1, torch.tensor([*target, end])[:, None]).sum().item()
        assert probability / (len(target) + 1) == pytest.approx(expected / (len(target) + 1), abs=1e-4)


def test_it_translates_as_a_run_and_what_it_says_is_what_transformers_generates(
    checkpoints: Path, command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = checkpoints / "opus"
    assert command("prepare", f"pretrained=hf:{folder}") == 0
    run = imported(tmp_path / "outputs", folder)
    capsys.readouterr()
    limit = ["decoding.max_length_ratio=0", "decoding.max_length_offset=20"]
    lines = write_lines(tmp_path / "lines.txt", english()[:6])
    asked = [f"run={run.name}", f"output_folder={run.root}", "device=cpu", *limit, f"input={lines}"]
    assert endeavour("translate", *asked) == 0
    printed = capsys.readouterr().out.splitlines()
    asked = [f"run={run.name}", f"output_folder={run.root}", f"data_folder={tmp_path / 'data'}", "device=cpu"]
    assert endeavour("evaluate", *asked) == 2
    assert "came without data" in capsys.readouterr().err
    assert endeavour("export", *asked[:3]) == 2
    assert "came without data" in capsys.readouterr().err
    # No name is taken by the corpus of the run that imported it.
    references = write_lines(tmp_path / "references.txt", english()[:6])
    other = ["evaluation.splits=[]", f"+evaluation.files.test=[{lines},{references}]"]
    for decoding in ("greedy", "beam"):
        assert endeavour("evaluate", *asked, *other, f"decoding={decoding}") == 0
    capsys.readouterr()
    assert endeavour("compare", f"runs={run.name} {run.name}/evaluation/test-beam", *asked[1:3]) == 0
    assert "came without training text" in capsys.readouterr().out
    tokenizer = MarianTokenizer.from_pretrained(folder)
    model = MarianMTModel.from_pretrained(folder).eval()
    for line, ours in zip(english()[:6], printed, strict=True):
        output = model.generate(
            **tokenizer(line, return_tensors="pt"),
            num_beams=1,
            max_length=22,
            suppress_tokens=[tokenizer.pad_token_id],
        )
        theirs = tokenizer.decode(output[0], skip_special_tokens=True, use_source_tokenizer=False)
        assert " ".join(ours.split())[:30] == " ".join(theirs.split())[:30]


def test_a_run_begins_with_it_and_another_learns_from_it(
    checkpoints: Path, command: Callable[..., int], tmp_path: Path
) -> None:
    folder = checkpoints / "opus"
    begins = ["name=tuned", f"pretrained=hf:{folder}", "model.dropout=0.3", "training.max_updates=2"]
    assert command("train", *begins) == 0
    outputs = tmp_path / "outputs"
    summary = json.loads((outputs / "tuned" / "summary.json").read_text())
    assert summary["pretrained_digest"] == imported(outputs, folder).weights_digest
    tuned = Run(outputs, "tuned")
    assert (tuned.config.model.width, tuned.config.model.activation, tuned.config.model.dropout) == (
        32,
        "silu",
        0.3,
    )
    assert command("train", *begins) == 0  # it is finished, and found to be the same run
    weights = [
        load_file(run.model_folder / "weights.safetensors") for run in (tuned, imported(outputs, folder))
    ]
    assert any(not torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    assert endeavour("export", "run=tuned", "quantization=float32", *places(tmp_path)) == 0
    assert endeavour("export", "run=tuned", "format=huggingface", *places(tmp_path)) == 2
    assert command("train", "name=pupil", f"teachers=hf:{folder}", "training.max_updates=2") == 0
    (lines,) = (outputs / "pupil" / "teacher_data").glob("*de.txt")
    assert len(set(lines.read_text("utf-8").splitlines())) > 10


@pytest.mark.parametrize(
    ("file", "alter", "message"),
    [
        ("config.json", lambda text: text.replace('"swish"', '"gelu_new"'), "activation_function=gelu_new"),
        ("vocab.json", lambda text: text.replace('"\\u2581the"', '">>deu<<"'), "several languages"),
        ("vocab.json", lambda text: text.replace('"<unk>"', '"<other>"'), "vocab.json"),
        ("config.json", lambda text: "[]", "config.json: not readable (not a JSON object"),
        ("tokenizer_config.json", lambda text: f"[{text}]", "tokenizer_config.json: not readable"),
        ("config.json", lambda text: text.replace('"d_model"', '"d_other"'), "d_model"),
        ("config.json", lambda text: text.replace('_ffn_dim": 48', '_ffn_dim": 40'), "size mismatch"),
        (
            "config.json",
            lambda text: text.replace('"encoder_layers": 2', '"encoder_layers": 1'),
            "model.encoder.layers.1.",
        ),
        ("vocab.json", lambda text: json.dumps(json.loads(text) | {"new": text.count('": ')}), "belong"),
        ("vocab.json", lambda text: "null", "belong"),
        ("vocab.json", lambda text: text.replace('"<unk>": ', '"<unk>": null, "": '), "belong"),
        ("config.json", lambda text: text.replace('"swish"', '["swish"]'), "belong"),
        ("config.json", None, "config.json"),
        ("config.json", lambda text: text[:-9], "config.json"),
        ("config.json", lambda text: re.sub(r'("pad_token_id": )\d+', r"\g<1>7", text), "other ids"),
        ("vocab.json", None, "vocab.json"),
        ("vocab.json", lambda text: text[:-9], "vocab.json"),
        ("source.spm", None, "source.spm"),
        ("model.safetensors", None, "model.safetensors"),
    ],
)
def test_what_it_cannot_be_is_refused_and_nothing_is_left(
    file: str,
    alter: Callable[[str], str] | None,
    message: str,
    checkpoints: Path,
    command: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = shutil.copytree(checkpoints / "opus", tmp_path / "opus")
    path = folder / file
    if alter is None:
        path.unlink()
    else:
        before = path.read_text("utf-8")
        path.write_text(alter(before), "utf-8")
        assert path.read_text("utf-8") != before
    for key in ("pretrained", "teachers"):
        assert command("train", f"{key}=hf:{folder}") == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "outputs" / "hf").exists()


@pytest.mark.parametrize("name", ["", ".", "..", "a/..", "/"])
@pytest.mark.parametrize("key", ["pretrained", "teachers"])
def test_a_name_of_no_checkpoint_is_refused(key: str, name: str) -> None:
    with pytest.raises(UserError, match=f"{key}=hf:{re.escape(name)}: "):
        run_config([f"{key}=hf:{name}"])


@pytest.mark.parametrize("file", ["model.safetensors", "pytorch_model.bin"])
def test_weights_that_are_cut_short_or_would_run_code_are_refused(
    file: str,
    checkpoints: Path,
    command: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = shutil.copytree(checkpoints / "bpe", tmp_path / "bpe")
    if file == "model.safetensors":
        (folder / file).write_bytes((folder / file).read_bytes()[:-9])
    else:
        (folder / "model.safetensors").unlink()
        torch.save({"weight": partial(print, "code")}, folder / file)
    assert command("train", f"pretrained=hf:{folder}") == 2
    out, said = capsys.readouterr()
    assert "pytorch_model.bin can be read" in said
    assert "code" not in out
    assert not list((tmp_path / "outputs").rglob("config.yaml"))


def test_one_of_the_other_direction_can_teach_but_not_be_begun_with(
    checkpoints: Path, command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(checkpoints / "opus", tmp_path / "opus")
    path = folder / "tokenizer_config.json"
    path.write_text(path.read_text("utf-8").replace('"de"', '"en"').replace('"en"', '"de"', 1), "utf-8")
    assert command("train", f"pretrained=hf:{folder}") == 2
    assert "translates de-en, not direction=en-de" in capsys.readouterr().err
    assert not list((tmp_path / "outputs").rglob("config.yaml"))
    assert command("train", "name=pupil", f"teachers=hf:{folder}", "training.max_updates=2") == 0
    assert imported(tmp_path / "outputs", folder).config.direction == "de-en"
    (sources,) = (tmp_path / "outputs" / "pupil" / "teacher_data").glob("*en.txt")
    assert len(set(sources.read_text("utf-8").splitlines())) > 10


def test_it_does_not_replace_another_that_lies_in_its_folder(
    checkpoints: Path, command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outer = shutil.copytree(checkpoints / "opus", tmp_path / "opus")
    inner = shutil.copytree(checkpoints / "opus", outer / "checkpoint-5")
    assert command("prepare", f"pretrained=hf:{inner}") == 0
    assert command("prepare", f"pretrained=hf:{outer}") == 2
    assert "checkpoint-5" in capsys.readouterr().err
    assert imported(tmp_path / "outputs", inner).is_trained


def test_what_the_command_says_that_named_it_first_is_neither_its_vocabulary_nor_how_it_teaches(
    checkpoints: Path, command: Callable[..., int], tmp_path: Path
) -> None:
    name = f"hf:{checkpoints / 'opus'}"
    assert (
        command("prepare", f"pretrained={name}", "tokenizer.lowercase=true", "tokenizer.placeholders=4") == 0
    )
    run = imported(tmp_path / "outputs", checkpoints / "opus")
    assert (run.config.tokenizer.lowercase, run.config.tokenizer.placeholders) == (False, 0)
    config = run_config([f"output_folder={tmp_path / 'outputs'}", f"teachers={name}", "decoding=mbr"])
    assert Teachers(config).decoding_of(name) == config.decoding != run.config.decoding


def test_other_files_than_those_that_were_imported_are_refused(
    checkpoints: Path, command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(checkpoints / "opus", tmp_path / "opus")
    assert command("prepare", f"pretrained=hf:{folder}") == 0
    run = imported(tmp_path / "outputs", folder)
    before = run.weights_digest
    weights = load_file(folder / "model.safetensors")
    weights["final_logits_bias"] += 1
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    for key in ("pretrained", "teachers"):
        assert command("train", f"{key}=hf:{folder}") == 2
        complaint = capsys.readouterr().err
        assert "model.safetensors changed" in complaint
        assert f"delete {run.folder}" in complaint
    assert run.weights_digest == before
    shutil.rmtree(run.folder)
    assert command("prepare", f"pretrained=hf:{folder}") == 0
    assert run.weights_digest != before
    shutil.rmtree(folder)
    assert command("prepare", f"pretrained=hf:{folder}") == 0  # the run is all that is left, and enough


def test_one_that_is_damaged_or_lost_is_imported_again_as_is_said(
    checkpoints: Path, command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = f"pretrained=hf:{checkpoints / 'opus'}"
    assert command("prepare", named) == 0
    run = imported(tmp_path / "outputs", checkpoints / "opus")
    before = run.weights_digest
    again = f"delete {run}, and the next training that names {named.partition('=')[2]} imports it again"
    asked = ["translate", f"output_folder={run.root}", f"run={run.name}", "text=a", "device=cpu"]
    (run.model_folder / "weights.safetensors").unlink()
    for command_again in (lambda: command("prepare", named), lambda: endeavour(*asked)):
        assert command_again() == 2
        assert again in capsys.readouterr().err
    shutil.rmtree(run.model_folder)
    assert endeavour(*asked) == 2
    assert again in capsys.readouterr().err
    shutil.rmtree(run.folder)
    assert command("prepare", named) == 0
    assert run.weights_digest == before
    assert endeavour(*asked) == 0


def test_it_is_downloaded_by_its_name(
    checkpoints: Path,
    command: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Hub(SimpleHTTPRequestHandler):
        """The files of someone/opus, at one commit."""

        def translate_path(self, path: str) -> str:
            return str(checkpoints / "opus" / path.removeprefix("/someone/opus/resolve/main/"))

        def end_headers(self) -> None:
            self.send_header("X-Repo-Commit", "0123456789" * 4)
            self.send_header("ETag", f'"{abs(hash(self.path)):040x}"')
            super().end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    with LocalServer(partial(Hub, directory=str(checkpoints))) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        assert command("prepare", "pretrained=hf:someone/opus") == 0
        assert command("prepare", "pretrained=hf:someone/none") == 2
    assert "hf:someone/none is neither a folder nor" in capsys.readouterr().err
    assert Run(tmp_path / "outputs", "hf/someone/opus").is_trained
    assert command("prepare", "pretrained=hf:someone/opus") == 0  # once there, it needs no hub
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    shutil.rmtree(tmp_path / "outputs")  # the server is gone, the cache is not
    assert command("prepare", "pretrained=hf:someone/opus") == 0
    assert command("prepare", "pretrained=hf:someone/other") == 2
    assert "refused" in capsys.readouterr().err
    assert not waits
    (cached,) = (tmp_path / "cache").rglob("snapshots/*/vocab.json")
    cached.write_text(cached.read_text("utf-8") + " ", "utf-8")
    assert command("prepare", "pretrained=hf:someone/opus") == 2
    assert "vocab.json changed" in capsys.readouterr().err
