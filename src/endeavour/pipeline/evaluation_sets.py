"""Which test sets a run is evaluated on: splits of its corpus, other files, standard ones, and altered copies of these;
read and checked.

Knows lines and settings; not models, scores or reports.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from endeavour.data.corpus import TRAIN, splits_to_test
from endeavour.data.files import directed, read_pairs
from endeavour.data.perturbations import GERMAN_ONLY, copy_name, draw_for, perturbed
from endeavour.data.prepared import PreparedData
from endeavour.data.text_files import aligned_lines, require_file
from endeavour.decoding.config import LONGEST_NAME
from endeavour.directions import Direction, languages_of
from endeavour.errors import UserError
from endeavour.evaluation.config import EvaluationConfig, folder_name
from endeavour.evaluation.moses import read_tokenized
from endeavour.evaluation.sets import EvaluationSet, one_line
from endeavour.evaluation.standard_sets import check_standard_sets, read_standard_set
from endeavour.storage import user_path

_SEED = 1  # of the altered copies: fixed, so that all runs are tested on the same text


def choose_evaluation_sets(
    settings: EvaluationConfig, direction: Direction, data: PreparedData | None, splits: Sequence[str]
) -> list[EvaluationSet]:
    """What is to be evaluated, checked before training rather than after it.

    Args:
        data: with the splits of the corpus; None where only other test sets are evaluated.
        splits: the names of all splits of the corpus.

    Raises:
        UserError: a split, a file or a standard set is not there, or references or labels do not belong to it.
    """
    check_evaluation(settings, direction, splits)
    sets: list[EvaluationSet] = []
    if data is not None:
        sets = [
            EvaluationSet(split, data.lines(split, "source"), data.lines(split, "target"))
            for split in _chosen(settings, splits)
        ]
    sets += [_read_files(settings, direction, name, paths) for name, paths in settings.files.items()]
    sets += [read_standard_set(name, direction) for name in settings.sacrebleu]
    sets = [
        replace(one, sources=[*map(one_line, one.sources)], references=[*map(one_line, one.references)])
        for one in sets
    ]
    sets = _with_tokenized_references(settings, direction, _with_labels(settings, sets))
    return [copy for one in sets for copy in (one, *_perturbed_copies(settings, direction, one))]


def check_evaluation(settings: EvaluationConfig, direction: Direction, splits: Sequence[str]) -> None:
    """Raises `UserError` for what is seen to be wrong before any text is read; see `choose_evaluation_sets`."""
    if GERMAN_ONLY in settings.perturbed and direction == "en-de":
        raise UserError(f"evaluation.perturbed: {GERMAN_ONLY} is for German sources; leave it out")
    check_standard_sets(settings.sacrebleu, direction)
    chosen = _chosen(settings, splits)
    _check_names(settings, chosen, splits)
    named = [*chosen, *settings.files, *map(folder_name, settings.sacrebleu)]
    listed = ", ".join(named) or "none"
    for name in settings.labels:
        if name not in named:
            raise UserError(f"evaluation.labels.{name}: this is none of the test sets: {listed}")
    tokenized = settings.tokenized_references
    if tokenized is not None and len(named) != 1:
        raise UserError(
            f"evaluation.tokenized_references={tokenized} are the references of one test set, and {listed} are "
            "evaluated: choose one with evaluation.splits=[…], evaluation.files or evaluation.sacrebleu"
        )
    beside = [*settings.labels.values(), *filter(None, [tokenized])]
    for path in chain(beside, *settings.files.values()):
        require_file(user_path(path))


def _check_names(settings: EvaluationConfig, chosen: Sequence[str], splits: Sequence[str]) -> None:
    """That each test set is there, once, by a name of its own that a folder can have."""
    if unknown := [split for split in chosen if split == TRAIN or split not in splits]:
        raise UserError(
            f"evaluation.splits: {', '.join(unknown)} is none of the corpus's "
            f"{', '.join(split for split in splits if split != TRAIN)}"
        )
    if twice := [split for split in chosen if chosen.count(split) > 1]:
        raise UserError(f"evaluation.splits: {twice[0]} is named twice")
    for name in (*chosen, *settings.files):
        if len(name) > LONGEST_NAME:
            raise UserError(
                f"evaluation: {name[:LONGEST_NAME]}… is too long a name for the folder of a test set; choose one of at "
                f"most {LONGEST_NAME} characters"
            )
    for name in settings.files:
        if name in splits:
            raise UserError(f"evaluation.files.{name}: the corpus has a split of this name; choose another")
    for name in settings.sacrebleu:
        if folder_name(name) in (*splits, *settings.files):
            raise UserError(
                f"evaluation.sacrebleu: {name} would be evaluated as {folder_name(name)}, which is what a split of the "
                "corpus or one of evaluation.files is called"
            )


def _chosen(settings: EvaluationConfig, splits: Sequence[str]) -> Sequence[str]:
    """The splits to evaluate: by default all test splits."""
    return splits_to_test(splits) if settings.splits is None else settings.splits


def _perturbed_copies(
    settings: EvaluationConfig, direction: Direction, one: EvaluationSet
) -> Iterator[EvaluationSet]:
    language = languages_of(direction)[0]
    for how in dict.fromkeys(settings.perturbed):
        pairs = [
            perturbed(pair, how, language, draw_for(pair, how, _SEED))
            for pair in zip(one.sources, one.references, strict=True)
        ]
        yield EvaluationSet(
            copy_name(one.name, how),
            [source for source, _ in pairs],
            [target for _, target in pairs],
            labels=one.labels,
            copy_of=one.name,
        )


def _with_labels(settings: EvaluationConfig, sets: Sequence[EvaluationSet]) -> list[EvaluationSet]:
    labelled = {one.name: one for one in sets}
    for name, path in settings.labels.items():
        lines = aligned_lines(user_path(path), len(labelled[name].sources), f"sentences of {name}")
        labels = [line.strip() for line in lines]
        labelled[name] = replace(labelled[name], labels={**labelled[name].labels, "label": labels})
    return list(labelled.values())


def _with_tokenized_references(
    settings: EvaluationConfig, direction: Direction, sets: list[EvaluationSet]
) -> list[EvaluationSet]:
    if settings.tokenized_references is None:
        return sets
    [one] = sets
    path = user_path(settings.tokenized_references)
    tokenized = read_tokenized(path, one.references, languages_of(direction)[1])
    return [replace(one, tokenized_references=tokenized)]


def _read_files(
    settings: EvaluationConfig, direction: Direction, name: str, paths: Sequence[str]
) -> EvaluationSet:
    read = read_pairs(
        paths,
        english_column=settings.english_column,
        german_column=settings.german_column,
        section="evaluation",
    )
    pairs = list(directed(read, direction))
    listed = ", ".join(paths) or "no file"
    if not pairs:
        raise UserError(f"evaluation.files.{name}: {listed}, and no sentence in it")
    broken = next((number for number, pair in enumerate(pairs, start=1) if "\n" in "".join(pair)), None)
    if broken is not None:
        raise UserError(f"{listed}: a line break inside a sentence (pair {broken}); put each on one line")
    sources, references = ([pair[side] for pair in pairs] for side in (0, 1))
    return EvaluationSet(name, sources, references)


def resolve_splits(asked: EvaluationConfig, trained: EvaluationConfig) -> EvaluationConfig:
    """Without splits: those that the run was evaluated on after training, or none where other test sets are given.

    Tokenized references are the run's own, and belong to what was evaluated then.
    """
    others = bool(asked.files or asked.sacrebleu)
    if asked.splits is None:
        asked = replace(asked, splits=[] if others else trained.splits)
    chosen = asked.splits or []
    evaluated = splits_to_test(chosen) if trained.splits is None else trained.splits
    same = not others and asked.splits != [] and set(chosen) <= set(evaluated)
    if not same and asked.tokenized_references == trained.tokenized_references:
        asked = replace(asked, tokenized_references=None)
    return asked
