"""A model as a package of Argos Translate, which LibreTranslate serves: one zip, installed by being unpacked.

It holds metadata.json, README.md, sentencepiece.model and, in model/, CTranslate2's files, as the docstring of
`argostranslate.package.IPackage` describes it. Argos splits a text into sentences with a model of its own (MiniSBD, one
a language, downloaded when it is first needed), splits these with sentencepiece.model, translates the pieces, and joins
what comes out with the same sentencepiece.model. Knows model, pieces and lines; not Argos itself.
"""

import json
import shutil
import tempfile
import zipfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import sentencepiece

from endeavour.data.tokenizer import Tokenizers
from endeavour.directions import NAMES, Languages
from endeavour.errors import UserError
from endeavour.export.ctranslate2 import write_ctranslate2
from endeavour.model.transformer import Transformer

PACKAGE_VERSION = "1.0"
INSTALLED = "endeavour"  # so begins the folder that it is unpacked to: none that another package has
ARGOS_VERSION = "1.11.0"  # that it is tested with; Argos itself does not read it
LONGEST_INPUT = 1024  # tokens of a sentence, after which CTranslate2, as Argos calls it, cuts it
CONSTANT_DATE = (1980, 1, 1, 0, 0, 0)  # the same model gives the same bytes


def package_name(languages: Languages) -> str:
    """As Argos calls it in its index, without the ending."""
    return f"translate-{'_'.join(languages)}"


def write_argos(
    folder: Path,
    model: Transformer,
    tokenizers: Tokenizers,
    *,
    languages: Languages,
    readme: str,
    quantization: str,
) -> None:
    """Writes `translate-en_de.argosmodel` into an existing folder."""
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        content = Path(temporary)
        (content / "model").mkdir()
        source, target = (tokenizer.all_pieces() for tokenizer in tokenizers)
        write_ctranslate2(content / "model", model, (source, target), quantization=quantization)
        tokenizers[0].save(content / "sentencepiece.model")
        (content / "README.md").write_text(readme, "utf-8")
        (content / "metadata.json").write_text(json.dumps(_metadata(languages), indent=1), "utf-8")
        with zipfile.ZipFile(folder / f"{package_name(languages)}.argosmodel", "w") as package:
            for path in sorted(path for path in content.rglob("*") if path.is_file()):
                inside = f"{INSTALLED}-{'_'.join(languages)}/{path.relative_to(content).as_posix()}"
                entry = zipfile.ZipInfo(inside, CONSTANT_DATE)
                entry.external_attr = 0o644 << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                with path.open("rb") as file, package.open(entry, "w") as written:
                    shutil.copyfileobj(file, written)


def require_same_text(tokenizers: Tokenizers, references: Sequence[str]) -> None:
    """Raises `UserError` where Argos would join the pieces of one of these lines to something else than we do."""
    source, target = tokenizers
    joining = sentencepiece.SentencePieceProcessor(model_proto=source.serialized)
    for ids in target.encode(references):
        (ours,) = target.decode([ids])
        theirs = joined(joining, target.pieces(ids))
        if theirs != ours.replace("_", " ").removeprefix(" "):
            raise UserError(
                f"format=argos would write {theirs!r} for {ours!r}: a package has one SentencePiece model for both "
                "languages\ntrain with tokenizer.joint=true, or use format=ctranslate2"
            )


def joined(source: sentencepiece.SentencePieceProcessor, pieces: list[str]) -> str:
    """What Argos makes of the pieces of a sentence: its `SentencePieceTokenizer.decode`, and what follows that."""
    return source.decode_pieces(pieces).replace("\u2581", " ").replace("_", " ").removeprefix(" ")


@contextmanager
def unpacked(folder: Path) -> Generator[Path]:
    """The content of the only package in `folder`, as long as the block lasts."""
    (package,) = folder.glob("*.argosmodel")
    with tempfile.TemporaryDirectory() as temporary, zipfile.ZipFile(package) as content:
        content.extractall(temporary)
        (installed,) = Path(temporary).iterdir()
        yield installed


def _metadata(languages: Languages) -> dict[str, object]:
    source, target = languages
    return {
        "package_version": PACKAGE_VERSION,
        "argos_version": ARGOS_VERSION,
        "from_code": source,
        "from_name": NAMES[source],
        "to_code": target,
        "to_name": NAMES[target],
    }
