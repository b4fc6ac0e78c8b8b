"""The runs that `teachers` names: their translations of the training text are trained on beside the text itself.

Sequence-level knowledge distillation (Kim and Rush 2016, "Sequence-Level Knowledge Distillation"), with the genuine
text kept and a copy of it from each of several teachers. A teacher of the other direction translates the targets, and
its translations are sources of genuine text. Teachers of both directions are data diversification (Nguyen et al. 2020,
"Data Diversification: A Simple Strategy For Neural Machine Translation"). A teacher may be an ensemble (Freitag et al.
2017, "Ensemble Distillation for Neural Machine Translation").

Translations are made in the data folder, where runs share them. A run takes copies into its own folder, and once it
has a checkpoint it needs neither its teachers nor those any more.
"""

import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path

import torch

from endeavour.data.corpus import TRAIN, ExtraPairs
from endeavour.data.prepared import PreparedData
from endeavour.decoding.config import CHANGE_NO_SEARCH, DecodingConfig
from endeavour.decoding.translator import WINDOW
from endeavour.errors import UserError
from endeavour.pipeline.fine_tuning import FREE
from endeavour.pipeline.imported import imported_run, run_named
from endeavour.progress import Report
from endeavour.runs.choice import require_trained, require_translators
from endeavour.runs.config import RunConfig, differing_keys, teacher_config
from endeavour.runs.evaluations import joined_names
from endeavour.runs.names import is_imported, members_of, names_in
from endeavour.runs.run import Run
from endeavour.runs.translators import (
    load_runs,
    open_translator,
    require_same_vocabularies,
    resolve_decoding,
)
from endeavour.storage import (
    atomic_folder,
    hidden_beside,
    json_digest,
    publish,
    verify,
    waiting_lock,
    write_errors,
)
from endeavour.training.device import choose_device

FOLDER = "teacher_data"  # below the data folder
_ANEW = "delete it, to have it trained anew, or choose another name=…"


@dataclass(frozen=True)
class Teachers:
    """The teachers of the run of `config`: of each the runs, several where they translate as an ensemble.

    A teacher that is called by a number is the same run with that seed, except for `teacher_settings`.
    """

    config: RunConfig

    @property
    def run(self) -> Run:
        return Run.of(self.config)

    @property
    def names(self) -> list[list[str]]:
        """Of each teacher the seeds or names of its runs."""
        return [members_of(teacher) for teacher in names_in("teachers", self.config.teachers)]

    @property
    def seeds(self) -> list[str]:
        return [name for name in self._each if name.isdecimal()]

    @property
    def runs(self) -> list[list[Run]]:
        return [[self.run_of(name) for name in names] for names in self.names]

    @property
    def _each(self) -> list[str]:
        """All seeds and names, each once."""
        return list(dict.fromkeys(itertools.chain.from_iterable(self.names)))

    def run_of(self, name: str) -> Run:
        """The teacher that is called, or whose seed is, `name`."""
        if name.isdecimal():
            return Run(self.run.root, f"{self.run.name}-teacher-{name}")
        return run_named(self.run.root, name)

    def config_of(self, seed: str) -> RunConfig:
        """The config of the teacher that has this seed."""
        return teacher_config(self.config, int(seed), self.run_of(seed).name)

    def decoding_of(self, name: str) -> DecodingConfig:
        """How the teacher that is called, or whose seed is, `name` translates."""
        if name.isdecimal():
            return self.config_of(name).decoding
        if is_imported(name):  # whose own config has the decoding of whichever run named it first
            return replace(self.config.decoding, tag=None)
        return self.run_of(name).config.decoding

    def check_runs(self) -> None:
        """Raises `UserError` for teachers that cannot be used whatever the data, before anything is trained."""
        self._check_names()
        self._check_settings()
        for name in self._each:
            run = self.run_of(name)
            if run.folder.is_relative_to(self.run.folder):
                raise UserError(
                    f"teachers={self.config.teachers}: {name} is the run itself, or in it; name others"
                )
            if is_imported(name):
                imported_run(self.config, name, any_direction=True)
            if not name.isdecimal():
                self._check_finished(run)
        for names in self.names:
            self._check_directions(names)

    def check_data(self, data: PreparedData) -> None:
        """The same for teachers that do not go with the text of the run, before anything is discarded."""
        for seed in self.seeds:
            if self.run_of(seed).was_begun:
                self._check_begun(self.run_of(seed), seed, data)
        for names in self.names:
            first, *others = [
                (run, data.load_tokenizers() if name.isdecimal() else run.load_tokenizers())
                for name, run in ((name, self.run_of(name)) for name in names)
            ]
            for other in others:
                require_same_vocabularies(*first, *other)

    def _check_names(self) -> None:
        typed, runs = f"teachers={self.config.teachers}", self.runs
        if any(len(set(members)) < len(members) for members in runs):
            raise UserError(f"{typed} names a run twice in one ensemble")
        if len({frozenset(members) for members in runs}) < len(runs):
            raise UserError(f"{typed} names a teacher twice")
        for names in self.names:
            if len(names) > 1 and self.run_of("+".join(names)).is_trained:
                raise UserError(f"{typed}: {'+'.join(names)} means an ensemble; rename the run of that name")

    def _check_settings(self) -> None:
        shape = self.config.teacher_settings.get("model", {}).keys() - set(FREE)
        if self.seeds and self.config.pretrained is not None and shape:
            raise UserError(
                f"teacher_settings.model.{min(shape)}: teachers that are seeds begin with pretrained="
                f"{self.config.pretrained} too, and so have its model"
            )

    def _check_finished(self, run: Run) -> None:
        require_trained(run, "`endeavour train` trains teachers that are seeds; others must be finished runs")
        run.verify_model()
        require_translators([run])

    def _check_directions(self, names: Sequence[str]) -> None:
        """Those of one ensemble; a seed has that of the run itself."""
        directions = {
            self.config.direction if name.isdecimal() else self.run_of(name).config.direction
            for name in names
        }
        if len(directions) > 1:
            raise UserError(
                f"teachers={self.config.teachers}: {'+'.join(names)} translate in different directions"
            )

    def _check_begun(self, run: Run, seed: str, data: PreparedData) -> None:
        if changed := differing_keys(self.config_of(seed), run.config):
            raise UserError(
                f"{run}, a teacher of this run, was trained with other settings ({'; '.join(changed)})\n{_ANEW}"
            )
        if run.data_digest not in (None, data.content_digest):
            raise UserError(
                f"{run}, a teacher of this run, was trained on other data: the corpus has changed since\n{_ANEW}"
            )


