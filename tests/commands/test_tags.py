"""Runs of a corpus in parts: trained, told how often each part is seen, and with the tag in whatever reads a source."""

import re
from collections import Counter
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import pytest
import torch

import endeavour
from commands import endeavour as command
from commands import places
from configs import QUICK, TINY, run_config
from endeavour.data.dataset import ParallelDataset
from endeavour.data.prepared import PreparedData
from endeavour.decoding import alignment
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.decoding.translator import Translator
from endeavour.errors import UserError
from endeavour.model.transformer import AttentionMaps
from endeavour.pipeline.seen import what_is_seen
from endeavour.playground.systems import Systems
from endeavour.runs.config import RunConfig, save_config
from endeavour.runs.run import Run
from endeavour.settings import validated
from endeavour.training.updates import updates

SOURCE, TARGET = "the dog sees a tree", "der Hund sieht ein Baum"
MIXTURE = (
    "training.mixture=[{until:10,weights:{general:1}},{until:20,weights:{own:1}},"
    "{until:null,weights:{general:1,own:3}}]"
)
UPDATES = 60


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, parallel_files: list[str]) -> list[str]:
    """The same pairs in two parts, of which one is small."""
    folder = tmp_path_factory.mktemp("parts")
    (train,) = [one for one in parallel_files if one.startswith("corpus.splits.train=")]
    files = [Path(name) for name in train.partition("=")[2].strip("[]").split(",")]
    for file in files:
        lines = file.read_text("utf-8").splitlines(keepends=True)
        (folder / f"general{file.suffix}").write_text("".join(lines[60:]), "utf-8")
        (folder / f"own{file.suffix}").write_text("".join(lines[:60]), "utf-8")
    parts = [f"+corpus.parts.{name}=[{folder}/{name}.en,{folder}/{name}.de]" for name in ("general", "own")]
    return [*(one for one in parallel_files if one != train), *parts]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory, corpus: list[str]) -> Path:
    """With the run `one`, which translates as its own part."""
    folder = tmp_path_factory.mktemp("tags")
    small = [*QUICK, *TINY, "model.decoder_layers=2", "name=one", "decoding=greedy"]
    tags = ["corpus.tags=true", "corpus.tag=own", MIXTURE]
    assert command("train", *corpus, *small, *places(folder), *tags) == 0
    return folder / "outputs"


def shown(translator: Translator, text: str) -> str:
    """The translation after its log-probability: models that learnt for seconds may write the same of any source."""
    ((best,),) = translator.translate_n_best([text])
    return f"{best.log_probability:.4f}\t{best.text}"


def typed(run: Run, text: str) -> str:
    """What the plain model makes of what is typed."""
    model, tokenizers = run.load_model(torch.device("cpu"))
    decoding = run.config.decoding
    return shown(Translator(PyTorchEngine(model, decoding), tokenizers, decoding=decoding), text)


