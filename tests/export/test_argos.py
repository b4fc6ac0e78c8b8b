"""A package for Argos Translate: what is in it, and that it translates as the model does."""

import json
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from textbook_vocabularies import english, german, trained

from endeavour.data.tokenizer import Tokenizer, Tokenizers
from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.errors import UserError
from endeavour.export.argos import joined, require_same_text, unpacked, write_argos
from endeavour.model.transformer import Transformer
from endeavour.special import EOS


@cache
def vocabularies() -> Tokenizers:
    return trained(english(), "bpe", 500), trained(german(), "bpe", 510)


@pytest.fixture
def two_vocabularies(random_model: Any) -> Transformer:
    return random_model(vocabularies=(500, 510), tie="decoder")


def package(folder: Path, model: Transformer) -> Path:
    write_argos(
        folder, model, vocabularies(), languages=("en", "de"), readme="# A package\n", quantization="float32"
    )
    (written,) = folder.iterdir()
    return written


def test_it_holds_what_argos_reads_in_one_folder_and_is_the_same_twice(
    two_vocabularies: Transformer, tmp_path: Path
) -> None:
    (tmp_path / "again").mkdir()
    again = package(tmp_path / "again", two_vocabularies).read_bytes()
    (tmp_path / "once").mkdir()
    path = package(tmp_path / "once", two_vocabularies)
    assert path.name == "translate-en_de.argosmodel"
    assert path.read_bytes() == again
    with zipfile.ZipFile(path) as content:
        assert {name.split("/")[0] for name in content.namelist()} == {"endeavour-en_de"}
    with unpacked(path.parent) as folder:
        metadata = json.loads((folder / "metadata.json").read_text("utf-8"))
        assert (metadata["from_code"], metadata["from_name"]) == ("en", "English")
        assert (metadata["to_code"], metadata["to_name"]) == ("de", "German")
        assert metadata["package_version"]
        assert metadata["argos_version"]
        assert (folder / "README.md").read_text("utf-8") == "# A package\n"
        assert (folder / "sentencepiece.model").read_bytes() == vocabularies()[0].serialized


def test_its_files_translate_as_the_model_does(
    two_vocabularies: Transformer, decoding: DecodingConfig, tmp_path: Path
) -> None:
    path = package(tmp_path, two_vocabularies)
    with unpacked(path.parent) as folder:
        source = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
        translator = ctranslate2.Translator(str(folder / "model"), intra_threads=1)
    sentences = english()[:8]
    found = translator.translate_batch(
        source.encode(sentences, out_type=str), beam_size=1, max_decoding_length=12
    )
    settings = {**vars(decoding), "beam_size": 1, "num_hypotheses": 1, "max_length_offset": 12}
    engine = PyTorchEngine(two_vocabularies, DecodingConfig(**settings))
    ours = engine.search([[*ids, EOS] for ids in vocabularies()[0].encode(sentences)])
    for theirs, hypotheses in zip(found, ours, strict=True):
        expected = vocabularies()[1].pieces(hypotheses[0].ids)
        assert theirs.hypotheses[0][:12] == expected[:12]


def test_one_model_joins_the_pieces_of_both_languages() -> None:
    ours, theirs = vocabularies()
    source = sentencepiece.SentencePieceProcessor(model_proto=ours.serialized)
    odd = ["Ölüberschuß – 猫 🙂", "a_b _c", "_a b", "x", "", "<s> ▁"]
    for ids in theirs.encode([*german()[:200], *odd]):
        assert joined(source, theirs.pieces(ids)) == theirs.decode([ids])[0].replace("_", " ").removeprefix(
            " "
        )
    require_same_text((ours, theirs), [*german()[:200], *odd])


def test_a_vocabulary_that_would_swallow_words_is_refused() -> None:
    ours, theirs = vocabularies()
    model = sentencepiece_model_pb2.ModelProto.FromString(ours.serialized)
    piece = theirs.pieces(theirs.encode(german()[:1])[0])[0]
    assert piece not in [known.piece for known in model.pieces]
    model.pieces.add(piece=piece, score=-9999, type=model.SentencePiece.CONTROL)
    with pytest.raises(UserError, match=r"format=argos .*\n.*tokenizer\.joint=true"):
        require_same_text((Tokenizer(model.SerializeToString()), theirs), german()[:1])


def test_argos_installs_it_and_translates(
    two_vocabularies: Transformer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ARGOS_PACKAGES_DIR", str(tmp_path / "packages"))
    monkeypatch.setenv("ARGOS_COMPUTE_TYPE", "float32")
    translate = pytest.importorskip("argostranslate.translate", reason="argostranslate is not installed")
    packages = pytest.importorskip("argostranslate.package")
    (tmp_path / "written").mkdir()
    path = package(tmp_path / "written", two_vocabularies)

    class Sentences:
        """Stands for MiniSBD, whose models are downloaded."""

        def __init__(self, pkg: object) -> None:
            pass

        def split_sentences(self, text: str) -> list[str]:
            return text.split("|")

    monkeypatch.setattr(translate, "MiniSBDSentencizer", Sentences)
    packages.install_from_path(path)
    sentences = english()[:3]
    found = translate.translate("|".join(sentences), "en", "de")
    with unpacked(path.parent) as folder:
        source = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
        translator = ctranslate2.Translator(str(folder / "model"), compute_type="float32", intra_threads=1)
    expected = translator.translate_batch(
        source.encode(sentences, out_type=str), beam_size=4, length_penalty=0.2, replace_unknowns=True
    )
    pieces = [piece for result in expected for piece in result.hypotheses[0]]
    assert found
    assert found == joined(source, pieces)
