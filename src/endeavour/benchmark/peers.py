"""Training with other toolkits, each in an environment of its own, in turn with ours on the same pairs.

A peer is command lines and a regular expression that finds its speed in what it prints; see conf/bench/peers. In each
turn everybody starts anew and trains twice `bench.updates` updates, the second half of which counts. Knows commands,
folders and logs; not how to install anything.
"""

import math
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from endeavour.benchmark.config import Peer
from endeavour.benchmark.contenders import make_contender
from endeavour.benchmark.measure import spread
from endeavour.benchmark.process import in_fresh_process
from endeavour.benchmark.task import Task
from endeavour.benchmark.training import precision_in, prepare_process, rate, run_updates
from endeavour.data.corpus import TRAIN, VALIDATION
from endeavour.data.dataset import ParallelDataset
from endeavour.data.prepared import PreparedData
from endeavour.model.config import ModelConfig
from endeavour.model.layers import GATED
from endeavour.storage import user_path, write_json

VALIDATION_PAIRS = 8  # most toolkits do not train without some
LAST_LINES = 4  # of the log of a peer that failed


def why_no_peer(settings: Peer, model: ModelConfig, device_type: str) -> str | None:
    """Why a peer that the user has named cannot be measured; None if it can."""
    if device_type not in settings.device:
        return f"its configuration is not for device={device_type}"
    if model.tie != "all" or model.activation in GATED:
        return "peers are measured with model.tie=all and without gated activations"
    for command in (*settings.prepare, settings.train):
        program = shlex.split(command)[0]
        if _found(program, settings) is None:
            return f"no {program} in {_bin(settings)}"
    return None


def measure_peers(
    task: Task,
    ours: Sequence[str],
    peers: Mapping[str, Peer],
    *,
    folder: Path,
    notes: list[str],
    done: Callable[[], None],
) -> list[dict[str, Any]]:
    """One row for each of ours, by the names of contenders, and each of the peers; `bench.repeats` turns of all.

    Args:
        task: of which the rows are twice the updates that count.
        folder: to which `<size>-<peer>.log` is written, and beside it a folder of the text that is deleted again;
            it must have none of that name.
        notes: gets a line for each peer that failed, which has no further turns, and no row if that was its first.
    """
    text = folder.absolute() / task.model.name  # the commands run elsewhere
    tokens = write_text(task, text)
    rates: dict[str, list[float]] = {name: [] for name in (*ours, *peers)}
    running = dict(peers)
    for turn in range(task.settings.repeats):
        for name in ours:
            rates[name].append(in_fresh_process(_second_half, name, task))
            done()
        for name, peer in tuple(running.items()):
            log = folder / f"{task.model.name}-{name}.log"
            try:
                rates[name].append(_turn(peer, task, tokens, text / name, log, first=turn == 0))
            except _Failed as failure:
                notes.append(f"{name} ({task.model.name}): {failure}; all it said: {log}")
                del running[name]
            done()
    shutil.rmtree(text)
    best = max(ours, key=lambda name: statistics.median(rates[name]))
    return [
        {
            "size": task.model.name,
            "toolkit": name.split()[0],
            "precision": peers[name].precision if name in peers else precision_in(name),
            "target_tokens_per_second": spread(measured),
            # Of each turn, as its members had the machine under the same load.
            "ours_by_this": statistics.median(
                mine / theirs for mine, theirs in zip(rates[best], measured, strict=False)
            ),
        }
        for name, measured in rates.items()
        if measured
    ]


def write_text(task: Task, folder: Path) -> dict[str, float]:
    """Writes the pairs of the task's batches as pieces, and the vocabulary in the forms that toolkits read.

    {train,valid}.{source,target}  one sentence a line, pieces separated by spaces
    vocabulary.txt                 one piece a line in the order of ids, which begins with <pad>, <unk>, <s>, </s>
    pieces.txt                     the same without those four
    counts.txt                     pieces.txt with a count, 1, behind each
    vocabulary.json                piece → id

    Returns:
        By `Peer.counts`, the target tokens (EOS counts) that are meant by one that is counted.
    """
    data = PreparedData.open(task.data)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = data.load_tokenizers()[0]
    numbers = np.unique(np.concatenate(task.rows))
    train = ParallelDataset.open(data.folder, TRAIN)
    valid = ParallelDataset.open(data.folder, VALIDATION)
    first = np.arange(min(VALIDATION_PAIRS, len(valid)))
    for split, dataset, rows in (("train", train, numbers), ("valid", valid, first)):
        for side, ids in (("source", dataset.source), ("target", dataset.target)):
            without_eos = (ids[row][:-1].tolist() for row in rows.tolist())
            lines = (" ".join(tokenizer.pieces(row)) for row in without_eos)
            _write_lines(folder / f"{split}.{side}", lines)
    vocabulary = tokenizer.all_pieces()
    pieces = vocabulary[4:]
    _write_lines(folder / "vocabulary.txt", vocabulary)
    _write_lines(folder / "pieces.txt", pieces)
    _write_lines(folder / "counts.txt", (f"{piece} 1" for piece in pieces))
    write_json(folder / "vocabulary.json", {piece: number for number, piece in enumerate(vocabulary)})
    return {"target_tokens": 1.0, "pairs": float(train.target.lengths[numbers].mean())}


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