def test_the_tag_stands_before_every_source(outputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(outputs, "one")
    own, general = typed(run, f"<own> {SOURCE}"), typed(run, f"<general> {SOURCE}")
    assert len({own, general, typed(run, SOURCE)}) == 3, "the tag changes what is probable"

    one = endeavour.load("one", output_folder=outputs, device="cpu")
    assert shown(one.translator(), SOURCE) == own
    other = endeavour.load("one", output_folder=outputs, device="cpu", tag="general")
    assert shown(other.translator(), SOURCE) == general
    assert one.attention(SOURCE, TARGET).source == one.loaded.tokenizers[0].pieces(
        [*one.loaded.tokenizers[0].tag, *one.loaded.tokenizers[0].tagged("").encode([SOURCE])[0], 3]
    )
    system = Systems(run, run.config.decoding, torch.device("cpu"), 1).get("one")
    assert shown(system.translator(1), SOURCE) == own

    places = [f"output_folder={outputs}", "device=cpu", "log_probabilities=true"]
    capsys.readouterr()
    assert command("translate", *places, f"text={SOURCE}") == 0
    assert capsys.readouterr().out == f"{own}\n"
    assert command("translate", *places, f"text={SOURCE}", "decoding.tag=general") == 0
    assert capsys.readouterr().out == f"{general}\n"
    save_config(
        validated(RunConfig, asdict(run.config) | {"decoding": asdict(other._decoding)}),
        run.folder / "config.yaml",
    )
    assert command("score", *places[:2], f"text={SOURCE}", f"translation={TARGET}") == 0
    assert capsys.readouterr().out.split("\t")[0] == f"{other.score(SOURCE, TARGET):.4f}", "as it translates"
    save_config(run.config, run.folder / "config.yaml")
    evaluation = run.folder / "evaluation" / "test-greedy"
    first = (evaluation / "sources.txt").read_text("utf-8").splitlines()[0]
    hypothesis = (evaluation / "hypotheses.txt").read_text("utf-8").splitlines()[0]
    assert hypothesis == typed(run, f"<own> {first}").partition("\t")[2]


def test_words_are_counted_without_the_tag(outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = endeavour.load("one", output_folder=outputs, device="cpu")
    tag = len(run.loaded.tokenizers[0].tag)

    def looks_at_the_tag_and_then_at_the_last_word(
        model: object, source: list[int], target: list[int]
    ) -> AttentionMaps:
        cross = torch.zeros(2, 1, len(target) + 1, len(source))
        cross[..., :tag], cross[..., -2] = 0.6 / tag, 0.4
        return AttentionMaps(cross, cross, cross)

    monkeypatch.setattr(alignment, "attention", looks_at_the_tag_and_then_at_the_last_word)
    assert run.align(SOURCE, TARGET) == [(4, word) for word in range(5)]


def test_each_part_of_a_long_line_has_the_tag(outputs: Path) -> None:
    model, (source, target) = Run(outputs, "one").load_model(torch.device("cpu"))
    decoding = Run(outputs, "one").config.decoding
    engine = PyTorchEngine(model, decoding)
    tagged = source.tagged("<own>")
    longest = len(tagged.tag) + 6
    translator = Translator(engine, (tagged, target), longest=longest, decoding=decoding)
    ((best,),) = translator.translate_n_best([" ".join([SOURCE] * 4)])
    assert len(best.parts) > 2
    assert all(list(part.source[: len(tagged.tag)]) == tagged.tag for part in best.parts)
    assert all(len(part.source) <= longest for part in best.parts)


def test_a_part_without_a_tag_is_refused_by_name(outputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("translate", f"output_folder={outputs}", "text=x", "decoding.tag=other") == 2
    assert "decoding.tag=other" in capsys.readouterr().err
    with pytest.raises(UserError, match=r"decoding\.tag=other"):
        endeavour.load("one", output_folder=outputs, device="cpu", tag="other").translate(SOURCE)


def test_how_often_each_part_is_seen_is_said(outputs: Path, corpus: list[str]) -> None:
    (folder,) = (outputs.parent / "data" / "prepared").glob("files-*")
    data = PreparedData.open(folder)
    settings = run_config([*corpus, "training=smoke", f"training.max_updates={UPDATES}", MIXTURE]).training
    found = re.findall(r"about ([\d.]+) times the \d+ pairs of (\w+)", str(what_is_seen(settings, data)))
    said = {part: times for times, part in found}
    sizes = {part: counts["pairs"] for part, counts in data.parts.items()}
    stream = updates(
        ParallelDataset.open(folder, "train", sizes),
        tokens_per_batch=settings.tokens_per_batch,
        accumulate=1,
        seed=1,
        epoch=0,
        position=0,
        stages=settings.mixture,
    )
    pairs = Counter[str]()
    tags = {tuple(ids): part for part in sizes for ids in [_tag(data, part)]}
    for update in islice(stream, UPDATES):
        for row in update.batches[0].source.tolist():
            pairs[next(part for ids, part in tags.items() if tuple(row[: len(ids)]) == ids)] += 1
    for part, size in sizes.items():
        assert float(said[part]) == pytest.approx(pairs[part] / size, rel=0.2)


def _tag(data: PreparedData, part: str) -> list[int]:
    return data.load_tokenizers()[0].tagged(f"<{part}>").tag


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (["training.mixture=[{until:null,weights:{other:1}}]"], "other"),
        (["training.mixture=[{until:null,weights:{own:0}}]"], "weight"),
        (["training.mixture=[{until:null,weights:{own:-1}}]"], "training.mixture.0.weights.own"),
        (["training.mixture=[]"], "until"),
        (["training.mixture=[{until:4,weights:{own:1}}]"], "until"),
        (["training.mixture=[{until:null,weights:{own:1}},{until:null,weights:{own:1}}]"], "until"),
        (
            [
                "training.mixture=[{until:4,weights:{own:1}},{until:4,weights:{own:1}},{until:null,weights:{own:1}}]"
            ],
            "until",
        ),
        (["teachers=2"], "teachers"),
        (["decoding.tag=own"], "decoding.tag=own"),
        (["corpus.tags=true", "validation_decoding.tag=own"], "validation_decoding.tag"),
    ],
)
def test_what_does_not_go_together_is_refused(corpus: list[str], settings: list[str], named: str) -> None:
    with pytest.raises(UserError) as refusal:
        run_config([*corpus, *settings])
    assert named in str(refusal.value)
    assert str(refusal.value).count("\n") <= 1


def test_a_mixture_needs_parts() -> None:
    with pytest.raises(UserError, match=r"training\.mixture.*corpus\.parts"):
        run_config(["training.mixture=[{until:null,weights:{own:1}}]"])
