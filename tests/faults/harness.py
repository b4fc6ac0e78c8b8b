"""One small training run, drawn from two parts in stages, and processes that carry it on until they end or are killed.

Every process is forked from this one, which has imported everything and started no thread, so that a life
begins within a tenth of a second. It then runs the command line like any other.
"""

import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot  # noqa: F401  (these two as well: torch's optimizers import the latter when they are made)
import torch._dynamo  # noqa: F401

from commands import write_splits
from endeavour.__main__ import main
from endeavour.commands import train, translate  # noqa: F401  (imported here once, for all lives)
from endeavour.training.checkpoint import checkpoints_in
from endeavour.training.log import MetricLog
from faults.killing import killed_at

WORDS = {"a": "ein", "the": "der", "dog": "Hund", "man": "Mann", "sees": "sieht", "old": "alt", "and": "und"}
PARTS = {"general": 300, "own": 100}
SIZES = PARTS | {"validation": 20, "test": 8}


@dataclass(frozen=True)
class Row:
    """One line of the table: what was done, how often, what came of it, and whether that is as promised.

    `kept` is None where this machine cannot do it, and `outcome` says why.
    """

    fault: str
    times: int
    outcome: str
    kept: bool | None


class Harness:
    """A corpus, its prepared data, and the undisturbed run that all others are compared with.

    Args:
        folder: an empty one, for everything.
        quick: a few faults of each kind, for `make test`; otherwise as many as the table is to show.
    """

    def __init__(self, folder: Path, *, quick: bool) -> None:
        self.folder = folder
        self.quick = quick
        self.draw = random.Random(4)
        self.data = folder / "data"
        self.outputs = folder / "outputs"
        updates = 60 if quick else 800
        self._settings = [
            *_corpus(folder, self.draw),
            *["tokenizer=bpe2k", "tokenizer.vocabulary_size=290", "model.width=16", "model.feed_forward=32"],
            *["model.encoder_layers=1", "model.decoder_layers=1", "model.num_heads=2", "device=cpu"],
            *["training.precision=fp32", "validation_decoding.precision=fp32", "decoding.precision=fp32"],
            *["tracking=none", "training=smoke", "training.tokens_per_batch=256", "training.keep_last=3"],
            *["training.validate_every=5", "training.validation_sentences=2", "training.average=last"],
            *["validation_decoding.max_length_ratio=0", "validation_decoding.max_length_offset=3"],
            *[
                "decoding.max_length_ratio=0",
                "decoding.max_length_offset=3",
                "evaluation.bootstrap_samples=40",
            ],
            f"training.max_updates={updates}",
            f"training.mixture=[{{until:{updates // 3 + 2},weights:{{general:1}}}},"
            f"{{until:{updates // 2},weights:{{own:1}}}},{{until:null,weights:{{general:1,own:2}}}}]",
        ]
        self.lives = 0
        code = self.live("whole")
        assert code == 0, f"the undisturbed run ended with {code}: {self.said()}"
        started = time.monotonic()
        self.live("short", before=killed_at(1))
        self.start_up = time.monotonic() - started

    def arguments(self, name: str, *extra: str) -> list[str]:
        """The command line that begins, and goes on with, the run of that name."""
        folders = [f"data_folder={self.data}", f"output_folder={self.outputs}"]
        return ["train", *self._settings, *folders, f"name={name}", *extra]

    def moment(self) -> float:
        """A random time, in seconds, within a life that is cut short: two thirds of it are start-up."""
        return self.draw.uniform(0, 1.5 * self.start_up)

    def live(
        self,
        name: str,
        *extra: str,
        kill: tuple[float, int] | None = None,
        before: Callable[[], None] | None = None,
        command: Sequence[str] | None = None,
    ) -> int:
        """One process of the run; returns its exit code, that of a signal being negative.

        Args:
            extra: more arguments.
            kill: after so many seconds, with this signal.
            before: called in the new process before the command.
            command: to be run instead of `train`.
        """
        self.lives += 1
        pid = os.fork()
        if pid == 0:
            _child(list(command or self.arguments(name, *extra)), self.folder / "said.txt", before)
        if kill is not None:
            time.sleep(kill[0])
            os.kill(pid, kill[1])  # harmless to one that has ended: it was not waited for
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def said(self) -> str:
        """What the latest process wrote to standard error and output."""
        return (self.folder / "said.txt").read_text("utf-8")

    def newest(self, name: str) -> Path:
        return checkpoints_in(self.outputs / name / "checkpoints")[-1]

    def logged(self, name: str) -> list[dict[str, Any]]:
        """The metrics of a run without its clock."""
        clock = ("seconds", "tokens_per_second")
        lines = MetricLog(self.outputs / name / "log.jsonl").read()
        return [{key: value for key, value in line.items() if key not in clock} for line in lines]

    def same(self, name: str, outputs: Path | None = None) -> bool:
        """Whether a run ended in the bytes of the undisturbed one's weights, and logged the same."""
        ours = (outputs or self.outputs) / name / "model" / "weights.safetensors"
        whole = self.outputs / "whole" / "model" / "weights.safetensors"
        if not ours.is_file() or ours.read_bytes() != whole.read_bytes():
            return False
        return outputs is not None or self.logged(name) == self.logged("whole")

    def forget(self, *folders: Path) -> None:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)

    def flip(self, file: Path) -> None:
        """Turns one bit of one byte of `file`."""
        content = bytearray(file.read_bytes())
        content[self.draw.randrange(len(content))] ^= 1 << self.draw.randrange(7)
        file.write_bytes(content)


def _child(arguments: list[str], said: Path, before: Callable[[], None] | None) -> None:
    code = 70
    try:
        output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        if before is not None:
            before()
        sys.argv = ["endeavour", *arguments]
        main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _corpus(folder: Path, draw: random.Random) -> list[str]:
    """A few hundred word-for-word translations, all different, and the overrides that name them."""
    lines: dict[str, str] = {}
    while len(lines) < sum(SIZES.values()):
        words = draw.choices(list(WORDS), k=draw.randint(3, 8))
        lines[" ".join(words)] = " ".join(WORDS[word] for word in words)
    rows = iter(lines.items())
    pairs = {name: [next(rows) for _ in range(size)] for name, size in SIZES.items()}
    splits = {name: own for name, own in pairs.items() if name not in PARTS}
    return write_splits(folder, splits, {name: pairs[name] for name in PARTS})
