"""`endeavour pictures`: the pictures of docs/transformer.md, of a trained run and a sentence."""

from pathlib import Path

from pydantic.dataclasses import dataclass
from rich.console import Console

from endeavour.data.corpus import RARE
from endeavour.errors import UserError
from endeavour.interface import TrainedRun
from endeavour.playground.story_pictures import draw_story
from endeavour.progress import progress_bar, say
from endeavour.runs.choice import select_run
from endeavour.runs.command_lines import evaluate_command
from endeavour.runs.evaluations import Evaluation, evaluations_of
from endeavour.runs.run import Run
from endeavour.settings import STRICT
from endeavour.storage import user_path, write_errors

PAIRS = 400  # over which it is measured what single heads look at
# Of the sentence that is taken where none is named: neither too short nor too wide to be drawn.
WORDS = range(6, 11)


@dataclass(kw_only=True, config=STRICT)
class PicturesRoot:
    """Values and their meaning: conf/pictures.yaml."""

    run: str | None
    text: str | None
    translation: str | None
    output: str | None
    output_folder: str


def pictures(config: PicturesRoot) -> list[Path]:
    """Draws them, and returns the files.

    Raises:
        UserError: no such run, no evaluation of it with sentences to measure on, or an empty text.
    """
    run = select_run(config.run, Path(config.output_folder), "the pictures are of one model")
    if config.text is None and config.translation is not None:
        raise UserError('translation=… needs its sentence: text="…"')
    if config.text is not None and not config.text.strip():
        raise UserError("text=… is empty: give a sentence")
    pairs = _pairs(run)
    trained = TrainedRun([run], run.config.decoding, device="cpu")
    source, target = next((pair for pair in pairs if len(pair[0].split()) in WORDS), pairs[0])
    if config.text is not None:
        source = config.text
        target = trained.translate(source) if config.translation is None else config.translation
    folder = run.folder / "pictures" if config.output is None else user_path(config.output)
    console = Console(stderr=True)
    with write_errors(folder, "output"), progress_bar(console) as progress:
        progress.add_task("drawing", total=None)
        loaded = trained.loaded
        drawn = draw_story(loaded.first, loaded.tokenizers, source, target, folder, pairs=pairs)
    say(console, f"{len(drawn)} pictures of “{source}” → “{target}”: {folder}")
    return drawn


def _pairs(run: Run) -> list[tuple[str, str]]:
    """The first sentences and references of an evaluation that has any: of a test split, else of another split of the
    run's, else of the longest text."""

    def place(one: Evaluation) -> tuple[bool, bool, int]:
        is_test = one.test_set in run.test_splits and one.test_set != RARE
        return not is_test, one.test_set not in run.splits, -len(one.lines("sources"))

    for one in sorted(evaluations_of(run), key=place):
        pairs = list(zip(one.lines("sources"), one.lines("references"), strict=True))
        if written := [pair for pair in pairs if all(side.strip() for side in pair)][:PAIRS]:
            return written
    raise UserError(f"{run} has no evaluation with sentences to measure on: run `{evaluate_command(run)}`")
