"""The formats of an export: what each can hold, how it is written and read, and the words of its README.

Knows models, vocabularies and folders; neither runs nor how an export is checked.
"""

import json
from pathlib import Path
from typing import Any, Literal, Protocol

import torch

from endeavour.data.tokenizer import Tokenizers
from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.ctranslate2 import CTranslate2Engine
from endeavour.export import readme
from endeavour.export.ctranslate2 import write_ctranslate2
from endeavour.export.huggingface import HuggingFaceEngine, check_huggingface, write_huggingface
from endeavour.export.parity import ExportedEngine
from endeavour.model.transformer import ModelConfig, Transformer
from endeavour.special import BOS, PAD

FormatName = Literal["ctranslate2", "huggingface"]


class Format(Protocol):
    """One format.

    Attributes:
        package: the package that reads it.
        quantizes: whether it has a choice of quantization; without one it is always float32.
        excluded: ids that its log-probabilities take for impossible.
        readme: the template of the README.
    """

    package: str
    quantizes: bool
    excluded: tuple[int, ...]
    readme: str

    def check(self, config: ModelConfig) -> None:
        """Raises `UserError`, naming the key, for a model that the format cannot hold exactly."""
        ...

    def write(
        self,
        folder: Path,
        model: Transformer,
        tokenizers: Tokenizers,
        decoding: DecodingConfig,
        quantization: str,
    ) -> None:
        """Writes the model into the still empty folder."""
        ...

    def open(self, folder: Path, decoding: DecodingConfig) -> ExportedEngine:
        """An engine over an exported folder, for the comparison with our model."""
        ...

    def readme_values(self, folder: Path, positions: int) -> dict[str, Any]:
        """What the template needs besides that which all formats have; `positions` are those of the export."""
        ...


class CTranslate2:
    """See `ctranslate2.py`."""

    package, quantizes, readme = "ctranslate2", True, readme.CTRANSLATE2
    excluded: tuple[int, ...] = (PAD, BOS)  # before its softmax

    def check(self, config: ModelConfig) -> None:
        """It holds every model."""

    def write(
        self,
        folder: Path,
        model: Transformer,
        tokenizers: Tokenizers,
        decoding: DecodingConfig,
        quantization: str,
    ) -> None:
        source, target = (tokenizer.pieces(range(tokenizer.vocabulary_size)) for tokenizer in tokenizers)
        write_ctranslate2(folder, model, (source, target), quantization=quantization)

    def open(self, folder: Path, decoding: DecodingConfig) -> ExportedEngine:
        return CTranslate2Engine(folder, decoding, workers=torch.get_num_threads())

    def readme_values(self, folder: Path, positions: int) -> dict[str, Any]:
        return {"max_length": min(readme.MAX_LENGTH, positions)}


class HuggingFace:
    """See `huggingface.py`."""

    package, quantizes, readme = "transformers", False, readme.HUGGINGFACE
    excluded: tuple[int, ...] = ()

    def check(self, config: ModelConfig) -> None:
        check_huggingface(config)

    def write(
        self,
        folder: Path,
        model: Transformer,
        tokenizers: Tokenizers,
        decoding: DecodingConfig,
        quantization: str,
    ) -> None:
        write_huggingface(folder, model, decoding)

    def open(self, folder: Path, decoding: DecodingConfig) -> ExportedEngine:
        return HuggingFaceEngine(folder, decoding)

    def readme_values(self, folder: Path, positions: int) -> dict[str, Any]:
        config, generation = (
            json.loads((folder / name).read_text("utf-8"))
            for name in ("config.json", "generation_config.json")
        )
        return {"architecture": config["architectures"][0], "max_length": generation["max_length"]}


FORMATS: dict[FormatName, Format] = {"ctranslate2": CTranslate2(), "huggingface": HuggingFace()}
