"""Models that are asked for by name: loaded when they are first needed, a few of them kept, reloaded when they changed.

A system is a run, `NAME`, with its final weights or, while it is being trained, its newest checkpoint; or one of its
checkpoints, `NAME@UPDATE`. A run that `decoding.backward` names stays as it was loaded. Only the worker's thread may
call `get`.
"""

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import torch

from endeavour.data.tokenizer import with_tag
from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.translator import Translator
from endeavour.errors import UserError
from endeavour.runs.names import run_name
from endeavour.runs.run import Run
from endeavour.runs.translators import Loaded, open_translator, resolve_decoding
from endeavour.storage import DIGESTS
from endeavour.training.checkpoint import checkpoints_in, load_model, update_of

LONGEST_NAME = 255  # bytes of a folder's name
LONGEST_PATH = 1000  # characters of several

# Inode, modification time and size of a folder's digests, which are written anew with every model.
Stamp = tuple[int, int, int]


class NotFound(UserError):
    """There is no such run, checkpoint or evaluation, or there is none any more."""


@dataclass
class System:
    """A model in memory.

    Attributes:
        name: as it was asked for.
        decoding: how it decodes after its training, or as the command line says.
        stamp: of the folder that it was read from.
    """

    name: str
    run: Run
    loaded: Loaded
    decoding: DecodingConfig
    stamp: Stamp
    _translators: dict[int, Translator] = field(default_factory=lambda: {})

    @cached_property
    def spellings(self) -> list[bytes | None]:
        """See `Tokenizer.spellings`; of the target."""
        return self.loaded.tokenizers[1].spellings()

    @property
    def device(self) -> torch.device:
        return self.loaded.first.device

    def translator(self, num_hypotheses: int) -> Translator:
        """One that finds up to so many translations of each line, or more: the decoding's own number, or an export's.

        They are no more than the beam has places for: with a wider beam the best one might become another.
        """
        own = self.decoding
        wanted = num_hypotheses if own.sampling else min(num_hypotheses, own.beam_size)
        if own.engine == "ctranslate2":  # of which each translator has another model in memory
            wanted = own.beam_size
        count = max(wanted, own.num_hypotheses)
        if count not in self._translators:
            if own.precision != "fp32":  # of which each translator has a copy of the model
                self._translators.clear()
            decoding = resolve_decoding(replace(own, num_hypotheses=count), self.loaded.first)
            self._translators[count] = open_translator([self.run], self.loaded, decoding)
        return self._translators[count]


class Systems:
    """Those that are in memory, at most `limit`.

    Args:
        default: the run of requests that name none.
        decoding: how it decodes; other runs decode as their own configs say.
    """

    def __init__(self, default: Run, decoding: DecodingConfig, device: torch.device, limit: int) -> None:
        self.default = default
        self.decoding = decoding
        self._device, self._limit = device, limit
        self._systems: OrderedDict[str, System] = OrderedDict()

    def get(self, name: str | None) -> System:
        """The system of that name as it is on disk now.

        Raises:
            NotFound: there is none.
            UserError: it is damaged.
        """
        name = self.default.name if name is None else name
        run, folder = find_system(self.default.root, name)
        try:
            stamp = _stamp(folder)
        except OSError as error:
            self._systems.pop(name, None)
            raise NotFound(f"{folder} holds no model any more: it was deleted or moved") from error
        known = self._systems.get(name)
        if known is None or known.stamp != stamp:
            self._systems.pop(name, None)
            while len(self._systems) >= self._limit:
                self._systems.popitem(last=False)
            self._systems[name] = self._load(name, run, folder, stamp)
        self._systems.move_to_end(name)
        return self._systems[name]

    def _load(self, name: str, run: Run, folder: Path, stamp: Stamp) -> System:
        is_final = folder == run.model_folder
        model, tokenizers = run.load_model(self._device) if is_final else load_model(folder, self._device)
        run = Run(run.root, run.name)  # whose config is read anew
        decoding = self.decoding_of(run)
        if not is_final:  # a checkpoint, of which there is no export
            decoding = replace(decoding, engine="pytorch", quantization=None)
        return System(
            name=name,
            run=run,
            loaded=Loaded(model, model, with_tag(tokenizers, run.source_tag(decoding.tag))),
            decoding=decoding,
            stamp=stamp,
        )

    def decoding_of(self, run: Run) -> DecodingConfig:
        return self.decoding if run == self.default else run.config.decoding


def find_system(root: Path, name: str) -> tuple[Run, Path]:
    """The run that a system belongs to, and the folder of its weights.

    Raises:
        NotFound: there is none of that name.
        UserError: the name leads out of `root`.
    """
    whole = named_run("system", name, root)
    if whole.is_trained:
        return whole, whole.model_folder
    run_part, _, update = name.rpartition("@")
    if run_part and update.isdecimal():
        run = named_run("system", run_part, root)
        for folder in checkpoints_in(run.checkpoint_folder):
            if update_of(folder) == int(update):
                return run, folder
        raise NotFound(f"system={name}: {run} has no checkpoint of update {update}")
    # One that is still being trained.
    if whole.has_config and (checkpoints := checkpoints_in(whole.checkpoint_folder)):
        return whole, checkpoints[-1]
    raise NotFound(f"system={name}: there is no such run in {root}, or it has no checkpoint yet")


def named_run(key: str, name: str, root: Path) -> Run:
    """A run of that name, whether it exists or not. Raises as `find_system`, for a name that no folder can have."""
    fits = len(name) <= LONGEST_PATH and name.isprintable()
    if not fits or any(len(part.encode()) > LONGEST_NAME for part in name.split("/")):
        raise NotFound(f"{key}: no run can have this name")
    return Run(root, run_name(key, name, str(root)))


def _stamp(folder: Path) -> Stamp:
    status = (folder / DIGESTS).stat()
    return status.st_ino, status.st_mtime_ns, status.st_size
