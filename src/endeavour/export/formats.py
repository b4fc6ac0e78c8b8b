"""The formats of an export: what each can hold, how it is written and read, and the words of its README.

Knows models, vocabularies and folders; neither runs nor how an export is checked.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import torch

from endeavour.data.tokenizer import Tokenizers, save_tokenizers
from endeavour.decoding.config import DecodingConfig, Quantization
from endeavour.decoding.ctranslate2 import DESCRIPTION, CTranslate2Engine
from endeavour.directions import NAMES
from endeavour.errors import UserError
from endeavour.export import readme
from endeavour.export.argos import LONGEST_INPUT, package_name, require_same_text, unpacked, write_argos
from endeavour.export.ctranslate2 import exported_positions, write_ctranslate2
from endeavour.export.huggingface import HuggingFaceEngine, check_huggingface, write_huggingface
from endeavour.export.model_card import Card, data_lines, metadata, score_lines, setting_lines
from endeavour.export.parity import ExportedEngine
from endeavour.export.tokenizer_json import TARGET_FOLDER, is_separate, require_same_ids, write_tokenizers
from endeavour.model.config import ModelConfig
from endeavour.model.transformer import Transformer
from endeavour.special import BOS, PAD

FormatName = Literal["ctranslate2", "huggingface", "argos"]
QUANTIZATIONS: tuple[Quantization, ...] = get_args(Quantization)


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A trained model and what is known of it.

    Attributes:
        run: its name.
        decoding: how its export is to decode.
        tag: what whoever calls an exported model writes before each sentence; empty where the model knows none.
        sources, references: untouched validation lines, on which the export is compared with the model.
    """

    run: str
    model: Transformer
    tokenizers: Tokenizers
    decoding: DecodingConfig
    card: Card
    tag: str
    sources: Sequence[str]
    references: Sequence[str]

    @property
    def tagged_sources(self) -> list[str]:
        return [f"{self.tag} {line}" if self.tag and line.strip() else line for line in self.sources]


class Format(Protocol):
    """One format.

    Attributes:
        package: the package that reads it.
        quantizations: those that it has, the first without a choice; only float32 where there is none.
        excluded: ids that its log-probabilities take for impossible.
        readme: the template of the README.
    """

    package: str
    quantizations: tuple[Quantization, ...]
    excluded: tuple[int, ...]
    readme: str

    def check(self, config: ModelConfig) -> None:
        """Raises `UserError`, naming the key, for a model that the format cannot hold exactly."""
        ...

    def write(self, folder: Path, trained: Trained, quantization: Quantization) -> None:
        """Writes model and vocabularies into the still empty folder.

        Raises:
            UserError: the format's own tokenizer would treat a validation line otherwise than ours.
        """
        ...

    def open(self, folder: Path, decoding: DecodingConfig) -> ExportedEngine:
        """An engine over an exported folder that has its description, for the comparison with our model."""
        ...

    def readme_values(self, folder: Path, trained: Trained) -> dict[str, Any]:
        """What the template needs besides what all formats share."""
        ...


class CTranslate2Format:
    """See `ctranslate2.py`."""

    package, quantizations, readme = "ctranslate2", QUANTIZATIONS, readme.CTRANSLATE2
    excluded: tuple[int, ...] = (PAD, BOS)  # before its softmax

    def check(self, config: ModelConfig) -> None:
        """It holds every model."""

    def write(self, folder: Path, trained: Trained, quantization: Quantization) -> None:
        source, target = (tokenizer.all_pieces() for tokenizer in trained.tokenizers)
        write_ctranslate2(folder, trained.model, (source, target), quantization=quantization)
        save_tokenizers(folder, trained.tokenizers)

    def open(self, folder: Path, decoding: DecodingConfig) -> ExportedEngine:
        return CTranslate2Engine(folder, decoding, workers=torch.get_num_threads())

    def readme_values(self, folder: Path, trained: Trained) -> dict[str, Any]:
        return {"max_length": min(readme.MAX_LENGTH, exported_positions(trained.model.config))}


