"""A prepared folder, as the later stages see it: opened, checked for completeness, never written.

    prepared.json                      the manifest; a folder without it is not finished
    source.model, target.model         SentencePiece; equal where the vocabulary is joint
    <split>.{source,target}.ids.npy, <split>.{source,target}.offsets.npy      see `arrays.RaggedWriter`
    <split>.{source,target}.txt        validation and test only: the untouched lines
    text/<split>/                      normal form, as an Arrow table with the columns source and target
    report.json, report.md             the account of the cleaning

Knows no config and no corpus, only what the manifest says.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from endeavour.data.disk import file_digest
from endeavour.data.tokenizer import Tokenizers, load_tokenizers
from endeavour.errors import UserError

MANIFEST = "prepared.json"
FORMAT = 1
SEAL = "sha256"  # the manifest's own digest, of everything else in it


@dataclass(frozen=True)
class PreparedData:
    """A finished prepared folder and its manifest."""

    folder: Path
    manifest: dict[str, Any]

    @classmethod
    def open(cls, folder: Path) -> "PreparedData":
        """Raises `UserError` where the folder is unfinished, of another format, or lacks a file.

        Looks at the files' sizes; `verify` reads them.
        """
        path = folder / MANIFEST
        try:
            manifest = json.loads(path.read_text("utf-8"))
        except OSError as error:
            raise UserError(
                f"{folder}: no finished prepared data there ({error}); run `endeavour prepare`"
            ) from error
        except ValueError as error:
            raise _altered(path) from error
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise UserError(f"{path}: made by another version of endeavour; run `endeavour prepare` again")
        if manifest.get(SEAL, seal(manifest)) != seal(manifest):
            raise _altered(path)
        for name, entry in manifest["files"].items():
            file = folder / name
            if not file.is_file() or file.stat().st_size != entry["bytes"]:
                raise UserError(
                    f"{file}: missing or cut short; delete {folder} and run `endeavour prepare` again"
                )
        return cls(folder, manifest)

    def verify(self) -> None:
        """Raises `UserError` where a file that training or evaluation reads is not what was written.

        Reads them all: about a second a gigabyte, which is little beside a training on them.
        """
        for name, entry in self.manifest["files"].items():
            if file_digest(self.folder / name) != entry["sha256"]:
                raise _altered(self.folder / name)

    @property
    def content_digest(self) -> str:
        """SHA-256, in hex, of all that training and evaluation read."""
        return hashlib.sha256(json.dumps(self.manifest["files"], sort_keys=True).encode()).hexdigest()

    @property
    def splits(self) -> dict[str, dict[str, int]]:
        """Split → `pairs`, `source_tokens` and `target_tokens` (EOS included)."""
        return self.manifest["splits"]

    @property
    def validation_split(self) -> str:
        return self.manifest["validation_split"]

    @property
    def test_splits(self) -> list[str]:
        return self.manifest["test_splits"]

    def load_tokenizers(self) -> Tokenizers:
        return load_tokenizers(self.folder)

    def lines(self, split: str, side: str) -> list[str]:
        """The untouched lines of a validation or test split; side is "source" or "target"."""
        if split not in (self.validation_split, *self.test_splits):
            choices = ", ".join((self.validation_split, *self.test_splits))
            raise UserError(f"no split {split!r} with references in {self.folder}; choose one of {choices}")
        return (self.folder / f"{split}.{side}.txt").read_bytes().decode().split("\n")[:-1]


def all_prepared(folder: Path) -> Iterator[PreparedData]:
    """What is prepared below the data root `folder`, but for folders that are damaged or of another version."""
    for path in sorted(folder.glob(f"prepared/[!.]*/{MANIFEST}")):
        with suppress(UserError):
            yield PreparedData.open(path.parent)


def find_prepared(folder: Path, digest: str) -> PreparedData | None:
    """What is prepared below the data root `folder` and has this `content_digest`."""
    return next((data for data in all_prepared(folder) if data.content_digest == digest), None)


def seal(manifest: dict[str, Any]) -> str:
    """SHA-256, in hex, of all of a manifest but its seal."""
    content = {key: value for key, value in manifest.items() if key != SEAL}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _altered(file: Path) -> UserError:
    return UserError(
        f"{file}: altered since it was written (SHA-256 differs); "
        f"delete {file.parent} and run `endeavour prepare` again"
    )
