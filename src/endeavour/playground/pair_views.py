"""A sentence and a translation of it under a model, as the page shows them: probabilities, attention, saliency.

Knows one system, ids and pieces; not HTTP. Numbers are rounded to what a page can show.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from torch import Tensor

from endeavour.data.normalization import normalize
from endeavour.data.protection import protect, protect_target, restore
from endeavour.data.tokenizer import Tokenizer, placeholders_of
from endeavour.decoding.alignment import attention, saliency
from endeavour.decoding.length_penalty import length_penalty
from endeavour.decoding.scoring import score_pieces
from endeavour.errors import UserError
from endeavour.playground.learn import learn, named_pieces
from endeavour.playground.learn_layers import Numbers
from endeavour.playground.learn_vocabulary import Pieces
from endeavour.playground.schemas import AnalysisRequest, LearnRequest, Pair, Target
from endeavour.playground.systems import System
from endeavour.special import BOS, EOS, UNK
from endeavour.training.log import perplexity

CHARACTERS = 20  # of a piece; SentencePiece makes none of more than 16
DECIMALS = 5
NO_SPAN = {"", "<s>", "</s>"}
WEIGHT_DECIMALS = 4


def rounded(value: float) -> float | None:
    """None for what is no number or infinite, which JSON does not have."""
    return round(value, DECIMALS) if math.isfinite(value) else None


def read_source(system: System, text: str, longest: int) -> tuple[list[int], Sequence[str]]:
    """The ids of a source sentence, ending in EOS, and what its symbols stand for.

    Raises:
        UserError: it is empty, or has more than `longest` pieces.
    """
    protected = protect(normalize(text), placeholders_of(system.loaded.tokenizers))
    ids = encode(system, 0, "text", protected.text, longest)
    if len(ids) == 1:
        raise UserError("text is empty")
    return ids, protected.spans


def read_target(system: System, key: str, text: str, spans: Sequence[str], longest: int) -> list[int]:
    """The ids of a translation of a source with these spans, without BOS and EOS. Raises `UserError` as `encode`."""
    return encode(system, 1, key, protect_target(normalize(text), spans), longest)[:-1]


def restored(system: System, text: str, spans: Sequence[str]) -> str:
    """What a model wrote, with the spans of its source in the places of their symbols."""
    return restore(text, spans, placeholders_of(system.loaded.tokenizers))


def text_of(system: System, ids: Sequence[int], spans: Sequence[str]) -> str:
    """A translation as text."""
    return restored(system, system.loaded.tokenizers[1].decode([ids])[0], spans)


def pieces_of(system: System, spans: Sequence[str]) -> tuple[Pieces, Pieces]:
    """Ids of either side to pieces, those that stand for spans of a source as these; one for no span stays."""

    def shown(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
        written = tokenizer.pieces(ids)
        found = (restored(system, piece, spans) for piece in written)
        # <s> and </s> as tags would be taken for the begin and the end.
        return [piece if span in NO_SPAN else span for piece, span in zip(written, found, strict=True)]

    source, target = system.loaded.tokenizers
    return partial(shown, source), partial(shown, target)


def _target_ids(system: System, target: Target, spans: Sequence[str], longest: int) -> list[int]:
    """Without BOS and EOS. Raises `UserError` for ids that a translation cannot have, or too many."""
    if target.text is not None:
        return read_target(system, "target", target.text, spans, longest)
    # Models without bytes write UNK; a prefix cannot hold it.
    ids = own_ids(system, "target.ids", target.ids or [], special=(UNK,))
    return require_few(system, "target", [*ids, EOS], longest)[:-1]


def _read_pair(system: System, asked: Pair, longest: int) -> tuple[list[int], list[int], Sequence[str]]:
    source, spans = read_source(system, asked.text, longest)
    return source, _target_ids(system, asked.target, spans, longest), spans


def encode(system: System, side: int, key: str, text: str, longest: int) -> list[int]:
    """The ids of a text, ending in EOS; `side` is 0 for the source, 1 for the target.

    Raises:
        UserError: there are more than `longest`; `key` is what the text is the value of.
    """
    require_few_characters(key, text, longest)
    (ids,) = system.loaded.tokenizers[side].encode([text])
    return require_few(system, key, [*ids, EOS], longest)


def own_ids(system: System, key: str, ids: Sequence[int], special: Sequence[int] = ()) -> list[int]:
    """`ids`, all of which are of pieces, or in `special`. Raises `UserError` otherwise."""
    for number in set(ids).difference(special):
        if number >= len(system.spellings) or system.spellings[number] is None:
            raise UserError(f"{key}: {number} is not the id of a piece of a translation")
    return list(ids)


def require_few(system: System, key: str, ids: list[int], longest: int) -> list[int]:
    """`ids`, if there are at most so many, and the model has a position for each. Raises `UserError` otherwise."""
    positions = system.loaded.first.max_target_length  # the same on either side
    most = longest if positions is None else min(longest, positions)
    if len(ids) > most:
        raise UserError(f"{key} has {len(ids)} pieces with the end; the page shows at most {most}")
    return ids


def require_few_characters(key: str, text: str, longest: int) -> None:
    """Refuses, before it is split, a text that has too many pieces whatever they are. Raises `UserError`."""
    if len(text) > CHARACTERS * longest:
        raise UserError(f"{key} has {len(text):,} characters; the page shows at most {longest} pieces")


def show_analysis(system: System, asked: AnalysisRequest, longest: int) -> Numbers:
    """Probabilities of a translation, piece by piece, with the pieces that could have stood there instead."""
    source, target, spans = _read_pair(system, asked, longest)
    source_pieces, target_pieces = pieces_of(system, spans)
    (scores,) = score_pieces(
        system.loaded.first, [source], [target], alternatives=asked.alternatives + 1, device=system.device
    )
    total = sum(one.log_probability for one in scores)
    alpha = system.decoding.length_penalty if asked.length_penalty is None else asked.length_penalty
    rows: list[Numbers] = []
    for one, piece in zip(scores, target_pieces([score.token for score in scores]), strict=True):
        # Without UNK, which nobody can force.
        alternatives = [other for other in one.alternatives if other[0] != UNK][: asked.alternatives]
        others = target_pieces([number for number, _ in alternatives])
        rows.append(
            {
                "id": one.token,
                "piece": piece,
                "log_probability": rounded(one.log_probability),
                "surprisal": rounded(-one.log_probability / math.log(2)),
                "rank": one.rank,
                "entropy": rounded(one.entropy / math.log(2)),
                "alternatives": [
                    {"id": number, "piece": other, "log_probability": rounded(value)}
                    for (number, value), other in zip(alternatives, others, strict=True)
                ],
            }
        )
    return {
        "source": named_pieces(source, source_pieces),
        "target": rows,
        "text": text_of(system, target, spans),
        "log_probability": rounded(total),
        "score": rounded(total / length_penalty(len(scores), alpha)),
        "perplexity": rounded(perplexity(-total / len(scores))),
    }


def show_attention(system: System, asked: Pair, longest: int) -> Numbers:
    """All weights, as [layer][head][query][key]."""
    source, target, spans = _read_pair(system, asked, longest)
    maps = attention(system.loaded.first, source, target)
    source_pieces, target_pieces = pieces_of(system, spans)
    return {
        "source": named_pieces(source, source_pieces),
        "target_in": named_pieces([BOS, *target], target_pieces),
        "target_out": named_pieces([*target, EOS], target_pieces),
        "encoder": _weights(maps.encoder),
        "decoder": _weights(maps.decoder),
        "cross": _weights(maps.cross),
    }


def show_saliency(system: System, asked: Pair, longest: int) -> Numbers:
    """What each target piece owes to each source piece, as [target][source]."""
    source, target, _ = _read_pair(system, asked, longest)
    return {"weights": _weights(saliency(system.loaded.first, source, target))}


def _weights(weights: Tensor) -> Any:
    """As lists; rounded as doubles, because a rounded float32 would have many digits again."""
    return weights.double().round(decimals=WEIGHT_DECIMALS).nan_to_num().tolist()


def show_learn(system: System, asked: LearnRequest, longest: int) -> Numbers:
    """See `learn.learn`."""
    source, target, spans = _read_pair(system, asked, longest)
    return learn(
        system.loaded.first,
        source,
        target,
        kind=asked.kind,
        layer=asked.layer,
        head=asked.head,
        pieces=pieces_of(system, spans),
    )


# Under /api: what is asked, and the function that answers it.
VIEWS: dict[str, tuple[type[Pair], Callable[[System, Any, int], Numbers]]] = {
    "analyse": (AnalysisRequest, show_analysis),
    "attention": (Pair, show_attention),
    "saliency": (Pair, show_saliency),
    "learn": (LearnRequest, show_learn),
}