class HuggingFaceFormat:
    """See `huggingface.py` and `tokenizer_json.py`."""

    package, readme = "transformers", readme.HUGGINGFACE
    quantizations: tuple[Quantization, ...] = ("float32",)
    excluded: tuple[int, ...] = ()

    def check(self, config: ModelConfig) -> None:
        check_huggingface(config)

    def write(self, folder: Path, trained: Trained, quantization: Quantization) -> None:
        write_huggingface(folder, trained.model, trained.decoding)
        write_tokenizers(folder, trained.tokenizers, positions=exported_positions(trained.model.config))
        require_same_ids(folder, trained.tokenizers, (trained.tagged_sources, trained.references))
        save_tokenizers(folder, trained.tokenizers)

    def open(self, folder: Path, decoding: DecodingConfig) -> ExportedEngine:
        return HuggingFaceEngine(folder, decoding)

    def readme_values(self, folder: Path, trained: Trained) -> dict[str, Any]:
        config, generation = (
            json.loads((folder / name).read_text("utf-8"))
            for name in ("config.json", "generation_config.json")
        )
        card, separate = trained.card, is_separate(trained.tokenizers)
        loading = f'target = AutoTokenizer.from_pretrained("{card.address}", subfolder="{TARGET_FOLDER}")\n'
        return {
            "metadata": metadata(card, name=trained.run),
            "address": card.address,
            "where": ", inside this folder" if card.address == "." else "",
            "architecture": config["architectures"][0],
            "parameters": f"{sum(weight.numel() for weight in trained.model.parameters()):,}",
            "target_tokenizer": loading if separate else "",
            "joining": "target" if separate else "tokenizer",
            "scores": score_lines(card),
            "data": data_lines(card),
            "settings": setting_lines(card),
            "max_length": generation["max_length"],
        }


class ArgosFormat(CTranslate2Format):
    """The same in a package, see `argos.py`."""

    readme = readme.ARGOS

    def check(self, config: ModelConfig) -> None:
        if exported_positions(config) < LONGEST_INPUT:
            raise UserError(
                f"format=argos: Argos translates up to {LONGEST_INPUT:,} tokens at a time, and this model knows "
                f"model.max_length={config.max_length} positions: use format=ctranslate2, or train with more of them, "
                "or with model.positions=sinusoidal or rotary"
            )

    def write(self, folder: Path, trained: Trained, quantization: Quantization) -> None:
        require_same_text(trained.tokenizers, trained.references)
        write_argos(
            folder,
            trained.model,
            trained.tokenizers,
            languages=trained.card.languages,
            readme=readme.ARGOS_PACKAGE.format(run=trained.run, **_languages(trained.card)),
            quantization=quantization,
        )

    def open(self, folder: Path, decoding: DecodingConfig) -> ExportedEngine:
        with unpacked(folder) as content:
            shutil.copy(folder / DESCRIPTION, content / "model")
            return super().open(content / "model", decoding)

    def readme_values(self, folder: Path, trained: Trained) -> dict[str, Any]:
        languages = trained.card.languages
        return {"package": package_name(languages), "source_code": languages[0], "target_code": languages[1]}


def shared_readme_values(trained: Trained) -> dict[str, Any]:
    """What the templates of several formats name."""
    return {
        "run": trained.run,
        "positions": exported_positions(trained.model.config),
        "beam_size": trained.decoding.beam_size,
        "length_penalty": trained.decoding.length_penalty,
        **_languages(trained.card),
    }


def _languages(card: Card) -> dict[str, str]:
    source, target = (NAMES[code] for code in card.languages)
    return {"source_language": source, "target_language": target}


FORMATS: dict[FormatName, Format] = {
    "ctranslate2": CTranslate2Format(),
    "huggingface": HuggingFaceFormat(),
    "argos": ArgosFormat(),
}
