"""`hf:NAME`: a Marian checkpoint of the Hugging Face Hub, or in a folder, as a run to begin with or to learn from.

It is written below the output folder when it is first named, as a finished run without data and scores of its own:
hf:Helsinki-NLP/opus-mt-en-de becomes the run hf/Helsinki-NLP/opus-mt-en-de. Knows files and runs; what is in them is
known to `model.marian` and `data.marian_vocabulary`.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file
from torch import Tensor

from endeavour.data import hub
from endeavour.data.marian_vocabulary import MarianVocabulary, read_marian_vocabulary
from endeavour.errors import UserError, first_line
from endeavour.model.marian import marian_config, marian_state
from endeavour.model.transformer import Transformer
from endeavour.runs.config import RunConfig, save_config
from endeavour.runs.names import PREFIX, is_imported
from endeavour.runs.restart import require_alone
from endeavour.runs.run import IMPORTED, Run
from endeavour.storage import (
    atomic_folder,
    file_digest,
    read_json_object,
    user_path,
    waiting_lock,
    write_errors,
    write_json,
)
from endeavour.training.checkpoint import write_model

FILES = ("config.json", "vocab.json", "source.spm", "target.spm")
SAFE, PICKLED = "model.safetensors", "pytorch_model.bin"
TOKENIZER_CONFIG = "tokenizer_config.json"
Found = TypeVar("Found")
LANGUAGES = {"en": "en", "eng": "en", "de": "de", "deu": "de", "ger": "de"}


def run_named(root: Path, name: str) -> Run:
    """The run of that name below `root`, which for hf:NAME may not be written yet."""
    if not is_imported(name):
        return Run(root, name)
    path = Path(name.removeprefix(PREFIX))
    parts = [part for part in path.relative_to(path.anchor).parts if part != ".."]
    return Run(root, Path(PREFIX[:-1], *parts).as_posix())


def imported_run(config: RunConfig, name: str, *, any_direction: bool = False) -> Run:
    """The run of hf:NAME, written unless it is there; it has the sections of `config` that no checkpoint has.

    Args:
        any_direction: whether it may translate in the other direction than `config`.

    Raises:
        UserError: there is no such checkpoint, or our model cannot compute what it does, or it has changed since.
    """
    run = run_named(Path(config.output_folder), name)
    if run.is_trained:
        _require_unchanged(run, name)
        return run
    require_alone(run)
    # Read before any folder is made, so that nothing is left of what is no checkpoint.
    folder = _checkpoint(name, _downloaded)
    own, model, vocabulary = _converted(folder, run, config, name, any_direction=any_direction)
    with write_errors(run.folder, "output_folder"):
        run.folder.parent.mkdir(parents=True, exist_ok=True)
        with waiting_lock(run.folder.with_name(f"{run.folder.name}.import"), f"importing {name}"):
            if not run.is_trained:
                with atomic_folder(run.folder) as partial:
                    save_config(own, partial / "config.yaml")
                    with atomic_folder(partial / "model") as model_folder:
                        write_model(model_folder, model, vocabulary.tokenizers)
                    write_json(partial / "summary.json", _summary(run, name, folder))
                print(f"note: {name} is now the run {run}", file=sys.stderr)
    return run


def _require_unchanged(run: Run, name: str) -> None:
    """As far as the checkpoint is here: in a folder, or in the hub's cache."""
    folder = _checkpoint(name, _cached)
    known = run.summary.get("files", {})
    changed = (
        [file for file, digest in _digests(folder).items() if known.get(file) != digest] if folder else []
    )
    if changed:
        raise UserError(
            f"{folder}: {' and '.join(changed)} changed since {name} was imported\n"
            f"delete {run.folder} to import it anew, or name that run, {run.name}"
        )


def _checkpoint(name: str, on_hub: Callable[[str], Found]) -> Path | Found:
    """The folder of the checkpoint: as it is named, or what `on_hub` gives for the repository of that name."""
    address = name.removeprefix(PREFIX)
    folder = user_path(address)
    return folder if folder.is_dir() else on_hub(address)


