"""What a run is: the root of its config, saved in its folder, read again, and compared with another.

Knows every part's section, and which keys make a run what it is. Does not know how a config is composed.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from endeavour.data.augmentation import AugmentationConfig
from endeavour.data.cleaning import CleaningConfig
from endeavour.data.corpus import CorpusConfig
from endeavour.data.tokenizer_training import TokenizerConfig
from endeavour.decoding.config import DecodingConfig
from endeavour.directions import Direction, languages_of
from endeavour.errors import UserError, first_line
from endeavour.evaluation.config import EvaluationConfig
from endeavour.model.config import ModelConfig
from endeavour.nested import flatten
from endeavour.runs.names import LARGEST_SEED, is_imported, model_name, normal_teachers, run_name
from endeavour.settings import STRICT, validated
from endeavour.storage import write_atomically
from endeavour.training.config import TrainingConfig
from endeavour.training.tracking import TrackingConfig

# What may differ between two commands that mean the same run: where it runs, what is shown of it, and everything that
# is chosen after training.
NOT_PART_OF_A_RUN = (
    "name",
    "device",
    "data_folder",
    "output_folder",
    "decoding",
    "evaluation",
    "tracking",
    "corpus.path",  # the content of the data decides
    "training.compile",
    "training.cuda_graphs",
    "training.sharded",
    "training.restart",
    "training.log_every",
    "training.communication_timeout",
    "training.preflight",
    "training.max_skipped_updates",
    "validation_decoding.tokens_per_batch",
    "validation_decoding.cuda_graphs",
)
# By `training.average`: how many checkpoints are kept matters where the final weights are made of them.
NOT_AVERAGED = {
    "last": ("training.keep_best",),
    "best": ("training.keep_last",),
    "none": ("training.keep_last", "training.keep_best"),
}

Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]


@dataclass(kw_only=True, config=STRICT)
class RunConfig:
    """conf/train.yaml holds the values and says what each key means."""

    name: str
    seed: Seed
    direction: Direction
    pretrained: str | None
    pretraining_settings: dict[Literal["augmentation", "model", "training", "evaluation"], dict[str, Any]]
    teachers: str | None
    teacher_settings: dict[Literal["model", "training", "decoding"], dict[str, Any]]
    device: str
    data_folder: str
    output_folder: str
    corpus: CorpusConfig
    cleaning: CleaningConfig
    augmentation: AugmentationConfig
    tokenizer: TokenizerConfig
    model: ModelConfig
    training: TrainingConfig
    decoding: DecodingConfig
    validation_decoding: DecodingConfig
    evaluation: EvaluationConfig
    tracking: TrackingConfig

    # The validators are called in this order.
    @model_validator(mode="after")
    def _check_decoding(self) -> Self:
        validation = self.validation_decoding
        for key, searches in (
            ("engine", validation.engine == "pytorch"),
            ("utility", validation.utility is None),
            ("backward", validation.backward is None),
            ("sampling", not validation.sampling),
            ("tag", validation.tag is None),
            ("split_sentences", not validation.split_sentences),
        ):
            if not searches:
                raise ValueError(
                    f"validation_decoding.{key}: a model in training decodes lines by our beam search alone, with "
                    "corpus.tag"
                )
        if self.decoding.backward is not None:
            raise ValueError(
                f"decoding.backward={self.decoding.backward} is for trained runs: train without it, evaluate with it"
            )
        if self.decoding.engine != "pytorch":
            raise ValueError(
                f"decoding.engine={self.decoding.engine} needs an export, and so a trained run: train without it first"
            )
        return self

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.model.tie == "all" and not self.tokenizer.joint:
            raise ValueError(
                "model.tie=all needs tokenizer.joint=true: set model.tie=decoder or none for two vocabularies"
            )
        dropouts = [value for key, value in vars(self.model).items() if key.endswith("dropout")]
        if self.training.r_drop and not any(dropouts):
            raise ValueError(
                f"training.r_drop={self.training.r_drop:g} compares two passes that differ by dropout, and there "
                "is none: set model.dropout"
            )
        if self.augmentation.denoising and not (self.tokenizer.joint and self.teachers is None):
            raise ValueError(
                "augmentation.denoising restores sentences of both languages, and translates none: it needs "
                "tokenizer.joint=true, and has no teachers"
            )
        return self

    @model_validator(mode="after")
    def _check_data(self) -> Self:
        parts = self.corpus.parts
        if parts and self.teachers is not None:
            raise ValueError(
                "teachers and corpus.parts do not go together: a teacher's translations belong to no part"
            )
        if self.decoding.tag is not None:
            self.corpus.require_tag("decoding.tag", self.decoding.tag)
        for stage in self.training.mixture or []:
            if unknown := stage.weights.keys() - parts.keys():
                raise ValueError(
                    f"training.mixture: {', '.join(sorted(unknown))} is not one of corpus.parts "
                    f"({', '.join(parts) or 'there are none'})"
                )
        self.augmentation.require_source(languages_of(self.direction)[0])
        return self

    @model_validator(mode="after")
    def _normalize_names(self) -> Self:
        """Brings names of runs to their normal form; checks the configs of those that are trained before this one."""
        self.name = run_name("name", self.name, self.output_folder)
        if self.pretrained is not None:
            self.pretrained = model_name("pretrained", self.pretrained, self.output_folder)
            pretraining_config(self)
        if self.teachers is not None:
            self.teachers = normal_teachers(self.teachers, self.output_folder)
        if self.teacher_settings:
            if self.teachers is None:
                raise ValueError("teacher_settings are for teachers that are seeds: set teachers")
            teacher_config(self, self.seed, self.name)
        return self


def teacher_config(config: RunConfig, seed: int, name: str) -> RunConfig:
    """That of the teacher with this seed and name: the same run, except for `teacher_settings`.

    Raises:
        UserError: they are none of a run.
    """
    return _trained_before(config, "teacher_settings", seed=seed, name=name)


def pretraining_config(config: RunConfig) -> RunConfig | None:
    """That of the run which `pretrained` names: the same, except for `pretraining_settings`, from nothing, untaught.

    Returns:
        None where there are no such settings, or nothing to train by them.
    Raises:
        UserError: they are none of a run.
    """
    if config.pretrained is None or is_imported(config.pretrained) or not config.pretraining_settings:
        return None
    # These are about the run's own test sets.
    none = {"labels": {}, "tokenized_references": None, "files": {}, "sacrebleu": []}
    return _trained_before(
        config,
        "pretraining_settings",
        name=config.pretrained,
        pretrained=None,
        pretraining_settings={},
        evaluation=asdict(config.evaluation) | none,
    )


def _trained_before(config: RunConfig, key: str, **others: Any) -> RunConfig:
    """The config of a run that is trained for that of `config`: without teachers, and with the settings in `key`."""
    values: dict[str, Any] = asdict(config) | {"teachers": None, "teacher_settings": {}} | others
    values["training"]["restart"] = False
    for section, settings in getattr(config, key).items():
        values[section] |= settings
    try:
        return validated(RunConfig, values)
    except UserError as error:
        raise UserError(f"{key}: {error}") from error


def save_config(config: RunConfig, path: Path) -> None:
    """Writes the config as YAML, in one step: half of it would look like another run's."""
    write_atomically(path, yaml.safe_dump(asdict(config), sort_keys=False, allow_unicode=True))


def read_config(path: Path) -> RunConfig:
    """Reads what `save_config` wrote. Raises `UserError` where the file is missing or damaged."""
    try:
        values: Any = yaml.safe_load(path.read_text("utf-8"))
        if not isinstance(values, dict):
            raise UserError("no keys in it")
        return validated(RunConfig, values)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UserError(
            f"{path}: not the config of a run of this version of endeavour ({first_line(error)}); use the version "
            f"that wrote it, restore it, or move {path.parent} away"
        ) from error


def differing_keys(ours: RunConfig, saved: RunConfig) -> list[str]:
    """The keys, as `key: saved → ours`, in which two configs mean different runs."""
    new, old = flatten(asdict(ours)), flatten(asdict(saved))
    ignored = (*NOT_PART_OF_A_RUN, *NOT_AVERAGED[ours.training.average])
    return [
        f"{key}: {old.get(key)} → {new.get(key)}"
        for key in sorted(new.keys() | old.keys())
        if new.get(key) != old.get(key) and not is_in(key, ignored)
    ]


def is_in(key: str, sections: Sequence[str]) -> bool:
    """Whether a dotted key is one of these, or in one of them."""
    return any(key == section or key.startswith(f"{section}.") for section in sections)
