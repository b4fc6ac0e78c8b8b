"""A run's folder as an object: which run it is, how far it is, its results.

config.yaml      the resolved config          run.json        see runs.starts
checkpoints/     see training.state           log.jsonl       metrics
model/           the final weights            curves.png      loss and BLEU over the updates
teacher_data/    see pipeline.distillation    attention.png   one sentence's attention over the updates
evaluation/      see runs.evaluations         summary.json    the results; only in a finished run
export/          the model for other programs
pictures/        of one sentence              wandb/, tensorboard/    what tracking writes

Knows folders; not how a run is trained or evaluated.
"""

import json
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from endeavour.data.corpus import TRAIN, VALIDATION, splits_to_test
from endeavour.data.tokenizer import Tokenizers, load_tokenizers
from endeavour.directions import languages_of
from endeavour.errors import UserError
from endeavour.runs.config import RunConfig, differing_keys, read_config, save_config
from endeavour.runs.locks import is_held, lock_folder
from endeavour.runs.starts import last_command, note_start
from endeavour.storage import file_digest, read_digests, verify, write_errors, write_json

if TYPE_CHECKING:  # without PyTorch, which takes seconds to import, an export is found and opened
    import torch

    from endeavour.model.transformer import Transformer

Summary = dict[str, Any]
# In a run's folder, and its own: what is in them is replaced and deleted.
OWN_FOLDERS = {
    "model",
    "checkpoints",
    "evaluation",
    "export",
    "pictures",
    "teacher_data",
    "wandb",
    "tensorboard",
}
WEIGHTS = "weights.safetensors"
# The status of a run that was not trained: its weights come from elsewhere, or are those of another run's checkpoints.
IMPORTED, AVERAGED = "imported", "averaged"


class OtherRun(UserError):
    """A folder holds a run of other settings or other data than are asked for.

    Attributes:
        found: what it holds, without the remedy, which is another for a run that is trained for another.
    """

    def __init__(self, found: str) -> None:
        super().__init__(f"{found}\nchoose another name=…, or training.restart=true to throw that run away")
        self.found = found