def _cached(repository: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    try:
        cached = try_to_load_from_cache(repository, "config.json")
    except ValueError:  # of a folder that is gone: no repository has such a name
        return None
    return Path(cached).parent if isinstance(cached, str) else None


def _digests(folder: Path) -> dict[str, str]:
    """File → SHA-256, of those that are read."""
    weights = SAFE if (folder / SAFE).is_file() else PICKLED
    files = [file for file in (*FILES, weights, TOKENIZER_CONFIG) if (folder / file).is_file()]
    return {file: file_digest(folder / file) for file in files}


def _summary(run: Run, name: str, folder: Path) -> dict[str, Any]:
    own = {"name": run.name, "status": IMPORTED, "data_digest": None, "test": {}}
    return own | {"checkpoint": name, "files": _digests(folder)}


def _converted(
    folder: Path, run: Run, config: RunConfig, name: str, *, any_direction: bool
) -> tuple[RunConfig, Transformer, MarianVocabulary]:
    """Config, model and vocabulary of `run`, which the checkpoint in `folder` becomes."""
    direction = _stated_direction(folder) or config.direction
    if direction != config.direction and not any_direction:
        raise UserError(f"{name} translates {direction}, not direction={config.direction}")
    try:
        model, vocabulary = _read(folder, name=Path(run.name).name)
    except UserError:
        raise
    except (AttributeError, LookupError, RuntimeError, StopIteration, TypeError, ValueError) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(
            f"{name}: its files are not all there, or do not belong together ({said:.300})"
        ) from error
    tokenizer = replace(
        config.tokenizer,
        name=model.config.name,
        algorithm=vocabulary.algorithm,
        vocabulary_size=len(vocabulary.rows),
        joint=False,
        lowercase=False,
        placeholders=0,
    )
    own = replace(
        config,
        name=run.name,
        direction=direction,
        augmentation=replace(
            config.augmentation, denoising=0, **dict.fromkeys(config.augmentation.rates, 0.0)
        ),
        pretrained=None,
        pretraining_settings={},
        teachers=None,
        teacher_settings={},
        corpus=replace(config.corpus, tags=False, tag=None),
        model=model.config,
        training=replace(config.training, r_drop=0.0),  # which a model without dropout could not have
        decoding=replace(config.decoding, tag=None),
        tokenizer=tokenizer,
    )
    return own, model, vocabulary


def _read(folder: Path, *, name: str) -> tuple[Transformer, MarianVocabulary]:
    """What is missing or does not fit raises whatever the first place that meets it does."""
    theirs = _read_json(folder / "config.json")
    config = marian_config(theirs, name=name)
    vocabulary = read_marian_vocabulary(folder, pad=theirs["pad_token_id"], eos=theirs["eos_token_id"])
    start = theirs["decoder_start_token_id"]
    state = marian_state(_read_weights(folder), config, vocabulary.rows, start=start)
    size = len(vocabulary.rows)
    model = Transformer(config, source_vocabulary=size, target_vocabulary=size)
    model.load_state_dict(state)
    return model, vocabulary


def _stated_direction(folder: Path) -> str | None:
    """What the tokenizer's config says, where it names two of our languages."""
    path = folder / TOKENIZER_CONFIG
    said = _read_json(path) if path.is_file() else {}
    source, target = (LANGUAGES.get(str(said.get(f"{side}_lang"))) for side in ("source", "target"))
    return f"{source}-{target}" if {source, target} == {"en", "de"} else None


def _downloaded(repository: str) -> Path:
    """The folder in the hub's cache, to which it is downloaded."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError

    endpoint = hub.endpoint()
    unreached: Exception | None = None
    try:  # without the retries of `hf_hub_download`, which take half a minute where there is no network
        get_hf_file_metadata(hf_hub_url(repository, "config.json", endpoint=endpoint), timeout=hub.TIMEOUT)
    # The transport's errors belong to whichever HTTP library this version of the client uses.
    except Exception as error:
        unreached = error

    def fetch(file: str) -> Path:
        cached = unreached is not None
        return Path(hf_hub_download(repository, file, endpoint=endpoint, local_files_only=cached))

    try:
        for file in FILES:
            fetch(file)
        for file, alternative in ((SAFE, PICKLED), (TOKENIZER_CONFIG, "config.json")):
            try:
                fetch(file)
            except EntryNotFoundError:
                fetch(alternative)
        return fetch("config.json").parent
    except Exception as error:
        reason = first_line(unreached or error)
        raise UserError(
            f"{PREFIX}{repository} is neither a folder nor a Marian model that {endpoint} has ({reason})"
        ) from error


def _read_weights(folder: Path) -> dict[str, Tensor]:
    try:
        if (folder / SAFE).is_file():
            return load_file(folder / SAFE)
        return torch.load(folder / PICKLED, map_location="cpu", weights_only=True)
    except Exception as error:  # of files, safetensors and pickle, which have kinds of their own
        raise UserError(f"{folder}: neither {SAFE} nor {PICKLED} can be read ({error})") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return read_json_object(path)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path}: not readable ({error}); a Marian checkpoint has {', '.join(FILES)}"
        ) from error
