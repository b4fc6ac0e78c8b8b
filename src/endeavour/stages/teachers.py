"""The runs that `teachers` names: what they make of the training text is trained on beside the text itself.

Sequence-level knowledge distillation (Kim and Rush 2016, "Sequence-Level Knowledge Distillation"), with the genuine
text kept and a copy of it from each of several teachers, which is the forward half of data diversification (Nguyen et
al. 2020, "Data Diversification: A Simple Strategy For Neural Machine Translation"). A teacher may be an ensemble
(Freitag et al. 2017, "Ensemble Distillation for Neural Machine Translation").

Translations are made in the data folder, where runs share them. A run takes copies into its own folder, and once it
has a checkpoint it needs neither its teachers nor those any more.
"""

import itertools
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from urllib.parse import quote

import torch
from filelock import FileLock

from endeavour.config import Config
from endeavour.data.corpus import TRAIN, Further, Progress
from endeavour.data.disk import file_digest, flush, flush_entry
from endeavour.data.prepared import PreparedData
from endeavour.data.tokenizer import load_tokenizers
from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.pytorch import PyTorchEngine
from endeavour.decoding.translator import WINDOW, Translator
from endeavour.errors import UserError
from endeavour.run_names import members_of, names_in
from endeavour.saved_config import differing_keys, read_config
from endeavour.stages.engines import joined_names
from endeavour.stages.ensembles import join_models, require_same_vocabularies
from endeavour.stages.run_folder import (
    data_digest,
    is_begun,
    named_write_error,
    require_model,
    summary_of,
)
from endeavour.training.checkpoint import atomic_folder, load_model, verify
from endeavour.training.device import choose_device
from endeavour.training.distributed import launched

OWN = "taught"  # the folder, in that of a run, of the translations that it is trained on
_ANEW = "delete it, to have it trained anew, or choose another name=…"


def check_teachers(config: Config) -> None:
    """Raises `UserError` for teachers that cannot be; better known before anything is trained or thrown away."""
    teachers = [[_run_of(name, config) for name in names] for names in _teachers(config)]
    if any(len(set(runs)) < len(runs) for runs in teachers):
        raise UserError(f"teachers={config.teachers} names a run twice in one ensemble")
    if len({frozenset(runs) for runs in teachers}) < len(teachers):
        raise UserError(f"teachers={config.teachers} names a teacher twice")
    for names in _teachers(config):
        if len(names) > 1 and (Path(config.output_folder) / "+".join(names) / "model").is_dir():
            raise UserError(
                f"teachers={config.teachers}: {'+'.join(names)} means an ensemble; rename the run of that name"
            )
    for name in _names(config):
        run = _run_of(name, config)
        if run.is_relative_to(config.run_folder):
            raise UserError(f"teachers={config.teachers}: {name} is the run itself, or in it; name others")
        if not name.isdecimal():
            _require(run, config)
            verify(run / "model")
        elif (run / "config.yaml").is_file():
            changed = differing_keys(_with_seed(name, config), read_config(run / "config.yaml", newer=config))
            if changed:
                raise UserError(
                    f"{run}, a teacher of this run, was trained with other settings ({'; '.join(changed)})\n{_ANEW}"
                )


def check_lessons(config: Config, data: PreparedData) -> None:
    """Raises `UserError` for teachers that are there and learnt other text, or cannot decode together.

    Args:
        data: the text of the run without translations.
    """
    for name in filter(str.isdecimal, _names(config)):
        run = _run_of(name, config)
        if data_digest(run) not in (None, data.content_digest):
            raise UserError(
                f"{run}, a teacher of this run, was trained on other data: the corpus has changed since\n{_ANEW}"
            )
    for names in _teachers(config):
        first, *others = [
            (run, data.load_tokenizers() if name.isdecimal() else load_tokenizers(run / "model"))
            for name, run in ((name, _run_of(name, config)) for name in names)
        ]
        for other in others:
            require_same_vocabularies(*first, *other)


