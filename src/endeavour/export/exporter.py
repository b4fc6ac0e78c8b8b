"""One exported folder: the model, its vocabularies, a description, a README, and the proof that it is the same model.

Knows a model and validation lines; not runs, and not where the folder will lie.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from endeavour.data.normalization import normalize
from endeavour.data.tokenizer import Tokenizers
from endeavour.decoding.beam_search import length_limit
from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.ctranslate2 import DESCRIPTION
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.errors import UserError
from endeavour.export.ctranslate2 import positions_of
from endeavour.export.formats import FORMATS, Format, FormatName
from endeavour.export.parity import TOLERANCE, Parity, measure_parity
from endeavour.model.transformer import Transformer
from endeavour.special import EOS, PAD
from endeavour.storage import write_json

PARITY_SENTENCES = 500  # of the validation split


@dataclass(frozen=True, kw_only=True)
class Exporter:
    """What is exported, and how.

    Attributes:
        run: its name, for the README.
        quantization: of a format that has a choice; the others are always float32.
        sources, references: untouched validation lines, on which the export is compared with the model.
    """

    run: str
    format: FormatName
    quantization: str
    model: Transformer
    tokenizers: Tokenizers
    decoding: DecodingConfig
    weights_digest: str
    sources: Sequence[str]
    references: Sequence[str]

    @property
    def kind(self) -> Format:
        return FORMATS[self.format]

    @property
    def written_quantization(self) -> str:
        return self.quantization if self.kind.quantizes else "float32"

    @property
    def is_exact(self) -> bool:
        """Whether the export computes what the model does, except for rounding."""
        return self.written_quantization == "float32"

    def write(self, folder: Path) -> Parity:
        """Writes everything into the still empty folder.

        Raises:
            UserError: the exported model is broken, or of a float format and not the same.
        """
        self.kind.write(folder, self.model, self.tokenizers, self.decoding, self.written_quantization)
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
            "quantization": self.written_quantization,
            "weights_sha256": self.weights_digest,
            "positions": positions_of(self.model),
            "versions": {name: version(name) for name in ("endeavour", "torch", self.kind.package)},
        }

    def _require_same(self, parity: Parity) -> None:
        package = self.kind.package
        remedy = f"another release of {package} than {version(package)} may help"
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
            self.kind.open(folder, settings),
            sources=sources,
            targets=targets,
            references=references,
            decode=self.tokenizers[1].decode,
            limits=limits,
            alpha=settings.length_penalty,
            excluded=self.kind.excluded,
        )

    def _sentences(self, positions: int) -> tuple[list[list[int]], list[list[int]], list[str]]:
        """Of the validation lines: source ids with EOS, target ids, and the untouched references.

        Empty lines are left out, and those that with EOS or BOS need more than `positions`.
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
        return self.kind.readme.format(**values, **self.kind.readme_values(folder, description["positions"]))