class _Failed(Exception):
    """Why a peer has no speed, with the end of its log."""


def _turn(
    settings: Peer, task: Task, tokens: Mapping[str, float], work: Path, log: Path, *, first: bool
) -> float:
    """Target tokens/s by the last line of the peer's log that has a speed. Raises `_Failed`."""
    folders = {"text": work.parent, "work": work, "run": work / "run"}
    shutil.rmtree(folders["run"], ignore_errors=True)
    values = (
        vars(task.settings)
        | vars(task.model)
        | {
            "all_updates": 2 * task.settings.updates,
            "vocabulary": task.vocabularies[1],
            "seed": task.seed,
            "threads": torch.get_num_threads(),
        }
    )
    values["device"] = filled(settings.device[task.device.type], values | folders)
    quoted = {key: shlex.quote(str(path)) for key, path in folders.items()}

    def call(template: str) -> str:
        return _call(filled(template, values | quoted), settings, work, log, task.settings.peer_minutes)

    if first:
        work.mkdir(parents=True)
        log.unlink(missing_ok=True)
        for name, content in settings.files.items():
            (work / name).write_text(filled(content, values | folders), "utf-8")
        for command in settings.prepare:
            call(command)
    said = re.findall(settings.rate, call(settings.train))
    if not said:
        raise _Failed(f"nothing in its log is {settings.rate}")
    try:
        speed = float(said[-1].replace(",", ""))
    except ValueError:
        speed = 0.0
    if not 0 < speed < math.inf:
        raise _Failed(f"its last speed is {said[-1]!r}")
    return speed * tokens[settings.counts]


def filled(template: str, values: Mapping[str, object]) -> str:
    """The template with each {key} that is one of `values` replaced; other braces stay."""
    return re.sub(r"\{(\w+)\}", lambda found: str(values.get(found[1], found[0])), template)


def _call(command: str, settings: Peer, work: Path, log: Path, minutes: float) -> str:
    """Runs a command of a peer in `work`; returns what it says, which is added to `log`. Raises `_Failed`."""
    program, *arguments = shlex.split(command)
    path = _found(program, settings)
    assert path is not None, "asked beforehand"
    variables = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    variables |= {"PATH": f"{_bin(settings)}{os.pathsep}{os.environ.get('PATH', '')}"}
    with log.open("ab") as file:
        file.write(f"$ {command}\n".encode())
        file.flush()
        begin = file.tell()
        try:
            process = subprocess.Popen(
                [path, *arguments],
                cwd=work,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # with which the processes that it starts can be ended too
            )
        except OSError as error:
            raise _Failed(f"{program} cannot be executed ({error})") from error
        try:
            process.wait(60 * minutes)
        except subprocess.TimeoutExpired:
            raise _Failed(f"{program} did not end in bench.peer_minutes={minutes:g}") from None
        finally:
            if process.returncode is None:
                _kill(process)
    said = log.read_bytes()[begin:].decode(errors="replace")
    if process.returncode:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        raise _Failed(f"{program} ended with {process.returncode}: {' | '.join(lines[-LAST_LINES:])}")
    return said


def _kill(process: subprocess.Popen[bytes]) -> None:
    if os.name == "posix":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _bin(settings: Peer) -> Path:
    assert settings.environment is not None
    folder = user_path(settings.environment).absolute()
    return folder / ("Scripts" if os.name == "nt" else "bin")


def _found(program: str, settings: Peer) -> str | None:
    return shutil.which(program, path=str(_bin(settings)))


def _second_half(name: str, task: Task) -> float:
    """Runs in a process of its own: target tokens/s of ours over the second half of the task's batches.

    Where something is made for their shapes, it is made before.
    """
    prepare_process(name, task.device)
    dataset = task.dataset()
    contender = make_contender(name, task)
    half = len(task.rows) // 2
    run_updates(contender, dataset, task.rows * contender.passes or task.rows[:half])
    return rate(contender, dataset, task.rows[half:])