def train_teachers(config: Config, train: Callable[[Config], object]) -> None:
    """Calls `train` with the config of each teacher that is given by a seed; what is finished is not trained again."""
    for name in filter(str.isdecimal, _names(config)):
        train(_with_seed(name, config))
        while launched() and not summary_of(_run_of(name, config)):
            time.sleep(1)  # the main process still evaluates it


def taught_text(config: Config, data: PreparedData, progress: Progress, run: Path | None) -> list[Further]:
    """The training sentences of `data` with the translations of each teacher, made unless they are there.

    Translated is the text as it was cleaned, by each teacher as it, or the first run of an ensemble, decodes after its
    own training. What was translated before an interruption is not translated again.

    Args:
        progress: called as (what, sentences done, all).
        run: the folder of the run that is trained on them, where it is finished.

    Returns:
        For each teacher two line-aligned files, English and German.
    Raises:
        UserError: a teacher is not there, not finished, or was trained on other data or in the other direction, or
            the runs of an ensemble have other vocabularies.
    """
    if run is not None or _is_begun(config):
        kept = (run or config.run_folder) / OWN
        if not kept.is_dir():
            raise UserError(f"{kept} is missing, and the data of this run are made of it: restore it")
        verify(kept)
        stems = sorted({path.name.partition(".")[0] for path in kept.glob("*.txt")})
        return [(kept / f"{stem}.en.txt", kept / f"{stem}.de.txt") for stem in stems]
    check_teachers(config)
    check_lessons(config, data)
    folders = [_translated(names, config, data, progress) for names in _teachers(config)]
    return [(folder / "en.txt", folder / "de.txt") for folder in folders]


def keep_taught_text(config: Config, texts: Sequence[Further]) -> None:
    """Copies what `taught_text` gave into the folder of a run that begins, which then stands on its own."""
    if _is_begun(config):
        return
    with named_write_error(config.run_folder), atomic_folder(config.run_folder / OWN) as kept:
        for number, files in enumerate(texts):
            for file in files:
                shutil.copyfile(file, kept / f"{number:03d}.{file.name}")


def _is_begun(config: Config) -> bool:
    """Whether there is something of the run to go on from, and it has these teachers."""
    saved = config.run_folder / "config.yaml"
    return is_begun(config) and read_config(saved, newer=config).teachers == config.teachers


def _teachers(config: Config) -> list[list[str]]:
    """Of each teacher the seed or the name of its run; of an ensemble several."""
    return [members_of(teacher) for teacher in names_in("teachers", config.teachers)]


def _names(config: Config) -> list[str]:
    """All seeds and names in `teachers`, each once."""
    return list(dict.fromkeys(itertools.chain.from_iterable(_teachers(config))))


def _run_of(name: str, config: Config) -> Path:
    """The folder of the teacher that is called, or whose seed is, `name`."""
    if name.isdecimal():
        return config.run_folder.with_name(f"{config.run_folder.name}-teacher-{name}")
    return Path(config.output_folder) / name


def _with_seed(seed: str, config: Config) -> Config:
    """The config of the teacher that has this seed."""
    name = _run_of(seed, config).relative_to(config.output_folder).as_posix()
    training = replace(config.training, restart=False)
    return replace(config, seed=int(seed), teachers=None, name=name, training=training)


def _require(run: Path, config: Config) -> Config:
    """The config of a teacher. Raises `UserError` where it is not finished or cannot teach this run."""
    require_model(
        run, config, "`endeavour train` trains teachers that are seeds; others must be finished runs"
    )
    theirs = read_config(run / "config.yaml", newer=config)
    if theirs.direction != config.direction:
        raise UserError(f"{run} translates {theirs.direction}: it cannot teach direction={config.direction}")
    return theirs


