"""One exported folder: the model, its vocabularies, a description, a README, and the proof that it is the same model.

Knows a model and validation lines; not runs, and not where the folder will lie.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from endeavour.data.normalization import normalize
from endeavour.data.tokenizer import Tokenizers
from endeavour.decoding.beam_search import length_limit
from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.ctranslate2 import DESCRIPTION, CTranslate2Engine
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.errors import UserError
from endeavour.export.ctranslate2 import positions_of, write_ctranslate2
from endeavour.export.huggingface import HuggingFaceEngine, write_huggingface
from endeavour.export.parity import TOLERANCE, Parity, measure_parity
from endeavour.export.readme import CTRANSLATE2, HUGGINGFACE, MAX_LENGTH
from endeavour.model.transformer import Transformer
from endeavour.special import BOS, EOS, PAD
from endeavour.storage import write_json

PARITY_SENTENCES = 500  # of the validation split


@dataclass(frozen=True, kw_only=True)
class Exporter:
    """What is exported, and how.

    Attributes:
        run: its name, for the README.
        format: ctranslate2 or huggingface.
        quantization: of ctranslate2; Hugging Face's is always float32.
        sources, references: untouched validation lines, on which the export is compared with the model.
    """

    run: str
    format: str
    quantization: str
    model: Transformer
    tokenizers: Tokenizers
    decoding: DecodingConfig
    weights_digest: str
    sources: Sequence[str]
    references: Sequence[str]

    @property
    def package(self) -> str:
        """That which reads the export."""
        return "ctranslate2" if self.format == "ctranslate2" else "transformers"

    @property
    def is_exact(self) -> bool:
        """Whether the export computes what the model does, except for rounding."""
        return self.format == "huggingface" or self.quantization == "float32"

    def fill(self, folder: Path) -> Parity:
        """Writes everything into the still empty folder.

        Raises:
            UserError: the exported model is broken, or of a float format and not the same.
        """
        if self.format == "ctranslate2":
            pieces = [tokenizer.pieces(range(tokenizer.vocabulary_size)) for tokenizer in self.tokenizers]
            write_ctranslate2(folder, self.model, (pieces[0], pieces[1]), quantization=self.quantization)
        else:
            write_huggingface(folder, self.model, self.decoding)
        for side, tokenizer in zip(("source", "target"), self.tokenizers, strict=True):
            tokenizer.save(folder / f"{side}.model")
        description = self._description()
        write_json(folder / DESCRIPTION, description)
        parity = self._parity(folder)
        (folder / "README.md").write_text(self._readme(folder, description), "utf-8")
        self._require_same(parity)
        record = asdict(parity) | {
            "split": "validation",
            "bleu_difference": parity.bleu_difference,
            "tolerance": TOLERANCE if self.is_exact else None,
            "decoding": asdict(self.decoding),
        }
        write_json(folder / "parity.json", record)
        return parity

    def _description(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "format": self.format,
            "quantization": self.quantization if self.format == "ctranslate2" else "float32",
            "weights_sha256": self.weights_digest,
            "positions": positions_of(self.model),
            "versions": {name: version(name) for name in ("endeavour", "torch", self.package)},
        }

    def _require_same(self, parity: Parity) -> None:
        remedy = f"another release of {self.package} than {version(self.package)} may help"
        if not math.isfinite(parity.largest_difference):
            raise UserError(
                "the probabilities of the exported model are not numbers (NaN or infinite); nothing was written\n"
                f"another quantization=… may help, or {remedy}"
            )
        if self.is_exact and not parity.same_model:
            raise UserError(
                "the exported model is not the same: log-probabilities differ by up to "
                f"{parity.largest_difference:.2g} nats a token (tolerance {TOLERANCE}); nothing was written\n{remedy}"
            )

    def _parity(self, folder: Path) -> Parity:
        settings, positions = self.decoding, positions_of(self.model)
        sources, targets, references = self._sentences(positions)
        limits = [
            length_limit(
                len(source) - 1,
                ratio=settings.max_length_ratio,
                offset=settings.max_length_offset,
                positions=positions,
            )
            for source in sources
        ]
        return measure_parity(
            self.model,
            PyTorchEngine(self.model, settings),
            open_exported(folder, self.format, settings),
            sources=sources,
            targets=targets,
            references=references,
            decode=self.tokenizers[1].decode,
            limits=limits,
            alpha=settings.length_penalty,
            # CTranslate2 excludes them before its softmax.
            excluded=(PAD, BOS) if self.format == "ctranslate2" else (),
        )

    def _sentences(self, positions: int) -> tuple[list[list[int]], list[list[int]], list[str]]:
        """Of the validation lines: source ids with EOS, target ids, and the untouched references.

        Empty lines are left out, and those that with EOS or BOS need more than so many positions.
        """
        sources, targets = (
            tokenizer.encode(lines)
            for tokenizer, lines in zip(self.tokenizers, (self.sources, self.references), strict=True)
        )
        rows = [
            row
            for row, pair in enumerate(zip(sources, targets, strict=True))
            if all(0 < len(ids) < positions for ids in pair)
        ][:PARITY_SENTENCES]
        if not rows:
            raise UserError(
                f"no validation sentence has between 1 and {positions - 2} tokens on either side, so the export "
                "cannot be checked"
            )
        return (
            [[*sources[row], EOS] for row in rows],
            [targets[row] for row in rows],
            [self.references[row] for row in rows],
        )

    def _readme(self, folder: Path, description: dict[str, Any]) -> str:
        """With the first validation sentence in the sample."""
        first = normalize(next(line for line in self.sources if normalize(line)))
        values = {
            "run": self.run,
            "quantization": description["quantization"],
            "positions": description["positions"],
            "beam_size": self.decoding.beam_size,
            "length_penalty": self.decoding.length_penalty,
            "sentence": first.replace("\\", "\\\\").replace('"', '\\"'),
            "pad": PAD,
        }
        if self.format == "ctranslate2":
            return CTRANSLATE2.format(**values, max_length=min(MAX_LENGTH, description["positions"]))
        architecture = json.loads((folder / "config.json").read_text("utf-8"))["architectures"][0]
        max_length = json.loads((folder / "generation_config.json").read_text("utf-8"))["max_length"]
        return HUGGINGFACE.format(**values, architecture=architecture, max_length=max_length)


def open_exported(
    folder: Path, format: str, decoding: DecodingConfig
) -> CTranslate2Engine | HuggingFaceEngine:
    """An engine over an exported folder, for the comparison."""
    if format == "ctranslate2":
        return CTranslate2Engine(folder, decoding, workers=torch.get_num_threads())
    return HuggingFaceEngine(folder, decoding)
