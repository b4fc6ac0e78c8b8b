"""Test sets by sacreBLEU's names, such as wmt14: from its cache, or downloaded by it.

Knows names, directions and lines; not what is translated. The lines are those that `sacrebleu -t NAME` scores against.
"""

import socket
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from sacrebleu.dataset import DATASETS
from sacrebleu.utils import SACREBLEU_DIR, get_files, get_langpairs_for_testset, get_reference_files

from endeavour.data.text_files import text_lines
from endeavour.errors import UserError, first_line
from endeavour.evaluation.config import folder_name
from endeavour.evaluation.sets import EvaluationSet
from endeavour.storage import file_lock

TIMEOUT = 10.0  # seconds that a server may be silent: where there is no network, it is to be said soon
LABELS = ("domain", "genre", "origlang", "docid")  # of sacreBLEU's fields, those that group sentences


def standard_name(folder: str) -> str | None:
    """sacreBLEU's name of the set whose `folder_name` this is; None if there is none."""
    return next((name for name in DATASETS if folder_name(name) == folder), None)


def check_standard_sets(names: Sequence[str], direction: str) -> None:
    """Raises `UserError` where sacreBLEU has no test set of a name, or not in this direction, or one is named twice."""
    known = _sets_in(direction)
    for name in names:
        if name not in known:
            why = f"has none for {direction}" if name in DATASETS else "is none of sacreBLEU's test sets"
            listed = ", ".join(sorted(one for one in known if "/" not in one))
            raise UserError(
                f"evaluation.sacrebleu: {name} {why}; it has {listed}, and others that "
                f"`sacrebleu --list -l {direction}` lists"
            )
        if names.count(name) > 1:
            raise UserError(f"evaluation.sacrebleu: {name} is named twice")


def read_standard_set(name: str, direction: str) -> EvaluationSet:
    """The test set of a checked name, labelled by those fields of sacreBLEU's that group sentences.

    Raises:
        UserError: it is neither in the cache nor on the network, is damaged, or has several references a sentence.
    """
    cache = Path(SACREBLEU_DIR) / name
    try:
        with _one_at_a_time(cache), _short_timeout():
            fields = dict(zip(DATASETS[name].fieldnames(direction), get_files(name, direction), strict=True))
            sources = list(text_lines(Path(fields["src"])))
            targets = [list(text_lines(Path(path))) for path in get_reference_files(name, direction)]
            columns = {key: list(text_lines(Path(fields[key]))) for key in LABELS if key in fields}
    # Whatever its downloading, unpacking and parsing raises; it leaves by SystemExit where a checksum is wrong.
    except (Exception, SystemExit) as error:
        damaged = isinstance(error, SystemExit)
        reason = f"the download is damaged: delete {cache / 'raw'}" if damaged else first_line(error)
        raise UserError(_how_to_bring(name, direction, cache, reason)) from error
    if len(targets) != 1:
        family = name.partition("/")[0]
        others = [one for one in _sets_in(direction) if one.partition("/")[0] == family and one != name]
        raise UserError(
            f"evaluation.sacrebleu: {name} has {len(targets)} references a sentence, and here each has one: "
            f"choose another of its family ({', '.join(others) or 'it has none'})"
        )
    lengths = {len(lines) for lines in (sources, *targets, *columns.values())}
    if lengths == {0} or len(lengths) > 1:
        raise UserError(_how_to_bring(name, direction, cache, f"files of {sorted(lengths)} lines"))
    labels = {key: lines for key, lines in columns.items() if len(set(lines)) > 1}
    return EvaluationSet(folder_name(name), sources, targets[0], labels=labels, standard=name)


def _sets_in(direction: str) -> list[str]:
    return [name for name in DATASETS if direction in get_langpairs_for_testset(name)]


def _how_to_bring(name: str, direction: str, cache: Path, reason: str) -> str:
    return (
        f"evaluation.sacrebleu: {name} is not whole in {cache}, and was not downloaded ({reason})\n"
        f"where there is a network, `sacrebleu -t {name} -l {direction} --echo src` fills ~/.sacrebleu/{name}: copy it "
        f"to {cache}; or give its text as +evaluation.files.{folder_name(name)}=[FILE.en,FILE.de]"
    )


@contextmanager
def _short_timeout() -> Generator[None]:
    """sacreBLEU sets none for its downloads."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


@contextmanager
def _one_at_a_time(cache: Path) -> Generator[None]:
    """Of the processes of a training one makes the files, so that no other reads half of them.

    Where nothing can be written, nothing is made.
    """
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = file_lock(cache / ".endeavour.lock").acquire()
    except OSError:
        lock = nullcontext()
    with lock:
        yield
