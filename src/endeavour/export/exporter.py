"""One exported folder: the model, its vocabularies, a description, a README, and the proof that it is the same model.

Knows a model and validation lines; not runs, and not where the folder will lie.
"""

import math
import re
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from endeavour.data.normalization import normalize
from endeavour.data.protection import protect_pair
from endeavour.data.tokenizer import encode_pairs, placeholders_of
from endeavour.decoding.config import Quantization
from endeavour.decoding.ctranslate2 import DESCRIPTION
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.errors import UserError
from endeavour.evaluation.subsets import without_capitals
from endeavour.export.ctranslate2 import exported_positions
from endeavour.export.formats import FORMATS, Format, FormatName, Trained, shared_readme_values
from endeavour.export.parity import TOLERANCE, ExportedEngine, Parity, measure_parity
from endeavour.export.readme import PLACEHOLDERS, TAGGED
from endeavour.special import EOS
from endeavour.storage import write_json

PARITY_SENTENCES = 500  # of the validation split


@dataclass(frozen=True, kw_only=True)
class Exporter:
    """What is exported, and how; `quantization` is one that the format has."""

    format: FormatName
    quantization: Quantization
    trained: Trained
    weights_digest: str

    @property
    def kind(self) -> Format:
        return FORMATS[self.format]

    @property
    def is_exact(self) -> bool:
        """Whether the export computes what the model does, except for rounding in float32."""
        return self.quantization == "float32"

    def write(self, folder: Path) -> Parity:
        """Writes everything into the still empty folder.

        Raises:
            UserError: the exported model is broken, or in float32 and not the same, or text is treated otherwise.
        """
        self.kind.write(folder, self.trained, self.quantization)
        write_json(folder / DESCRIPTION, self._description())
        engine = self.kind.open(folder, self.trained.decoding)
        parity = self._parity(engine)
        (folder / "README.md").write_text(self._readme(folder), "utf-8")
        self._require_same(parity)
        record = asdict(parity) | {
            "split": "validation",
            "bleu_difference": parity.bleu_difference,
            "tolerance": TOLERANCE if self.is_exact else None,
            "decoding": asdict(self.trained.decoding),
        }
        write_json(folder / "parity.json", record)
        return parity

    def _description(self) -> dict[str, Any]:
        return {
            "run": self.trained.run,
            "format": self.format,
            "quantization": self.quantization,
            "weights_sha256": self.weights_digest,
            "positions": exported_positions(self.trained.model.config),
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

    def _parity(self, engine: ExportedEngine) -> Parity:
        sources, targets, references = self._sentences()
        target = self.trained.tokenizers[1]
        return measure_parity(
            PyTorchEngine(self.trained.model, self.trained.decoding),
            engine,
            sources=sources,
            targets=targets,
            references=without_capitals(references) if target.lowercase else references,
            decode=target.decode,
            excluded=self.kind.excluded,
        )

    def _sentences(self) -> tuple[list[list[int]], list[list[int]], list[str]]:
        """Of the validation lines: source ids with EOS, target ids, and the references, with the symbols of spans.

        Empty lines are left out, and those that with EOS or BOS need more positions than the export has.
        """
        positions = exported_positions(self.trained.model.config)
        pairs = list(zip(self.trained.sources, self.trained.references, strict=True))
        source, target = self.trained.tokenizers
        # The tag comes before what spans became, and is none itself.
        sources, targets = encode_pairs((source.tagged(self.trained.tag), target), pairs)
        count = placeholders_of(self.trained.tokenizers)
        rows = [
            row
            for row, pair in enumerate(zip(sources, targets, strict=True))
            if all(0 < len(ids) < positions for ids in pair)
        ][:PARITY_SENTENCES]
        if not rows:
            raise UserError(
                f"no validation sentence has between 1 and {positions - 1} tokens on either side, so the export "
                "cannot be checked"
            )
        return (
            [[*sources[row], EOS] for row in rows],
            [targets[row] for row in rows],
            [protect_pair(pairs[row], count)[1] for row in rows],
        )

    def _readme(self, folder: Path) -> str:
        """With the first validation sentence in its sample."""
        first = normalize(next(line for line in self.trained.tagged_sources if normalize(line)))
        values = shared_readme_values(self.trained) | {
            "quantization": self.quantization,
            "sentence": re.sub(r'(["\\])', r"\\\1", first),
        }
        text = self.kind.readme.format(**values, **self.kind.readme_values(folder, self.trained))
        count = placeholders_of(self.trained.tokenizers)
        tag = self.trained.tag
        if tag:
            text += TAGGED.format(tag=tag)
        tagged = f" (the tag `{tag}` comes before what is left then)" if tag else ""
        return text + PLACEHOLDERS.format(count=count, tagged=tagged) if count else text
