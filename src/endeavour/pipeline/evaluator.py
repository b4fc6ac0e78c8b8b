"""Test sets of a run: their translation, scores and reports.

<run>/evaluation/<test set>-<decoding>[-<engine>-<quantization>][-with-<runs>]/        see `runs.evaluations`
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import Progress

from endeavour.decoding.alignment import attention_picture
from endeavour.decoding.config import CHANGE_NO_SEARCH, DecodingConfig
from endeavour.decoding.translator import Translator
from endeavour.directions import languages_of
from endeavour.errors import UserError
from endeavour.evaluation.comet import comet_score, read_comet
from endeavour.evaluation.config import EvaluationConfig
from endeavour.evaluation.metrics import Score, score_corpus
from endeavour.evaluation.overlap import Overlap, measure_overlap
from endeavour.evaluation.result import EvaluationResult, PerturbedScores
from endeavour.evaluation.sets import EvaluationSet
from endeavour.progress import progress_bar, say
from endeavour.reports.evaluation_report import show_evaluation, write_evaluation
from endeavour.reports.figures import AttentionMap
from endeavour.runs.command_lines import play_command
from endeavour.runs.evaluations import Evaluation, decoding_label
from endeavour.runs.run import Run
from endeavour.runs.translators import Loaded, backward_runs, load_runs, open_translator, resolve_decoding
from endeavour.storage import read_lines, write_errors

Values = dict[str, dict[str, float]]  # test set → metric → value


@dataclass(frozen=True, kw_only=True)
class Evaluator:
    """Trained runs, several of which decode as an ensemble, and how they are evaluated; results go to the first one.

    `training_texts` are the folders of what they were trained on; None where one of them is not at hand.
    """

    runs: Sequence[Run]
    asked: DecodingConfig
    settings: EvaluationConfig
    device: torch.device
    training_texts: Sequence[Path] | None

    @cached_property
    def _opened(self) -> tuple[Loaded, dict[str, str], dict[str, str]]:
        """The models as on disk now, and the digests of their weights, which a training may replace meanwhile, and of
        those that choose, each by the name of its run.
        """
        own = {run.name: run.weights_digest for run in self.runs}
        backward = {run.name: run.weights_digest for run in backward_runs(self.runs[0], self.asked)}
        return load_runs(self.runs, self.device, self.asked.tag), own, backward

    @property
    def loaded(self) -> Loaded:
        return self._opened[0]

    @cached_property
    def decoding(self) -> DecodingConfig:
        """As asked for, its precision resolved."""
        return resolve_decoding(self.asked, self.loaded.first)

    def evaluate(self, test_sets: Sequence[EvaluationSet]) -> Values:
        """Translates and scores each test set, writes its folder, and prints the scores.

        Raises:
            UserError: an evaluation with other settings of the same `decoding.name`, or of other text by the same
                name, would be lost.
        """
        console = Console(stderr=True)
        if not test_sets:
            none = (
                "evaluation.splits=[], as asked for now or in training, names no test set"
                if self.settings.splits == []
                else "the corpus has no test split"
            )
            say(console, f"{none}, so there are no test scores")
            return {}
        evaluations = {one.name: self._evaluation(one.name) for one in test_sets}
        for one in test_sets:
            self._check_earlier(evaluations[one.name], one)
            with write_errors(evaluations[one.name].folder):
                evaluations[one.name].folder.mkdir(parents=True, exist_ok=True)
        translator = open_translator(self.runs, self.loaded, self.decoding)
        results: dict[str, EvaluationResult] = {}
        with progress_bar(console) as progress:
            # Altered copies first: the report of the set itself shows their scores too.
            for one in sorted(test_sets, key=lambda one: one.copy_of is None):
                folder = evaluations[one.name].folder
                with write_errors(folder):
                    hypotheses = self._hypotheses(one, evaluations[one.name], translator, progress)
                    result = self._result(one, hypotheses, folder, progress)
                    result = replace(result, perturbed=_perturbed(one, test_sets, results))
                    pictures = self._pictures(result, translator)
                    write_evaluation(folder, result, pictures, play=play_command(self.runs[0]))
                results[one.name] = result
        results = {one.name: results[one.name] for one in test_sets}
        shown = {one.name: results[one.name] for one in test_sets if one.copy_of is None}
        folders = {name: evaluations[name].folder for name in shown}
        show_evaluation(Console(soft_wrap=True), shown, folders, f"{self.runs[0].name}, {self._title}")
        return {
            name: {key: score.value for key, score in result.scores.items()}
            for name, result in results.items()
        }

    def _evaluation(self, test_set: str) -> Evaluation:
        label = decoding_label(self.decoding, self.runs[1:])
        return Evaluation(self.runs[0], f"{test_set}-{label}")

    def _check_earlier(self, evaluation: Evaluation, test_set: EvaluationSet) -> None:
        """Raises `UserError` where an evaluation of other text, or with other settings, lies in the folder."""
        folder = evaluation.folder
        for column, lines in (("sources", test_set.sources), ("references", test_set.references)):
            path = folder / f"{column}.txt"
            if path.is_file() and not _holds(path, lines):
                raise UserError(
                    f"{folder} holds an evaluation of other {column}: delete it, or choose another name than "
                    f"{test_set.name}"
                )
        if not evaluation.is_finished:
            return
        try:
            earlier = evaluation.record["decoding"]
        except UserError:  # damaged: nothing is lost with it
            return
        differing = [
            f"decoding.{key}: {earlier.get(key)} → {value}"
            for key, value in asdict(self.decoding).items()
            if earlier.get(key) != value
            and key != "quantization"  # which is part of the folder's name, as int8 where it is null
            and (key not in CHANGE_NO_SEARCH or self.decoding.sampling)
        ]
        if differing:
            raise UserError(
                f"{folder} holds an evaluation with other settings ({'; '.join(differing)}): "
                "give this one a name of its own, decoding.name=…, or delete that folder"
            )

    def _hypotheses(
        self, test_set: EvaluationSet, earlier: Evaluation, translator: Translator, progress: Progress
    ) -> list[str]:
        """The translations: new ones, or where that is asked for those of an earlier evaluation by the same model.

        That its text and settings are the same was checked before.
        """
        if self.settings.reuse_translations and earlier.is_finished:
            if earlier.record["model"] == self._description(test_set):
                return earlier.lines("hypotheses")
            say(
                progress.console,
                f"note: {earlier.folder} is of another model, so {test_set.name} is translated",
            )
        hypotheses: list[str] = []
        task = progress.add_task(f"translating {test_set.name}, {self._title}", total=len(test_set.sources))
        for hypothesis in translator.translate(test_set.sources):
            hypotheses.append(hypothesis)
            progress.update(task, completed=len(hypotheses))
        return hypotheses

    def _result(
        self, test_set: EvaluationSet, hypotheses: list[str], folder: Path, progress: Progress
    ) -> EvaluationResult:
        """Scores; the references stay untouched."""
        title = f"{test_set.name}, {self._title}"
        task = progress.add_task(f"scoring {title}", total=None)
        config = self.runs[0].config
        scores = score_corpus(
            hypotheses,
            test_set.references,
            bootstrap_samples=self.settings.bootstrap_samples,
            seed=config.seed,
            tokenized_as=languages_of(config.direction)[1] if self.settings.tokenized_bleu else None,
            tokenized_references=test_set.tokenized_references,
            standard=None if test_set.standard is None else (test_set.standard, config.direction),
        )
        comet = self._comet(test_set, hypotheses, folder, progress)
        progress.update(task, total=1, completed=1)
        return EvaluationResult(
            title=title,
            sources=test_set.sources,
            hypotheses=hypotheses,
            references=test_set.references,
            scores=scores | comet,
            lowercase=self.loaded.tokenizers[1].lowercase,
            labels=test_set.labels,
            overlap=self._overlap(test_set),
            decoding=asdict(self.decoding),
            model=self._description(test_set),
            bootstrap_samples=self.settings.bootstrap_samples,
            seed=config.seed,
        )

    def _comet(
        self, test_set: EvaluationSet, hypotheses: list[str], folder: Path, progress: Progress
    ) -> dict[str, Score]:
        """What `comet-score` made of these translations, if it lies in the folder; what is wrong with it is said."""
        try:
            comet = read_comet(folder, test_set.sources, hypotheses, test_set.references)
        except UserError as error:
            say(progress.console, f"note: no COMET: {error}")
            return {}
        if comet is None:
            return {}
        samples, seed = self.settings.bootstrap_samples, self.runs[0].config.seed
        return {"comet": comet_score(comet, bootstrap_samples=samples, seed=seed)}

    def _overlap(self, test_set: EvaluationSet) -> Overlap | None:
        if self.training_texts is None:
            return None
        lowercase = self.loaded.tokenizers[0].lowercase
        return measure_overlap(
            test_set.sources, test_set.references, self.training_texts, lowercase=lowercase
        )

    def _pictures(self, result: EvaluationResult, translator: Translator) -> list[AttentionMap]:
        """The first run's own attention for the first sentences that fit the model, whichever engine translated."""
        shown = (
            pair
            for pair in zip(result.sources, result.hypotheses, strict=True)
            if all(map(str.strip, pair)) and translator.whole(*pair)
        )
        return [
            attention_picture(self.loaded.first, self.loaded.tokenizers, *pair)
            for pair in islice(shown, self.settings.num_pictures)
        ]

    @property
    def _title(self) -> str:
        """What the translations are of, besides the run."""
        ensemble = [f"ensemble of {len(self.runs)}"] if len(self.runs) > 1 else []
        return ", ".join([decoding_label(self.decoding), *ensemble])

    def _description(self, test_set: EvaluationSet) -> dict[str, object]:
        """Which model it was, by digest; of an ensemble, which models; and what it translated."""
        engine, export = self.decoding.engine, self.decoding.export_quantization
        _, own, backward = self._opened
        (_, first), *others = own.items()
        description: dict[str, object] = {
            "run": self.runs[0].name,
            "test_set": test_set.name,
            "engine": engine if engine == "pytorch" else f"{engine}-{export}",
            "weights_sha256": first,
        }
        if others:
            description["ensemble_weights_sha256"] = dict(others)
        if backward:
            description["backward_weights_sha256"] = backward
        return description


def _holds(path: Path, lines: Sequence[str]) -> bool:
    try:
        return read_lines(path) == lines
    except UserError:  # altered
        return False


def _perturbed(
    test_set: EvaluationSet, test_sets: Sequence[EvaluationSet], results: Mapping[str, EvaluationResult]
) -> dict[str, PerturbedScores]:
    """Perturbation → what became of the copy of `test_set` that is altered so."""
    return {
        copy.name.removeprefix(f"{test_set.name}."): PerturbedScores(
            sum(one != other for one, other in zip(test_set.sources, copy.sources, strict=True)),
            {key: score.value for key, score in results[copy.name].scores.items()},
        )
        for copy in test_sets
        if copy.copy_of == test_set.name
    }
