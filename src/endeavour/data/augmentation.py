"""Altered copies of training pairs, added behind each pair that is drawn for one; counted, with examples.

Knows shares, limits and ids; how a copy is altered is told by `perturbations`. Its config also says whether there are
masked sentences in place of the pairs, which `denoising` makes.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from endeavour.data.cleaning import CleaningConfig, HeldOut, LengthCleaner, Step
from endeavour.data.files import Pair
from endeavour.data.normalization import normalize
from endeavour.data.perturbations import (
    GERMAN_ONLY,
    PERTURBATIONS,
    Perturbation,
    draw_for,
    perturbed,
)
from endeavour.data.protection import protect_training_pair
from endeavour.data.tokenizer import Tokenizers, encode_normal_pairs
from endeavour.directions import Language
from endeavour.settings import STRICT, Share

Ids = tuple[list[int], list[int]]  # of source and target


@dataclass(kw_only=True, config=STRICT)
class AugmentationConfig:
    """Of which share of the training pairs a copy is added, by perturbation; conf/augmentation/none.yaml."""

    seed: Annotated[int, Field(ge=0)]
    denoising: Annotated[int, Field(ge=0)]
    upper_case: Share
    title_case: Share
    typos: Share
    no_final_punctuation: Share
    no_umlauts: Share
    placeholders: Share

    @property
    def rates(self) -> dict[Perturbation, float]:
        """Those above zero."""
        return {name: rate for name in PERTURBATIONS if (rate := getattr(self, name)) > 0}

    def require_source(self, language: Language) -> None:
        """Raises `ValueError` for a perturbation that alters no source of this language."""
        if language != "de" and GERMAN_ONLY in self.rates:
            raise ValueError(
                f"augmentation.{GERMAN_ONLY} is for German sources: leave it out, or set direction=de-en"
            )


class Augmenter:
    """Makes the copies of training pairs. Remembers nothing."""

    def __init__(
        self,
        config: AugmentationConfig | None,
        cleaning: CleaningConfig,
        source_language: Language,
        held_out: HeldOut,
    ) -> None:
        self._rates, self._seed = ({}, 0) if config is None else (config.rates, config.seed)
        self._language: Language = source_language
        self._cleaning = cleaning
        self._held_out = held_out

    @property
    def rows_per_pair(self) -> float:
        """A pair and its copies, on average and at most."""
        return 1 + sum(self._rates.values())

    def new_steps(self) -> list[Step]:
        """For each perturbation in use, with nothing counted yet, how many copies were added (`changed`), and how many
        were not (`dropped`) because they are too long, or a sentence of validation or test; with examples.
        """
        return [Step(name) for name in self._rates]

    def with_copies(self, pair: Pair) -> Iterator[Pair]:
        """A pair in normal form and its copies, whether they are added or not."""
        yield pair
        for _, copy in self._copies(pair):
            yield copy

    def encoded_copies(
        self, pairs: Sequence[Pair], tokenizers: Tokenizers
    ) -> tuple[dict[int, list[Ids]], list[Step]]:
        """Place of a pair in normal form → the ids of the copies to be added behind it; and what was counted."""
        added: dict[int, list[Ids]] = {}
        lengths = LengthCleaner(self._cleaning, tag=len(tokenizers[0].tag))
        steps = self.new_steps()
        made = [
            (row, steps[number], copy)
            for row, pair in enumerate(pairs)
            for number, copy in self._copies(pair)
        ]
        sources, targets = encode_normal_pairs(
            tokenizers, [copy for _, _, copy in made], protect_training_pair
        )
        for (row, step, copy), source, target in zip(made, sources, targets, strict=True):
            overlaps = self._cleaning.drop_overlap and self._held_out.overlaps(copy)
            if overlaps or not lengths.keep(copy, len(source), len(target)):
                step.dropped += 1
            else:
                step.changed += 1
                step.note(source=pairs[row][0], altered=copy[0], target=copy[1])
                added.setdefault(row, []).append((source, target))
        return added, steps

    def _copies(self, pair: Pair) -> Iterator[tuple[int, Pair]]:
        """With the number of its perturbation; none for a pair that was drawn and has nothing to alter, as capitals are
        for a lowercasing vocabulary.
        """
        for number, (name, rate) in enumerate(self._rates.items()):
            draw = draw_for(pair, name, self._seed)
            if draw.random() < rate:
                source, target = perturbed(pair, name, self._language, draw)
                copy = normalize(source), normalize(target)
                if self._held_out.key(copy) != self._held_out.key(pair):
                    yield number, copy
