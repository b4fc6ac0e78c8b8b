"""What prepared data is made of: the corpus and the settings of cleaning, tokenizers and copies."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from endeavour.data.augmentation import AugmentationConfig
from endeavour.data.cleaning import CleaningConfig
from endeavour.data.corpus import CorpusConfig, ExtraPairs
from endeavour.data.tokenizer import Tokenizers
from endeavour.data.tokenizer_training import TokenizerConfig
from endeavour.directions import Direction

_FORMAT = 6  # to be raised when the same settings are to give other files


@dataclass(frozen=True, kw_only=True)
class DataRecipe:
    """Which data are prepared.

    Args:
        augmentation: of which training pairs altered copies are added; None for no pair.
        tokenizers: for source and target, instead of those that `tokenizer` would train.
        extra_pairs: files of more training pairs, read after the corpus's own.
    """

    corpus: CorpusConfig
    cleaning: CleaningConfig
    tokenizer: TokenizerConfig
    direction: Direction
    augmentation: AugmentationConfig | None = None
    tokenizers: Tokenizers | None = None
    extra_pairs: Sequence[ExtraPairs] = ()

    @property
    def lowercase(self) -> bool:
        """Whether a vocabulary lowercases."""
        if self.tokenizers is None:
            return self.tokenizer.lowercase
        return any(one.lowercase for one in self.tokenizers)

    def as_json(self, inputs: object) -> dict[str, Any]:
        """All that the prepared files depend on; `inputs` are digests of the text."""
        corpus, augmentation = self.corpus, self.augmentation
        recipe: dict[str, Any] = {
            "format": _FORMAT,
            "direction": self.direction,
            "corpus": {"name": corpus.name, "kind": corpus.kind, "inputs": inputs},
            "cleaning": asdict(self.cleaning),
            "tokenizer": asdict(self.tokenizer)
            if self.tokenizers is None
            else {"digests": [one.digest for one in self.tokenizers]},
        }
        if corpus.held_out_rare is not None:
            recipe["held_out_rare"] = corpus.held_out_rare
        if corpus.tags:
            recipe["tag"] = corpus.tag
        if augmentation is not None and augmentation.rates:
            recipe["augmentation"] = {"seed": augmentation.seed, "rates": augmentation.rates}
        if augmentation is not None and augmentation.denoising:
            recipe["denoising"] = {"seed": augmentation.seed, "copies": augmentation.denoising}
        return recipe