def teacher_translations(teachers: Teachers, data: PreparedData, progress: Report) -> list[ExtraPairs]:
    """The training sentences of `data` with the translations of each teacher, made unless they are there.

    Sources are translated, or targets by a teacher of the other direction, as they were cleaned, by each teacher as it,
    or the first run of an ensemble, decodes after its own training. What was translated before an interruption is not
    translated again.

    Args:
        progress: called as (what, sentences done, all).

    Returns:
        For each teacher two line-aligned files, English and German.
    """
    folders = [
        _translations(runs, teachers.decoding_of(names[0]), teachers.config, data, progress)
        for names, runs in zip(teachers.names, teachers.runs, strict=True)
    ]
    return [(folder / "en.txt", folder / "de.txt") for folder in folders]


def keep_teacher_data(run: Run, pairs: Sequence[ExtraPairs]) -> None:
    """Copies what `teacher_translations` gave into the folder of a run that begins, which is then self-contained."""
    with write_errors(run.folder, "output_folder"), atomic_folder(run.teacher_data_folder) as kept:
        for number, files in enumerate(pairs):
            for file in files:
                shutil.copyfile(file, kept / f"{number:03d}.{file.name}")


def _translations(
    runs: Sequence[Run], decoding: DecodingConfig, config: RunConfig, data: PreparedData, progress: Report
) -> Path:
    """The folder with the files of one teacher; another process that makes it is waited for."""
    weights = [run.weights_digest for run in runs]
    backward = runs[0].config.direction != config.direction
    without = () if decoding.sampling else CHANGE_NO_SEARCH
    recipe = {
        "text": _text_digest(data, backward=backward),
        "weights": weights,
        "decoding": {key: value for key, value in asdict(decoding).items() if key not in without},
    }
    folder = Path(config.data_folder) / FOLDER / f"{joined_names(runs)}-{json_digest(recipe)[:12]}"
    if folder.is_dir():
        verify(folder, f"delete {folder}, and its translations are made anew")
        return folder
    show = partial(progress, f"translate {TRAIN} by {' + '.join(run.name for run in runs)}")
    with write_errors(Path(config.data_folder), "data_folder"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with waiting_lock(folder, f"making {folder}"):
            if not folder.is_dir():
                _translate(folder, data, runs, decoding, config, show, backward=backward)
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    return folder


def _text_digest(data: PreparedData, *, backward: bool) -> str:
    """SHA-256, in hex, of what is translated, in which translations for other vocabularies or test sets are equal."""
    digest = sha256()
    for sentence in _sentences(data, backward=backward):
        digest.update(f"{sentence}\n".encode())
    return digest.hexdigest()


def _sentences(data: PreparedData, *, backward: bool) -> Iterator[str]:
    """The training sources, or targets."""
    # Imported here: `datasets` takes seconds to import.
    from endeavour.data.tables import read_tables

    return (pair[backward] for pairs in read_tables(data.folder / "text" / TRAIN) for pair in pairs)


def _translate(
    folder: Path,
    data: PreparedData,
    runs: Sequence[Run],
    decoding: DecodingConfig,
    config: RunConfig,
    show: Callable[[int, int], None],
    *,
    backward: bool,
) -> None:
    """Fills a folder beside `folder`, or continues to, and renames it once it is complete."""
    # Imported here: `datasets` takes seconds to import.
    from endeavour.data.tables import count_rows

    loaded = load_runs(runs, choose_device(config.device), decoding.tag)
    decoding = resolve_decoding(decoding, loaded.first)
    if not decoding.sampling:  # whose draws depend on the batches
        # Where memory runs out, this run's own command can lower it.
        fewer = min(config.decoding.tokens_per_batch, decoding.tokens_per_batch)
        decoding = replace(decoding, tokens_per_batch=fewer)
    translator = open_translator(runs, loaded, decoding, WINDOW)
    unfinished = hidden_beside(folder, "partial")
    unfinished.mkdir(exist_ok=True)
    sides = ("target", "source") if backward else ("source", "target")
    read, written = (unfinished / f"{data.manifest[f'{side}_language']}.txt" for side in sides)
    with read.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{sentence}\n" for sentence in _sentences(data, backward=backward))
    total, count = count_rows(data.folder / "text" / TRAIN), _cut_to_windows(written)
    show(count, total)
    with written.open("a", encoding="utf-8", newline="\n") as file:
        for text in translator.translate(islice(_sentences(data, backward=backward), count, None)):
            file.write(f"{text}\n")
            count += 1
            if count % WINDOW == 0 or count == total:
                file.flush()
                show(count, total)
    assert count == total
    publish(unfinished, folder)


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
