"""What `gpu.py` runs: a command of `endeavour`, of pip or of pytest each, and what is kept of its files.

Knows `endeavour`'s commands and files, none of its modules. A rehearsal runs the same commands on the CPU at toy size.
"""

import json
import re
import xml.etree.ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# A model that is computed faster than its kernels are launched one by one.
SMALL = ["bench.sizes=[tiny512]", "bench.tokens_per_batch=4096"]
# What `best` trains.
SYSTEM = ["best", "best-teacher-1", "best-teacher-2"]
# In the layout of Multi30k; what a rehearsal trains on.
TOY = {"train": 300, "val": 20, "test_2016_flickr": 20}
# Importing these for processes of their own would take a rehearsal most of its time.
TRAINED = "bench.references=[torch,huggingface]"
NOT_REHEARSED = ("bench.sizes", "bench.tokens", "bench.cuda_graphs")


@dataclass(frozen=True)
class Place:
    """Where a step finds what it needs.

    Attributes:
        out: the folder of results; each step has a folder of its own in it.
        text: Multi30k's files, train.en and so on, or None.
    """

    out: Path
    wheels: Path | None
    text: Path | None
    rehearse: bool

    @property
    def device(self) -> str:
        return "cpu" if self.rehearse else "cuda"

    def folders(self, step: str) -> list[str]:
        """Overrides of every command of `endeavour`."""
        return [
            f"device={self.device}",
            f"data_folder={literal(self.out / 'data')}",
            f"output_folder={literal(self.out / step)}",
        ]


def literal(path: Path) -> str:
    """As one word of Hydra's grammar: `endeavour.overrides.literal`, whose packages are not yet installed here."""
    unresolved = re.sub(r"(\\*)\$\{", r"\1\1\\${", str(path))
    return "'" + re.sub(r"(\\*)'", r"\1\1\\'", unresolved) + "'"


@dataclass(frozen=True)
class Step:
    """One command.

    Attributes:
        seconds: after which it is stopped.
        command: its words, after `python`; None where something is missing for it, which `needs` names.
        results: what of its files goes into gpu.json.
    """

    seconds: int
    command: Callable[[Place, str], list[str] | None]
    results: Callable[[Path], dict[str, Any]]
    needs: str = ""


def _install(place: Place, step: str) -> list[str] | None:
    if place.wheels is None:
        return None
    wheels = [str(path) for path in sorted(place.wheels.glob("*.whl"))]
    options = ["--no-index", "--no-deps", "--no-compile", "--upgrade", "--quiet"]
    return ["-m", "pip", "install", *options, "--target", str(place.out / step), *wheels]


def _tests(place: Place, step: str) -> list[str]:
    """A newer or older torch warns of other things, and a file may need what is not there: no failures here."""
    folders = ["tests/model", "tests/decoding", "tests/training"]
    which = ["tests/training/test_loss.py"] if place.rehearse else folders
    options = ["-m", "device", f"--device={place.device}", "-W", "default", "-p", "no:cacheprovider"]
    options += ["--continue-on-collection-errors", f"--junitxml={place.out / step / 'tests.xml'}"]
    return ["-m", "pytest", *which, *options]


def _bench(*overrides: str) -> Callable[[Place, str], list[str]]:
    def command(place: Place, step: str) -> list[str]:
        words = ["-m", "endeavour", "bench", f"name={step}", *place.folders(step), "model=base", "bench=gpu"]
        if not place.rehearse:
            return [*words, *overrides]
        parts = [word for word in overrides if word != TRAINED and not word.startswith(NOT_REHEARSED)]
        small = ["bench=smoke", "bench.parts=[training]", "bench.references=[]", "bench.precisions=[bf16]"]
        return [*words, *small, "bench.repeats=1", *_toy_corpus(place), *parts]

    return command


def _train(experiment: str, *rehearsed: str) -> Callable[[Place, str], list[str] | None]:
    def command(place: Place, step: str) -> list[str] | None:
        if place.text is None and not place.rehearse:
            return None
        words = ["-m", "endeavour", "train", f"experiment={experiment}", f"name={step}", "tracking=none"]
        words += place.folders(step)
        if not place.rehearse:
            return [*words, f"corpus.path={literal(place.text)}"]
        tiny = ["model.width=16", "model.num_heads=2", "model.feed_forward=32"]
        tiny += ["corpus.held_out_rare=20", "evaluation.bootstrap_samples=40"]
        tiny += ["training.max_updates=4", "training.validate_every=2"]
        return [*words, *_toy_corpus(place), *tiny, *rehearsed]

    return command