def _translated(names: Sequence[str], config: Config, data: PreparedData, progress: Progress) -> Path:
    """The folder with the files of one teacher; another process that makes it is waited for."""
    runs = [_run_of(name, config) for name in names]
    decodings = [_require(run, config).decoding for run in runs]
    for run in runs:
        verify(run / "model")
    decoding = decodings[0]
    settings = asdict(decoding)
    if decoding.precision == "fp32":
        del settings["precision"]  # a key that came later: what was translated before is found
    weights = [file_digest(run / "model" / "weights.safetensors") for run in runs]
    recipe = {
        "text": _text_digest(data),
        "weights": weights if len(weights) > 1 else weights[0],
        "decoding": settings,
    }
    digest = sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()
    root = Path(config.output_folder)
    alone = quote(runs[0].relative_to(root).as_posix(), safe=" ,=")
    name = joined_names(runs, root) if len(runs) > 1 else alone
    folder = Path(config.data_folder) / OWN / f"{name}-{digest[:12]}"
    if folder.is_dir():
        return folder
    translators = " + ".join(run.relative_to(root).as_posix() for run in runs)
    show = partial(progress, f"translate {TRAIN} by {translators}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            if not folder.is_dir():
                _write(folder, data, runs, config, decoding, show)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(
            f"data_folder={config.data_folder} cannot be written ({reason}): choose another"
        ) from error
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    return folder


def _text_digest(data: PreparedData) -> str:
    """SHA-256, in hex, of the training sources, in which translations for other vocabularies or test sets are equal."""
    digest = sha256()
    for source in _sources(data):
        digest.update(f"{source}\n".encode())
    return digest.hexdigest()


def _sources(data: PreparedData) -> Iterator[str]:
    # Imported here: `datasets` takes seconds to import.
    from endeavour.data.tables import read_tables

    return (source for pairs in read_tables(data.folder / "text" / TRAIN) for source, _ in pairs)


def _write(
    folder: Path,
    data: PreparedData,
    runs: Sequence[Path],
    config: Config,
    decoding: DecodingConfig,
    show: Callable[[int, int], None],
) -> None:
    """Fills a folder beside `folder`, from where it stands, and gives it its name once it is whole."""
    device = choose_device(config.device)
    model, tokenizers = load_model(runs[0] / "model", device)
    joined = join_models(runs[0], model, tokenizers, runs[1:], config, device)
    if not decoding.sampling:  # whose draws depend on them
        # Smaller batches, where memory runs out, are asked for by this run's command.
        fewer = min(config.decoding.tokens_per_batch, decoding.tokens_per_batch)
        decoding = replace(decoding, tokens_per_batch=fewer)
    translator = Translator(PyTorchEngine(joined, decoding), tokenizers, WINDOW, decoding=decoding)
    unfinished = folder.with_name(f".{folder.name}.partial")
    unfinished.mkdir(exist_ok=True)
    source_file, target_file = (
        unfinished / f"{data.manifest[f'{side}_language']}.txt" for side in ("source", "target")
    )
    with source_file.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{source}\n" for source in _sources(data))
    total, count = data.splits[TRAIN]["pairs"], _cut_to_windows(target_file)
    show(count, total)
    with target_file.open("a", encoding="utf-8", newline="\n") as file:
        for text in translator.translate(islice(_sources(data), count, None)):
            file.write(f"{text}\n")
            count += 1
            if count % WINDOW == 0 or count == total:
                file.flush()
                show(count, total)
    assert count == total
    flush(unfinished)
    unfinished.rename(folder)
    flush_entry(folder.parent)


def _cut_to_windows(path: Path) -> int:
    """Leaves of an unfinished file what was translated in whole windows, and returns its lines.

    So the batches are those of a translation that was never interrupted, unless windows of very long lines are shorter.
    """
    if not path.is_file():
        return 0
    lines = length = position = 0
    with path.open("rb+") as file:
        for number, line in enumerate(file, start=1):
            position += len(line)
            if number % WINDOW == 0 and line.endswith(b"\n"):
                lines, length = number, position
        file.truncate(length)
    return lines
