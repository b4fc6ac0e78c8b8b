"""COMET scores that `comet-score` wrote of an evaluation's own files: read, checked and summed up.

COMET (Rei et al. 2020; `comet-score` of https://github.com/Unbabel/COMET) needs an environment of its own, so it is not
called from here. What it writes with `--to_json` is, for each file of translations, a list with an entry a sentence:
`src`, `mt`, `ref` where there were references, and `COMET`. It holds neither the name of the model that scored nor the
system score, which is the mean. Knows files and lines; not how translations were made.
"""

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from sacrebleu.significance import estimate_ci

from endeavour.errors import UserError
from endeavour.evaluation.mean_tests import RESAMPLE_BYTES, resampled_means
from endeavour.evaluation.metrics import Score, affordable
from endeavour.storage import file_digest

COMET_FILE = "comet.json"
LABEL = "COMET × 100"


@dataclass(frozen=True)
class Comet:
    """COMET of each sentence, times 100; whether it had references; and the digest of the file."""

    sentences: list[float]
    references: bool
    digest: str


def comet_signature(scores: Sequence[Comet]) -> str:
    """To be appended to that of a test: which files, with or without references."""
    digests = ",".join(one.digest[:12] for one in scores)
    return f"nrefs:{int(scores[0].references)}|{COMET_FILE}:{digests}"


def read_comet(
    folder: Path, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]
) -> Comet | None:
    """What lies in an evaluation's folder, whose files have these lines; None where there is nothing.

    Raises:
        UserError: the file is damaged, or scores other lines than these.
    """
    path = folder / COMET_FILE
    if not path.is_file():
        return None
    columns = ([line.strip() for line in lines] for lines in (sources, hypotheses, references))
    rows = list(zip(*columns, strict=True))  # as comet-score reads them
    without_references = [(source, hypothesis, None) for source, hypothesis, _ in rows]
    try:
        systems: dict[str, list[dict[str, Any]]] = json.loads(path.read_text("utf-8"))
        for segments in systems.values():
            if [(one["src"], one["mt"], one.get("ref")) for one in segments] in (rows, without_references):
                return _comet(segments, file_digest(path))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path}: not what `comet-score --to_json` writes ({type(error).__name__}: {error}); {_remedy(folder)}"
        ) from error
    raise UserError(
        f"{path}: scores of other sources, translations or references than those beside it; {_remedy(folder)}"
    )


def comet_score(comet: Comet, *, bootstrap_samples: int, seed: int) -> Score:
    """Its mean with the 95% interval of resampled sentences, mean ± half width as sacreBLEU has it."""
    values = np.asarray(comet.sentences)
    samples = affordable(bootstrap_samples, len(values), size=RESAMPLE_BYTES)
    means = resampled_means(values, samples, seed)
    mean, half_width = estimate_ci(means)
    signature = f"bs:{samples}|seed:{seed}|{comet_signature([comet])}"
    return Score(LABEL, float(values.mean()), mean - half_width, mean + half_width, signature)


def comet_command(folder: Path) -> str:
    """What writes the file, where there is a `comet-score`."""
    sources, translations, references = (
        str(folder / f"{name}.txt") for name in ("sources", "hypotheses", "references")
    )
    words = ["comet-score", "-s", sources, "-t", translations, "-r", references]
    return shlex.join([*words, "--quiet", "--only_system", "--to_json", str(folder / COMET_FILE)])


def _comet(segments: Sequence[Mapping[str, Any]], digest: str) -> Comet:
    scores = [100 * cast(float, one["COMET"]) for one in segments]
    if not all(map(math.isfinite, scores)):
        raise ValueError("a score that is not a number")
    return Comet(scores, all("ref" in one for one in segments), digest)


def _remedy(folder: Path) -> str:
    return f"delete it, or make it anew: `{comet_command(folder)}`"
