"""The root of the configuration: the schema that joins every part's own section, and its composition by Hydra.

Types stand here and beside the code they configure; values stand in `conf/` alone. This file knows no part
beyond its config dataclass. Below the stages nothing sees the root.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any, cast, get_type_hints

import hydra
from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from endeavour.data import corpus
from endeavour.data.cleaning import CleaningConfig
from endeavour.data.corpus import CorpusConfig
from endeavour.data.prepare import DIRECTIONS
from endeavour.data.tokenizer import TokenizerConfig
from endeavour.decoding.config import DecodingConfig
from endeavour.errors import UserError
from endeavour.evaluation.compare import CompareConfig
from endeavour.evaluation.evaluate import EvaluationConfig
from endeavour.export.formats import FORMATS, QUANTIZATIONS
from endeavour.model.transformer import ModelConfig
from endeavour.redaction import NAMED_BY_USERS, secret_in
from endeavour.run_names import run_name, teachers_in
from endeavour.training.config import TrainingConfig
from endeavour.training.tracking import TrackingConfig

ONLY_BEAM_SEARCH = "a model in training decodes by beam search alone"


@dataclass(kw_only=True)
class Config:
    """Everything one command needs; `conf/config.yaml` holds the values and says what each key means."""

    name: str
    seed: int
    direction: str
    pretrained: str | None
    teachers: str | None
    device: str
    data_folder: str
    output_folder: str
    text: str | None
    input: str | None
    output: str | None
    runs: str | None
    systems: str | None
    split: str | None
    ensemble: str | None
    format: str
    quantization: str
    corpus: CorpusConfig
    cleaning: CleaningConfig
    tokenizer: TokenizerConfig
    model: ModelConfig
    training: TrainingConfig
    decoding: DecodingConfig
    validation_decoding: DecodingConfig
    evaluation: EvaluationConfig
    compare: CompareConfig
    tracking: TrackingConfig

    @property
    def run_folder(self) -> Path:
        return Path(self.output_folder) / self.name


def config_folder() -> Path:
    """Where the YAML files lie: in the package when installed from a wheel, beside `src` in a checkout."""
    packaged = Path(__file__).parent / "conf"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "conf"


def register_schema() -> None:
    ConfigStore.instance().store(name="schema", node=Config)


def to_config(composed: DictConfig, *, decoding_known: bool = True) -> Config:
    """Turns Hydra's result into the typed root. Raises `UserError` for a value that no part accepts.

    Args:
        decoding_known: false where a run's own decoding and evaluation are still to be joined with what is here;
            then the caller runs `check_decoding` afterwards.
    """
    try:
        missing = sorted(OmegaConf.missing_keys(composed))
    except OmegaConfBaseException as error:  # of an interpolation
        raise UserError(one_line(error)) from error
    if missing:
        raise UserError(f"{missing[0]} has no value: give it one, {missing[0]}=…")
    for key in _unknown(cast(dict[str, Any], OmegaConf.to_container(composed)), Config):
        raise UserError(f"{key} is no key of the config: `endeavour train --cfg job` shows them all")
    try:
        config = cast(Config, OmegaConf.to_object(composed))
    except OmegaConfBaseException as error:
        raise UserError(one_line(error)) from error
    _check_sections(config)
    _check_together(config)
    config.name = run_name("name", config.name, config.output_folder)
    if config.pretrained is not None:
        config.pretrained = run_name("pretrained", config.pretrained, config.output_folder)
    if config.teachers is not None:
        config.teachers = teachers_in(config.teachers, config.output_folder)
    if decoding_known:
        check_decoding(config)
    return config


def _check_sections(config: Config) -> None:
    """Raises `UserError` for a value that its part does not accept, or that must not be saved."""
    _check_choice("direction", config.direction, DIRECTIONS)
    _check_choice("format", config.format, FORMATS)
    _check_choice("quantization", config.quantization, QUANTIZATIONS)
    if not 0 <= config.seed < 2**63:
        raise UserError(f"seed={config.seed}: must be from 0 to below 2^63")
    corpus.check(config.corpus)
    for section in (
        config.cleaning,
        config.tokenizer,
        config.model,
        config.training,
        config.compare,
        config.tracking,
    ):
        section.check()
    try:
        config.validation_decoding.check()
    except UserError as error:
        text = str(error).replace("decoding.", "validation_decoding.")
        raise UserError(text.replace(": add decoding=sample", f": {ONLY_BEAM_SEARCH}")) from error
    for key, value in flat(to_dict(config)).items():
        if found := secret_in(str(value)):
            raise UserError(f"{key} holds {found}, and a config is saved: leave secrets to the environment")


def _check_together(config: Config) -> None:
    """Raises `UserError` for values that each part accepts, but not together."""
    validation = config.validation_decoding
    if validation.engine != "pytorch":
        raise UserError("validation_decoding.engine: a model in training decodes with pytorch alone")
    if validation.utility is not None:
        raise UserError(f"validation_decoding.utility: {ONLY_BEAM_SEARCH}")
    if validation.sampling:
        raise UserError(f"validation_decoding.sampling: {ONLY_BEAM_SEARCH}")
    if config.model.tie == "all" and not config.tokenizer.joint:
        raise UserError(
            "model.tie=all needs tokenizer.joint=true: set model.tie=decoder or none for two vocabularies"
        )


def check_decoding(config: Config) -> None:
    """Raises `UserError` where `decoding` and `evaluation` describe nothing that can be done."""
    config.decoding.check()
    config.evaluation.check()
    if config.ensemble is not None and config.decoding.engine != "pytorch":
        raise UserError(
            f"ensemble={config.ensemble} needs decoding.engine=pytorch: an export holds one model"
        )


def load_config(overrides: list[str]) -> Config:
    """Composes the config as the command line would, for tests and notebooks."""
    register_schema()
    with initialize_config_dir(version_base="1.3", config_dir=str(config_folder().resolve())):
        return to_config(compose("config", overrides=overrides))


def run_hydra(stage: str, function: Callable[[DictConfig], object], overrides: list[str]) -> None:
    """Hands a command line to Hydra, and what it composes to `function`: once, or with --multirun often.

    Raises:
        UserError: the command line or a value is wrong, in one line.
        Exception: the first that `function` raised, after all its calls.
    """
    register_schema()
    sys.argv = [f"endeavour {stage}", *overrides]
    failures: list[Exception] = []

    def task(composed: DictConfig) -> None:
        try:
            function(composed)
        except Exception as error:  # kept from Hydra, which would add lines of its own
            failures.append(error)

    # Hydra would print its own account of an error and exit with 1; told to raise, it leaves the words to us.
    asked_for = os.environ.get("HYDRA_FULL_ERROR", "0")
    os.environ["HYDRA_FULL_ERROR"] = "1"
    decorate = hydra.main(
        version_base="1.3", config_path=str(config_folder().resolve()), config_name="config"
    )
    try:
        decorate(task)()
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(one_line(error)) from error
    finally:
        os.environ["HYDRA_FULL_ERROR"] = asked_for
    if failures:
        raise failures[0]


def one_line(error: Exception) -> str:
    """Of Hydra's and OmegaConf's several lines those that say what and where."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    cause = error.__cause__ or error.__context__
    if cause is not None:
        lines += [line.strip() for line in str(cause).splitlines()[:1]]
    key = getattr(error, "full_key", None) or getattr(cause, "full_key", None)
    noise = (
        "full_key:",
        "object_type",
        "reference_type",
        "To append",
        "Config search path",
        "provider=",
        "See https:",
    )
    kept = [line.rstrip(";") for line in lines if not line.startswith(noise)]
    kept = [line for line in kept if not any(line in other and line != other for other in kept)]
    if key and key.startswith(NAMED_BY_USERS) and "not in struct" in str(error) + str(cause):
        kept = [f"a new name needs a + before it: +{key}=[…]"]
    text = "; ".join(dict.fromkeys(kept))
    return text if not key or key in text else f"{key}: {text}"


def to_dict(config: Config) -> dict[str, Any]:
    return asdict(config)  # OmegaConf would read a ${ in a text as its own grammar


def _unknown(values: dict[str, Any], section: type, prefix: str = "") -> list[str]:
    """The keys, which Hydra's `+key=value` may have added, that the dataclass `section` does not have."""
    kinds = get_type_hints(section)
    unknown: list[str] = []
    for key, value in values.items():
        if key not in kinds:
            unknown.append(prefix + key)
        elif is_dataclass(kinds[key]):
            unknown += _unknown(value, cast(type, kinds[key]), f"{prefix}{key}.")
    return unknown


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries as one, with keys as they are typed: `model.width`."""
    values: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            values |= flat(cast(dict[str, Any], value), f"{prefix}{key}.")
        else:
            values[prefix + key] = value
    return values


def _check_choice(key: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UserError(f"{key}={value} is not known: choose one of {', '.join(choices)}")