def _ensemble(place: Place, step: str) -> list[str] | None:
    """Of all models of the step `best`."""
    trained = [(place.out / "best" / name / "summary.json").is_file() for name in SYSTEM]
    if not all(trained) or (place.text is None and not place.rehearse):
        return None
    words = ["-m", "endeavour", "evaluate", f"run={' '.join(SYSTEM)}", *place.folders("best")]
    text = place.out / "toy" if place.rehearse else place.text  # quoted by `evaluate` itself
    return [*words, f"corpus_path={text}", "evaluation.splits=[validation,validation_rare,test]"]


def _toy_corpus(place: Place) -> list[str]:
    return ["corpus=multi30k", f"corpus.path={literal(place.out / 'toy')}", "tokenizer.vocabulary_size=290"]


def _bench_results(folder: Path) -> dict[str, Any]:
    return json.loads(next(folder.glob("bench/*/bench.json")).read_text("utf-8"))


def _test_results(folder: Path) -> dict[str, Any]:
    suite = xml.etree.ElementTree.parse(folder / "tests.xml").getroot()[0]
    failed = [case for case in suite.iter("testcase") if {"failure", "error"} & {child.tag for child in case}]
    counts = {key: int(suite.attrib[key]) for key in ("tests", "failures", "errors", "skipped")}
    return counts | {"failed": [f"{case.get('classname')}::{case.get('name')}" for case in failed]}


def _run_results(folder: Path) -> dict[str, Any]:
    run = folder / folder.name
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]
    last = {line["kind"]: line for line in lines if line["kind"] in ("train", "validation")}
    summary = run / "summary.json"
    return last | ({"summary": json.loads(summary.read_text("utf-8"))} if summary.is_file() else {})


def _taught_results(folder: Path) -> dict[str, Any]:
    """Of the teachers too, which may be all that there is yet."""
    teachers = sorted(folder.glob("*-teacher-*/summary.json"))
    found = {"teachers": [json.loads(summary.read_text("utf-8")) for summary in teachers]}
    return found | (_run_results(folder) if (folder / folder.name / "log.jsonl").is_file() else {})


def _ensemble_results(folder: Path) -> dict[str, Any]:
    scores = (folder.parent / "best" / SYSTEM[0] / "evaluation").glob("*-with-*/scores.json")
    return {path.parent.name: json.loads(path.read_text("utf-8")) for path in sorted(scores)}


def _nothing(_: Path) -> dict[str, Any]:
    return {}


# The most telling ones first: what comes last is lost where time runs out.
STEPS = {
    "install": Step(90, _install, _nothing, "--wheels: what the Python that runs this has is used"),
    "tests": Step(240, _tests, _test_results),
    "base-eager": Step(200, _bench("bench.compile=never", TRAINED, "bench.profile=true"), _bench_results),
    "multi30k": Step(480, _train("multi30k"), _run_results, "--text"),
    "base-compiled": Step(480, _bench("bench.compile=always"), _bench_results),
    "small": Step(200, _bench(*SMALL, TRAINED), _bench_results),
    "small-launched": Step(
        200, _bench(*SMALL, "bench.cuda_graphs=never", "bench.compile=never"), _bench_results
    ),
    "decoding": Step(300, _bench("bench.parts=[decoding]", "bench.references=[huggingface]"), _bench_results),
    "decoding-graphs": Step(
        200, _bench("bench.parts=[decoding]", "decoding.cuda_graphs=true"), _bench_results
    ),
    "big-eager": Step(200, _bench("bench.sizes=[big]", "bench.compile=never"), _bench_results),
    "big-compiled": Step(480, _bench("bench.sizes=[big]", "bench.compile=always"), _bench_results),
    "base-graphs": Step(
        480, _bench("bench.compile=always", "bench.cuda_graphs=always", "bench.profile=true"), _bench_results
    ),
    "growth": Step(200, _bench("bench.parts=[growth]", "bench.compile=never"), _bench_results),
    "ctranslate2": Step(
        200, _bench("bench.parts=[decoding]", "bench.references=[ctranslate2]"), _bench_results
    ),
    "best": Step(
        600,
        _train(
            "multi30k_best",
            *(f"teacher_settings.training.{key}" for key in ("max_updates=4", "validate_every=2")),
        ),
        _taught_results,
        "--text",
    ),
    "ensemble": Step(100, _ensemble, _ensemble_results, "--text, and the models of best"),
}


def write_toy_text(folder: Path) -> None:
    """Pairs of four words, in the files that `corpus=multi30k` reads from a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    words = {"the": "der", "dog": "Hund", "man": "Mann", "sees": "sieht", "old": "alte", "green": "grüne"}
    for split, count in TOY.items():
        english = [
            " ".join(list(words)[number // 6**place % 6] for place in range(4)) for number in range(count)
        ]
        german = [" ".join(words[word] for word in line.split()) for line in english]
        for language, lines in (("en", english), ("de", german)):
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
