"""The Python interface: a trained run that translates, scores, shows its attention and is evaluated; and training.

    import endeavour

    run = endeavour.load("textbook-tiny-1")
    run.translate("The old dog sleeps.")

The commands translate, evaluate and pictures use the same object. Knows the parts and how they are put together; not
the command line.
"""

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast, overload

import numpy as np
from numpy.typing import NDArray

from endeavour.config import load_config
from endeavour.decoding.config import DecodingConfig
from endeavour.decoding.translator import LONGEST_SOURCE, WINDOW, Part, Translation, Translator, part_of_pair
from endeavour.errors import UserError
from endeavour.evaluation.config import EvaluationConfig
from endeavour.overrides import quote_literal
from endeavour.runs.choice import joined, require_one_direction, select_runs
from endeavour.runs.config import RunConfig
from endeavour.runs.names import quoted
from endeavour.runs.run import Run, Summary
from endeavour.settings import validated
from endeavour.special import EOS
from endeavour.storage import user_path

if TYPE_CHECKING:  # PyTorch takes seconds to import, and an export translates without it
    import torch

    from endeavour.runs.translators import Loaded

Weights = NDArray[np.float32]


class PairAttention(NamedTuple):
    """The attention of a sentence and a translation of it; weights add up to 1 over the last dimension.

    Attributes:
        source: its pieces, EOS included.
        target: those of the translation, EOS included; row i of `decoder` and `cross` predicts piece i.
        encoder: (layers, heads, source, source).
        decoder: (layers, heads, target, target); the keys are BOS and the pieces before.
        cross: (layers, heads, target, source).
    """

    source: list[str]
    target: list[str]
    encoder: Weights
    decoder: Weights
    cross: Weights