@dataclass(frozen=True)
class Run:
    """The run called `name` below the folder `root`, whether it exists or not."""

    root: Path
    name: str

    @classmethod
    def of(cls, config: RunConfig) -> "Run":
        return cls(Path(config.output_folder), config.name)

    @property
    def folder(self) -> Path:
        return self.root / self.name

    @property
    def model_folder(self) -> Path:
        return self.folder / "model"

    @property
    def checkpoint_folder(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def teacher_data_folder(self) -> Path:
        return self.folder / "teacher_data"

    @property
    def starts_file(self) -> Path:
        return self.folder / "run.json"

    def export_folder(self, format: str, quantization: str | None) -> Path:
        """One format and quantization never overwrites another. `quantization`: None where there is no choice."""
        return self.folder / "export" / (f"{format}-{quantization}" if quantization else format)

    def __str__(self) -> str:
        return str(self.folder)

    # What it is

    @cached_property
    def config(self) -> RunConfig:
        """As it was last started. Raises `UserError` where there is none, or it is damaged."""
        return read_config(self.folder / "config.yaml")

    def forget_config(self) -> None:
        """It has changed on disk."""
        self.__dict__.pop("config", None)

    @property
    def has_config(self) -> bool:
        return (self.folder / "config.yaml").is_file()

    @property
    def is_trained(self) -> bool:
        """Whether there are final weights."""
        return self.model_folder.is_dir()

    @property
    def was_begun(self) -> bool:
        """Whether there is anything that was trained here."""
        return self.has_config and (
            self._has_checkpoints or self.is_trained or (self.folder / "summary.json").exists()
        )

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do: there are results, and the weights unless they are lost for good."""
        return bool(self.summary) and (self.is_trained or not self._has_checkpoints)

    @property
    def _has_checkpoints(self) -> bool:
        return any(self.checkpoint_folder.glob("update-*"))

    @property
    def summary(self) -> Summary:
        """What summary.json holds; empty where the run is not finished. Raises `UserError` where it is damaged."""
        path = self.folder / "summary.json"
        try:
            return json.loads(path.read_text("utf-8")) if path.is_file() else {}
        except ValueError as error:
            raise UserError(
                f"{path}: damaged ({error})\ndelete it, and the command that trained the run makes it again, from its "
                "last checkpoint if there is one, or else anew"
            ) from error

    @property
    def is_imported(self) -> bool:
        """Whether its weights come from elsewhere, and so without data."""
        return self.summary.get("status") == IMPORTED

    @property
    def is_averaged(self) -> bool:
        """Whether its weights are those of checkpoints of another run."""
        return self.summary.get("status") == AVERAGED

    @property
    def restores(self) -> bool:
        """Whether it learns to restore masked sentences, and not to translate."""
        return self.has_config and self.config.augmentation.denoising > 0

    @property
    def splits(self) -> list[str]:
        """Those of its corpus."""
        # An imported run's config has the corpus of the run which asked for it first.
        return [TRAIN, VALIDATION] if self.is_imported else self.config.corpus.split_names

    @property
    def test_splits(self) -> list[str]:
        """Those among its `splits` that are neither trained on nor validated on."""
        return splits_to_test(self.splits)

    @property
    def source_language(self) -> str:
        """Of the sources: "en" or "de"."""
        return languages_of(self.config.direction)[0]

    def source_tag(self, asked: str | None) -> str | None:
        """The part whose tag the sources begin with: `asked`, which is `decoding.tag`, or `corpus.tag`.

        Raises:
            UserError: no part of that name has a tag.
        """
        corpus = self.config.corpus
        if asked is None:
            return corpus.tag
        try:
            corpus.require_tag("decoding.tag", asked)
        except ValueError as error:
            raise UserError(f"{self}: {error}") from error
        return asked

    @property
    def data_digest(self) -> str | None:
        """The content digest of the data that a finished run was trained on."""
        return self.summary.get("data_digest")

    @property
    def weights_digest(self) -> str:
        """SHA-256, in hex, of the final weights, as noted beside them. Raises `UserError` where there is none."""
        with self._model_remedy():
            digests = read_digests(self.model_folder)
            if WEIGHTS not in digests:
                raise UserError(f"{self.model_folder}: damaged, no digest of {WEIGHTS}")
            return digests[WEIGHTS]

    def verify_model(self) -> None:
        """Raises `UserError` where a file of the final model is missing or altered."""
        with self._model_remedy():
            verify(self.model_folder)

    def load_model(self, device: "torch.device") -> "tuple[Transformer, Tokenizers]":
        """The final model in evaluation mode, verified, and its tokenizers."""
        from endeavour.training.checkpoint import load_model

        with self._model_remedy():
            return load_model(self.model_folder, device)

    @property
    def model_again(self) -> str:
        """What the user can do to have the final model made again."""
        if self.is_imported:
            name = self.summary["checkpoint"]
            return f"delete {self}, and the next training that names {name} imports it again"
        if self.is_averaged:
            return f"delete {self}, and average checkpoints of {self.summary['run']} again"
        if self._has_checkpoints:
            return (
                f"delete {self.model_folder}, and the command that trained the run makes it again from its last "
                "checkpoint"
            )
        return "train the run anew, by its own command with training.restart=true"

    @property
    def continuation(self) -> str:
        """What lets an unfinished run go on, to end a message with."""
        command = last_command(self.starts_file)
        return "its own command continues it" if command is None else f"`{command}` continues it"

    @contextmanager
    def _model_remedy(self) -> Generator[None]:
        try:
            yield
        except UserError as error:
            raise UserError(f"{error}\nrestore it, or {self.model_again}") from error

    def load_tokenizers(self) -> Tokenizers:
        """Those of the newest model folder, final or of a checkpoint, that has them whole."""
        from endeavour.training.checkpoint import checkpoints_in

        for folder in (self.model_folder, *reversed(checkpoints_in(self.checkpoint_folder))):
            if _has_whole_vocabularies(folder):
                return load_tokenizers(folder)
        raise UserError(f"{self}: no model or checkpoint with whole vocabularies; restore one, or train anew")

    # Its life

    def require_same(self, config: RunConfig) -> None:
        """Raises `OtherRun` where the folder holds a run of other settings than `config`, or an averaged one."""
        if self.is_averaged:
            raise OtherRun(f"{self} was made of checkpoints of {self.summary['run']}, not trained")
        if differences := differing_keys(config, self.config):
            raise OtherRun(f"{self} holds a run with another config ({'; '.join(differences)})")

    def require_same_data(self, trained_on: str, digest: str) -> None:
        """Raises `OtherRun` where these content digests, of what it was trained on and of the data now, differ."""
        if trained_on != digest:
            raise OtherRun(f"{self} was trained on other data: the corpus has changed since")

    def lock(self) -> AbstractContextManager[object]:
        """Its lock, acquired: to be released by `with`. Raises `UserError` while another process holds it."""
        return lock_folder(self.folder, "trained")

    @property
    def is_locked(self) -> bool:
        """Whether a process is training it now, as far as this user may know."""
        return is_held(self.folder)

    def require_free_place(self) -> None:
        """Raises `UserError` where it would be in a hidden folder, or in one that another run replaces or deletes, or
        would itself replace or delete another."""
        parts = Path(self.name).parts
        if any(part.startswith(".") for part in parts):
            raise UserError(
                f"name={self.name}: a run in a hidden folder is not found again; choose another name=…"
            )
        for depth, part in enumerate(parts[1:], start=1):
            above = Run(self.root, str(Path(*parts[:depth])))
            if part in OWN_FOLDERS and above.has_config:
                raise UserError(
                    f"name={self.name}: {above.folder / part} belongs to the run {above.name}; choose another name=…"
                )
        for own in sorted(OWN_FOLDERS):
            if Run(self.root, f"{self.name}/{own}").has_config:
                raise UserError(
                    f"name={self.name}: {self.folder / own} is a run, and would be this one's folder; choose another "
                    "name=…, or move it"
                )

    def begin(self, config: RunConfig, device: "torch.device", command: Sequence[str]) -> None:
        """Makes the folder, and writes config and provenance. Raises `UserError` if it cannot be written."""
        with write_errors(self.folder, "output_folder"):
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / "summary.json").unlink(missing_ok=True)  # of a model that was lost
            save_config(config, self.folder / "config.yaml")
            note_start(self.starts_file, device, command)
        self.forget_config()

    def finish(self, summary: Summary) -> None:
        write_json(self.folder / "summary.json", summary)


def _has_whole_vocabularies(folder: Path) -> bool:
    try:
        digests = read_digests(folder)
        return all(file_digest(folder / name) == digests[name] for name in ("source.model", "target.model"))
    except (OSError, UserError, KeyError):  # damaged, which is reported by those who need all of it
        return False
