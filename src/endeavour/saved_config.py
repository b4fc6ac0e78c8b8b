"""The config that a run leaves in its folder: written, read again years later, and set against another.

Knows which keys make a run what it is. Does not know how a config is composed.
"""

from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, cast, get_type_hints

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from endeavour.config import Config, flat, to_config, to_dict
from endeavour.data.disk import write_atomically
from endeavour.decoding.config import UNSAMPLED
from endeavour.errors import UserError

# What the keys that came later mean where a saved config does not have them: what was done then.
BEFORE: dict[str, object] = {
    **{f"decoding.{key}": value for key, value in UNSAMPLED.items()},
    "decoding.precision": "fp32",
    "decoding.sampling": False,
    "evaluation.english_column": "en",
    "evaluation.files": {},
    "evaluation.german_column": "de",
    "pretrained": None,
    "teachers": None,
    **{f"validation_decoding.{key}": value for key, value in UNSAMPLED.items()},
    "validation_decoding.precision": "fp32",
    "validation_decoding.sampling": False,
}

# What may differ between two commands that mean the same run: where it runs, what is shown of it, and
# everything that is chosen after training.
NOT_PART_OF_A_RUN = (
    "name",
    "device",
    "data_folder",
    "output_folder",
    "text",
    "input",
    "output",
    "runs",
    "systems",
    "split",
    "ensemble",
    "format",
    "quantization",
    "decoding",
    "evaluation",
    "compare",
    "tracking",
    "bench",
    "corpus.path",  # the content of the data tells
    "training.restart",
    "training.log_every",
    "training.communication_timeout",
    "training.preflight",
    "training.max_skipped_updates",
)

# By `training.average`: how many checkpoints are kept matters where the final weights are made of them.
UNREAD = {
    "last": ("training.keep_best",),
    "best": ("training.keep_last",),
    "none": ("training.keep_last", "training.keep_best"),
}


def save_config(config: Config, path: Path) -> None:
    """Writes the resolved config as YAML, in one step: half of it would look like another run's."""
    write_atomically(path, OmegaConf.to_yaml(OmegaConf.create(to_dict(config))))


def read_config(path: Path, *, newer: Config) -> Config:
    """Reads what `save_config` wrote, perhaps long ago.

    Keys that it did not know yet have the value of what was done before there were such keys, or else that of
    `newer`; those that are known no more are left out.

    Raises:
        UserError: the file is damaged.
    """
    try:
        values = cast(dict[str, Any], OmegaConf.to_container(OmegaConf.load(path)))
        saved = OmegaConf.merge(OmegaConf.create(to_dict(newer)), _known(values, Config))  # TEMP
    except (OSError, ValueError, AttributeError, YAMLError, OmegaConfBaseException) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"{path}: not the config of a run ({reason}); restore it, or move {path.parent} away"
        ) from error
    present = OmegaConf.create(to_dict(newer))
    for key in OmegaConf.missing_keys(saved):
        OmegaConf.update(saved, key, BEFORE.get(key, OmegaConf.select(present, key)))
    return to_config(saved)


def differing_keys(ours: Config, saved: Config) -> list[str]:
    """The keys, as `key: saved → ours`, in which two configs mean different runs."""
    new, old = flat(to_dict(ours)), flat(to_dict(saved))
    ignored = (*NOT_PART_OF_A_RUN, *UNREAD[ours.training.average])
    return [
        f"{key}: {old.get(key)} → {new.get(key)}"
        for key in sorted(new.keys() | old.keys())
        if new.get(key) != old.get(key)
        and not any(key == name or key.startswith(name + ".") for name in ignored)
    ]


def _known(values: dict[str, Any], section: type) -> dict[str, Any]:
    """`values` without the keys that the dataclass `section`, or one within it, does not have."""
    kinds = get_type_hints(section)
    return {
        key: _known(value, kinds[key]) if is_dataclass(kinds[key]) else value
        for key, value in values.items()
        if key in kinds
    }