class TrainedRun:
    """A trained run, or several that decode together as an ensemble. Models are loaded when they are first needed.

    Args:
        runs: the first gives config, history and evaluations.
        decoding: how it decodes.
        device: where it computes: auto, cpu, cuda, cuda:1 …, mps.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        decoding: DecodingConfig,
        *,
        device: str,
    ) -> None:
        self.runs = list(runs)
        self._device = device
        self._decoding = decoding

    def __repr__(self) -> str:
        return f"TrainedRun({', '.join(str(run) for run in self.runs)})"

    @property
    def name(self) -> str:
        """Of its runs, as `load` takes it."""
        return joined(self.runs)

    @property
    def folder(self) -> Path:
        """Where the run lies."""
        return self.runs[0].folder

    @property
    def output_folder(self) -> Path:
        """Where `load` finds its name."""
        return self.runs[0].root

    @property
    def config(self) -> RunConfig:
        """With what it was trained."""
        return self.runs[0].config

    @property
    def summary(self) -> Summary:
        """What summary.json holds: results, times, sizes."""
        return self.runs[0].summary

    @property
    def history(self) -> list[dict[str, Any]]:
        """Its metric log: a dictionary a line, with `kind` and `update`; see `training.log.MetricLog`."""
        from endeavour.training.log import MetricLog

        return MetricLog(self.folder / "log.jsonl").read()

    @cached_property
    def device(self) -> "torch.device":
        """Where its model computes. Raises `UserError` where there is no such device."""
        from endeavour.training.device import choose_device

        return choose_device(self._device)

    @cached_property
    def loaded(self) -> "Loaded":
        """Its model and tokenizers, in memory."""
        from endeavour.runs.translators import load_runs

        return load_runs(self.runs, self.device, self._decoding.tag)

    @cached_property
    def decoding(self) -> DecodingConfig:
        """How it decodes, its precision resolved."""
        from endeavour.runs.translators import resolve_decoding

        return resolve_decoding(self._decoding, self.loaded.first)

    def translator(self, *, window: int = WINDOW) -> Translator:
        """Translates streams of lines; `window` lines are read and decoded together."""
        if self._decoding.engine == "ctranslate2":
            from endeavour.runs.exports import open_export

            return open_export(self.runs, self._decoding, self._device, window)
        from endeavour.runs.translators import open_translator

        return open_translator(self.runs, self.loaded, self.decoding, window)

    @cached_property
    def _translator(self) -> Translator:
        """Kept: opening one checks and loads an export, or copies the model for bf16."""
        return self.translator()

    # A line is an iterable of lines too; of the two the first overload is meant.
    @overload
    def translate(self, text: str) -> str: ...  # pyright: ignore[reportOverlappingOverload]
    @overload
    def translate(self, text: Iterable[str]) -> list[str]: ...
    def translate(self, text: str | Iterable[str]) -> str | list[str]:
        """The translation of a line, or of each of several."""
        if isinstance(text, str):
            return next(self._translator.translate([text]))
        return list(self._translator.translate(_lines("translate", text)))

    def translate_n_best(self, lines: Iterable[str]) -> list[list[Translation]]:
        """The `num_hypotheses` best of each line with scores, see `load`."""
        if isinstance(lines, str):
            raise UserError("translate_n_best takes a list of lines")
        return list(self._translator.translate_n_best(_lines("translate_n_best", lines)))

    @overload
    def score(self, source: str, translation: str) -> float: ...  # pyright: ignore[reportOverlappingOverload]
    @overload
    def score(self, source: Sequence[str], translation: Sequence[str]) -> list[float]: ...
    def score(self, source: str | Sequence[str], translation: str | Sequence[str]) -> float | list[float]:
        """The natural logarithm of the probability of a translation, its end included, or of each of several.

        NaN where one is too long for the model.
        """
        from endeavour.runs.translators import score_pairs

        if isinstance(source, str) and isinstance(translation, str):
            return self.score([source], [translation])[0]
        if isinstance(source, str) or isinstance(translation, str) or len(source) != len(translation):
            raise UserError("score takes two lines, or as many translations as sources")
        scores = score_pairs(self.loaded, list(zip(source, translation, strict=True)))
        return [math.nan if values is None else sum(values) for values in scores]

    def attention(self, source: str, translation: str | None = None) -> PairAttention:
        """The attention of a pair in all layers and heads of the first run; without a translation, of its own.

        Raises:
            UserError: the pair is too long.
        """
        from endeavour.decoding import alignment

        source_ids, target_ids, _ = self._part(source, translation)
        found = alignment.attention(self.loaded.first, source_ids, target_ids)
        ours, theirs = self.loaded.tokenizers
        pieces = ours.pieces(source_ids), theirs.pieces([*target_ids, EOS])
        return PairAttention(*pieces, *(weights.numpy() for weights in found))

    def align(self, source: str, translation: str | None = None) -> list[tuple[int, int]]:
        """Which word of the source each word of a translation belongs to, by the attention of the first run.

        Raises:
            UserError: the pair is too long.
        """
        if translation is None:
            return self.align_parts(self.translate_n_best([source])[0][0].parts)
        return self.align_parts([self._part(source, translation)])

    def align_parts(self, parts: Sequence[Part]) -> list[tuple[int, int]]:
        """The same for the parts of a `Translation`."""
        from endeavour.decoding.alignment import align_translation

        return align_translation(self.loaded.first, self.loaded.tokenizers, parts)

    def evaluate(
        self,
        *,
        splits: Sequence[str] | None = None,
        files: Mapping[str, Sequence[str | Path]] | None = None,
        sacrebleu: Sequence[str] = (),
        data_folder: str | Path = "data",
        corpus_path: str | Path | None = None,
        **settings: Any,
    ) -> dict[str, dict[str, float]]:
        """Translates and scores test sets, and writes reports into the run's folder, as `endeavour evaluate` does.

        Args:
            splits: of the run's corpus; by default those it was evaluated on after its training, or none beside others.
            files: further test sets by name, each a file of pairs or two line-aligned ones, English first.
            sacrebleu: standard test sets by sacreBLEU's names, such as "wmt14".
            data_folder: prepared corpora.
            corpus_path: the folder that relative paths of the run's corpus start from now, if its files were moved.
            settings: other keys of conf/evaluation/default.yaml; by default those of the run.

        Returns:
            Test set → metric → value.
        """
        values = asdict(self.config.evaluation) | {"labels": {}, "reuse_translations": False} | settings
        values |= {"splits": splits, "files": {} if files is None else files, "sacrebleu": sacrebleu}
        checked = validated(EvaluationConfig, _with_paths_as_text(values), "evaluation")
        return self.evaluate_as(
            checked,
            data_folder=_folder("data_folder", data_folder),
            corpus_path=_with_paths_as_text(corpus_path),
        )

    def evaluate_as(
        self, settings: EvaluationConfig, *, data_folder: Path, corpus_path: str | None
    ) -> dict[str, dict[str, float]]:
        """`evaluate` with all settings given."""
        # Translating needs none of them.
        from endeavour.pipeline.data import data_of, training_texts
        from endeavour.pipeline.evaluation_sets import choose_evaluation_sets, resolve_splits
        from endeavour.pipeline.evaluator import Evaluator

        settings = resolve_splits(settings, self.config.evaluation)
        data = None
        if settings.splits != []:  # for other files alone the corpus may be gone
            data = data_of(self.runs[0], data_folder, corpus_path)
        evaluator = Evaluator(
            runs=self.runs,
            asked=self._decoding,
            settings=settings,
            device=self.device,
            training_texts=training_texts(self.runs, data_folder),
        )
        sets = choose_evaluation_sets(settings, self.config.direction, data, self.runs[0].splits)
        return evaluator.evaluate(sets)

    def _part(self, source: str, translation: str | None) -> Part:
        """Of a translation, or the run's own.

        Raises:
            UserError: the pair is too long: the attention's weights take memory with the square of its length.
        """
        own = self.translate(source) if translation is None else translation
        part = part_of_pair(self.loaded.tokenizers, source, own)
        if (longest := max(len(part.source), len(part.target) + 1)) > LONGEST_SOURCE:
            raise UserError(
                f"a sentence of {longest:,} tokens: attention is shown of at most {LONGEST_SOURCE}; cut it"
            )
        return part


def load(
    run: str | Path | Sequence[str | Path] | None = None,
    *,
    output_folder: str | Path = "outputs",
    device: "str | torch.device" = "auto",
    **decoding: Any,
) -> TrainedRun:
    """Opens a trained run.

    Args:
        run: its name or folder; "a b c" or ["a", "b", "c"] are an ensemble; None is the newest finished run.
        output_folder: where run folders lie.
        device: auto, cpu, cuda, cuda:1 …, mps.
        decoding: keys of conf/decoding/beam.yaml, such as beam_size=10; others are as the run decodes after its
            training. `backward` names runs as `run` does.

    Raises:
        UserError: there is no such run or export, a value that decoding does not accept, or runs of both directions.
    """
    runs = select_runs(_names(run), _folder("output_folder", output_folder))
    decoding["backward"] = _names(decoding.get("backward"))
    settings = validated(DecodingConfig, asdict(runs[0].config.decoding) | decoding, "decoding")
    require_one_direction(runs)
    if settings.engine == "ctranslate2":
        from endeavour.runs.exports import require_export

        require_export(runs, settings)
    return TrainedRun(runs, settings, device=str(device))


def _names(run: str | Path | Sequence[str | Path] | None) -> str | None:
    """What was given to `load`, as `run=…` takes it."""
    if run is None or isinstance(run, str):
        return run
    try:
        return " ".join(quoted(os.fspath(name)) for name in ([run] if isinstance(run, os.PathLike) else run))
    except TypeError as error:
        raise UserError(f"run={run!r}: a run's name or folder is needed, or a list of them") from error


def _lines(function: str, lines: Any) -> Iterator[str]:
    """The same, as they are read. Raises `UserError` for what is no text, such as an empty cell of a table."""
    if isinstance(lines, bytes) or not isinstance(lines, Iterable):
        raise UserError(f"{function}({lines!r}): text is needed, or a list of texts")
    for number, line in enumerate(cast("Iterable[Any]", lines)):
        if not isinstance(line, str):
            raise UserError(
                f"{function}: text is needed, and number {number} of the list, from 0, is {line!r}"
            )
        yield line


def _folder(key: str, path: str | Path) -> Path:
    try:
        return user_path(os.fspath(path))
    except TypeError as error:
        raise UserError(f"{key}={path!r}: a folder is needed, as text or a Path") from error


def _with_paths_as_text(value: Any) -> Any:
    """A value, or all that are in it, as configs have them."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {key: _with_paths_as_text(inner) for key, inner in value.items()}
    return [_with_paths_as_text(inner) for inner in value] if isinstance(value, list | tuple) else value


def train(overrides: Sequence[str] = ()) -> TrainedRun:
    """Prepares, trains and evaluates a run, or continues one, as `endeavour train` with the same words does.

    Under torchrun it returns in every process once the main one has evaluated the run.

    Args:
        overrides: such as ["model=small", "seed=2", "training.max_updates=500"].

    Raises:
        UserError: as the command.
    """
    if isinstance(overrides, str):  # which is a sequence of characters
        raise UserError(f"train takes a list of overrides: train([{overrides!r}])")
    from endeavour.pipeline.training import await_summary, train_run

    config = load_config("train", RunConfig, [quote_literal(override) for override in overrides])
    train_run(config, ["endeavour", "train", *overrides])
    run = Run.of(config)
    await_summary(run)
    return TrainedRun([run], run.config.decoding, device=config.device)
