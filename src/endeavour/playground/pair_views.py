"""A sentence and a translation of it under a model, as the page shows them: probabilities, attention, saliency.

Knows a `Sentence` and ids; not HTTP. Numbers are rounded to what a page can show.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from endeavour.decoding.alignment import attention, saliency
from endeavour.decoding.length_penalty import length_penalty
from endeavour.decoding.scoring import PieceScore, score_pieces
from endeavour.playground.learn import learn
from endeavour.playground.learn_layers import Numbers, rounded
from endeavour.playground.learn_vocabulary import named_pieces
from endeavour.playground.schemas import AnalysisRequest, LearnRequest, Pair
from endeavour.playground.sentence import Sentence
from endeavour.playground.systems import System
from endeavour.special import BOS, EOS, UNK
from endeavour.training.log import perplexity

SCORE_DECIMALS = 5


def finite(value: float) -> float | None:
    """Rounded; None for what is no number or infinite, which JSON does not have."""
    return round(value, SCORE_DECIMALS) if math.isfinite(value) else None


def scored_rows(
    sentence: Sentence, target: Sequence[int], alternatives: int
) -> tuple[list[PieceScore], list[Numbers]]:
    """The scores of a translation, piece by piece, with so many pieces that could have stood there; and as JSON."""
    model, device = sentence.system.loaded.first, sentence.system.device
    (scores,) = score_pieces(model, [sentence.ids], [target], alternatives=alternatives + 1, device=device)
    rows: list[Numbers] = []
    for one, piece in zip(scores, sentence.target_pieces([score.token for score in scores]), strict=True):
        # Without UNK, which nobody can force.
        others = [other for other in one.alternatives if other[0] != UNK][:alternatives]
        written = sentence.target_pieces([number for number, _ in others])
        rows.append(
            {
                "id": one.token,
                "piece": piece,
                "log_probability": finite(one.log_probability),
                "surprisal": finite(-one.log_probability / math.log(2)),
                "rank": one.rank,
                "entropy": finite(one.entropy / math.log(2)),
                "alternatives": [
                    {"id": number, "piece": other, "log_probability": finite(value)}
                    for (number, value), other in zip(others, written, strict=True)
                ],
            }
        )
    return scores, rows


def show_analysis(system: System, asked: AnalysisRequest, longest: int) -> Numbers:
    """Probabilities of a translation, piece by piece, with the pieces that could have stood there instead."""
    sentence, target = _read_pair(system, asked, longest)
    scores, rows = scored_rows(sentence, target, asked.alternatives)
    total = sum(one.log_probability for one in scores)
    alpha = system.decoding.length_penalty if asked.length_penalty is None else asked.length_penalty
    return {
        "source": named_pieces(sentence.ids, sentence.source_pieces),
        "target": rows,
        "text": sentence.text_of(target),
        "log_probability": finite(total),
        "score": finite(total / length_penalty(len(scores), alpha)),
        "perplexity": finite(perplexity(-total / len(scores))),
    }


def show_attention(system: System, asked: Pair, longest: int) -> Numbers:
    """All weights, as [layer][head][query][key]."""
    sentence, target = _read_pair(system, asked, longest)
    maps = attention(system.loaded.first, sentence.ids, target)
    return {
        "source": named_pieces(sentence.ids, sentence.source_pieces),
        "target_in": named_pieces([BOS, *target], sentence.target_pieces),
        "target_out": named_pieces([*target, EOS], sentence.target_pieces),
        **{kind: rounded(weights.nan_to_num()) for kind, weights in maps._asdict().items()},
    }


def show_saliency(system: System, asked: Pair, longest: int) -> Numbers:
    """What each target piece owes to each source piece, as [target][source]."""
    sentence, target = _read_pair(system, asked, longest)
    return {"weights": rounded(saliency(system.loaded.first, sentence.ids, target).nan_to_num())}


def show_learn(system: System, asked: LearnRequest, longest: int) -> Numbers:
    """See `learn.learn`."""
    sentence, target = _read_pair(system, asked, longest)
    return learn(
        system.loaded.first,
        sentence.ids,
        target,
        kind=asked.kind,
        layer=asked.layer,
        head=asked.head,
        pieces=(sentence.source_pieces, sentence.target_pieces),
    )


def _read_pair(system: System, asked: Pair, longest: int) -> tuple[Sentence, list[int]]:
    sentence = Sentence(system, asked.text, longest)
    return sentence, sentence.target_ids(asked.target)


# Under /api: what is asked, and the function that answers it.
VIEWS: dict[str, tuple[type[Pair], Callable[[System, Any, int], Numbers]]] = {
    "analyse": (AnalysisRequest, show_analysis),
    "attention": (Pair, show_attention),
    "saliency": (Pair, show_saliency),
    "learn": (LearnRequest, show_learn),
}
