"""A prepared folder, as training and evaluation see it: opened, verified, never written.

    prepared.json                      the manifest: settings, inputs, counts
    digests.json                       the SHA-256 of every other file, see `storage`
    source.model, target.model         SentencePiece; equal where the vocabulary is joint
    <split>.{source,target}.ids.npy, <split>.{source,target}.offsets.npy      see `dataset`
    <split>.{source,target}.txt        validation and test only: the untouched lines
    text/<split>/                      normal form, as an Arrow table with the columns source and target; the ids of
                                       train also have altered copies of pairs, each behind its pair
    report.json, report.md             what cleaning changed and dropped

Knows no config and no corpus, only what the manifest says.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from endeavour.data.file_hashes import FileHashes
from endeavour.data.tokenizer import Tokenizers, load_tokenizers, with_tag
from endeavour.errors import UserError
from endeavour.storage import json_digest, read_digests, read_json_object, read_lines, verify

MANIFEST = "prepared.json"
HASHES = ".hashes.json"  # beside the prepared folders, of their files and those of the corpora


@dataclass(frozen=True)
class PreparedData:
    """A prepared folder, its manifest, and the SHA-256 of each of its files."""

    folder: Path
    manifest: dict[str, Any]
    digests: dict[str, str]

    @classmethod
    def open(cls, folder: Path) -> "PreparedData":
        """Reads the manifest; `verify` reads everything. Raises `UserError` where the folder is not complete."""
        try:
            manifest = read_json_object(folder / MANIFEST)
            digests = read_digests(folder)
        except (OSError, ValueError, UserError) as error:
            raise UserError(f"{folder}: no complete prepared data ({error}); {_remedy(folder)}") from error
        return cls(folder, manifest, digests)

    def verify(self) -> None:
        """Raises `UserError` for a file that is not what was written.

        Takes about a second for a gigabyte, once; later only what has another size or times of change is read.
        """
        hashes = FileHashes(self.folder.parent / HASHES)
        verify(self.folder, _remedy(self.folder), digest_of=hashes.of)
        hashes.save()

    @property
    def content_digest(self) -> str:
        """SHA-256, in hexadecimal, of all that training and evaluation read: ids, references, tokenizers, parts."""
        endings = (".npy", ".txt", ".model")
        read = {name: digest for name, digest in self.digests.items() if name.endswith(endings)}
        read |= {f"part {name}": str(counts["pairs"]) for name, counts in self.parts.items()}
        return json_digest(read)

    @property
    def splits(self) -> dict[str, dict[str, int]]:
        """Split → its pairs and tokens, see `ParallelDataset.counts`."""
        return self.manifest["splits"]

    @property
    def parts(self) -> dict[str, dict[str, int]]:
        """Part of the training split → the same counts, in the order of its rows; empty where it has no parts."""
        return self.manifest.get("parts", {})

    @property
    def report(self) -> dict[str, Any]:
        """What cleaning changed and dropped: `read` and `kept` pairs of the training split, and each step's."""
        return read_json_object(self.folder / "report.json")

    @property
    def training_text(self) -> Path | None:
        """The folder of the training pairs in normal form, see `tables`; None where it was deleted."""
        folder = self.folder / "text" / "train"
        return folder if folder.is_dir() else None

    def load_tokenizers(self) -> Tokenizers:
        """Those of validation and test, whose sources may have a tag."""
        return with_tag(load_tokenizers(self.folder), self.manifest.get("tag"))

    def lines(self, split: str, side: str) -> list[str]:
        """The untouched lines of a validation or test split; side is "source" or "target"."""
        return read_lines(self.folder / f"{split}.{side}.txt")


def find_prepared(folder: Path, digest: str) -> PreparedData | None:
    """What is prepared below the data root `folder` and has this `content_digest`."""
    for path in sorted(folder.glob(f"prepared/[!.]*/{MANIFEST}")):
        with suppress(UserError):  # a damaged folder is passed over
            data = PreparedData.open(path.parent)
            if data.content_digest == digest:
                return data
    return None


def _remedy(folder: Path) -> str:
    return f"delete {folder} and run `endeavour prepare` again"
