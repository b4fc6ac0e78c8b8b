"""The pictures of docs/transformer.md, of one trained model and one sentence.

Asks `learn` and `head_habits` for the numbers, and hands them to `reports.transformer_pictures`; knows which picture
shows what, and how none of them is drawn.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from endeavour.data.tokenizer import Tokenizer, Tokenizers
from endeavour.decoding.translator import part_of_pair
from endeavour.evaluation.head_habits import head_habits
from endeavour.model.positions import RotaryPositions, SinusoidalPositions, rotate
from endeavour.model.transformer import Transformer
from endeavour.playground.learn import learn
from endeavour.playground.learn_layers import Numbers
from endeavour.reports import transformer_pictures as pictures
from endeavour.special import EOS

POSITIONS = 48  # in the picture of positions


def draw_story(
    model: Transformer,
    tokenizers: Tokenizers,
    source: str,
    target: str,
    folder: Path,
    *,
    pairs: Sequence[tuple[str, str]],
) -> list[Path]:
    """Draws all pictures.

    Args:
        model: in evaluation mode.
        source, target: the sentence that is followed through the model, and its translation.
        folder: is made if it is not there.
        pairs: lines of text with their translations, over which the habits of heads are measured: some hundreds.

    Returns:
        The files, in the order of the story.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source_ids, target_ids = _ids(tokenizers, source, target)
    ask = partial(learn, model, source_ids, target_ids, pieces=(tokenizers[0].pieces, tokenizers[1].pieces))
    encoder: list[Numbers] = [ask(kind="encoder", layer=i, head=0) for i in range(len(model.encoder))]
    decoder: list[Numbers] = [ask(kind="decoder", layer=i, head=0) for i in range(len(model.decoder))]
    cross: list[Numbers] = [ask(kind="cross", layer=i, head=0) for i in range(len(model.decoder))]
    sharpest = ask(kind="cross", layer=cross[-1]["layer"], head=_sharpest(cross[-1]))
    middle = len(target_ids) // 2
    drawn: list[Path] = []

    def at(name: str) -> Path:
        drawn.append(folder / f"{name}.png")
        return drawn[-1]

    words, cosines = _embeddings(model, tokenizers, source_ids, target_ids)
    if len(words) > 1:  # of one there is nothing to compare with
        pictures.draw_embedding(words, cosines, at("embedding"))
    else:
        (folder / "embedding.png").unlink(missing_ok=True)  # of an earlier sentence
    pictures.draw_positions(*_positions(model), at("positions"))
    pictures.draw_head(sharpest, at("head"))
    pictures.draw_scaling(sharpest, at("scaling"))
    pictures.draw_masks(encoder[-1], decoder[-1], at("masks"))
    pictures.draw_heads({"encoder": encoder[-1], "decoder": decoder[-1], "cross": cross[-1]}, at("heads"))
    pictures.draw_stream(*_growth(encoder, decoder, cross), at("stream"))
    pictures.draw_feed_forward(encoder[-1], len(source_ids) // 2, at("feed_forward"))
    pictures.draw_cross(cross[-1], at("cross"))
    pictures.draw_layers(cross[-1], at("layers"))
    pictures.draw_prediction(cross[-1], middle, at("prediction"))
    habits = head_habits(model, [_ids(tokenizers, *pair) for pair in pairs], _punctuation(tokenizers))
    shares = {
        kind: {name: _array(one) for name, one in shares.items()} for kind, shares in habits.shares.items()
    }
    pictures.draw_habits(shares, habits.even, len(pairs), at("habits"))
    return drawn


def _ids(tokenizers: Tokenizers, source: str, target: str) -> tuple[list[int], list[int]]:
    """The source's ending in EOS."""
    source_ids, target_ids, _ = part_of_pair(tokenizers, source, target)
    return [*source_ids], [*target_ids]


def _punctuation(tokenizers: Tokenizers) -> set[int]:
    """Ids of pieces that are nothing but punctuation, on either side."""

    def of(tokenizer: Tokenizer) -> set[int]:
        written = [piece.removeprefix("\u2581") for piece in tokenizer.all_pieces()]
        plain = [
            bool(piece) and not any(sign.isalnum() or sign in "<>" for sign in piece) for piece in written
        ]
        return {number for number, is_mark in enumerate(plain) if is_mark and number > EOS}

    return of(tokenizers[0]) | of(tokenizers[1])


def _sharpest(numbers: Numbers) -> int:
    """The head whose weights are least spread."""
    weights = np.array(numbers["attention"]["weights"])
    entropy = -(weights * np.log(np.maximum(weights, 1e-9))).sum(axis=-1).mean(axis=-1)
    return int(entropy.argmin())


def _embeddings(
    model: Transformer, tokenizers: Tokenizers, source: Sequence[int], target: Sequence[int]
) -> tuple[list[str], NDArray[np.float64]]:
    """Whole words of both sides, each once, and the cosines of their embeddings; of the target's if tables differ."""
    joint = model.embeddings[0] is model.embeddings[1]
    numbers: list[int] = list(dict.fromkeys([*(source if joint else []), *target]))
    named = zip(numbers, tokenizers[1].pieces(numbers), strict=True)
    words = [(number, piece[1:]) for number, piece in named if piece.startswith("\u2581") and len(piece) > 2]
    rows = model.embeddings[1].weight[[number for number, _ in words]].detach()
    unit = functional.normalize(rows.float(), dim=-1)
    return [word for _, word in words], _array(unit @ unit.T)


def _positions(model: Transformer) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Sinusoidal vectors and their cosines at the model's width; products of a rotated query and key of a head's."""
    vectors = SinusoidalPositions(model.config.width + model.config.width % 2)(0, POSITIONS)
    unit = functional.normalize(vectors, dim=-1)
    width = max(2, model.config.width // model.config.num_heads // 2 * 2)
    rotation = RotaryPositions(width)(0, POSITIONS)
    turned = rotate(torch.ones(POSITIONS, width) / width**0.5, rotation)
    return _array(vectors), _array(unit @ unit.T), _array(turned @ turned.T)


def _growth(
    encoder: Sequence[Numbers], decoder: Sequence[Numbers], cross: Sequence[Numbers]
) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]:
    """Lengths of the streams, and of what each sublayer adds relative to its stream."""
    stack = encoder[0]["stack"]
    lengths = {side: np.array(stack[side]) for side in ("encoder", "decoder")}

    def relative(answers: Sequence[Numbers], block: str) -> NDArray[np.float64]:
        sizes = [
            [np.linalg.norm(np.array(one[block][name]), axis=-1) for name in ("result", "stream")]
            for one in answers
        ]
        return np.array([result / stream for result, stream in sizes])

    added: dict[str, Any] = {
        "encoder: self-attention": relative(encoder, "attention"),
        "encoder: feed-forward": relative(encoder, "feed_forward"),
        "decoder: self-attention": relative(decoder, "attention"),
        "decoder: feed-forward": relative(decoder, "feed_forward"),
        "decoder: cross-attention": relative(cross, "attention"),
    }
    return lengths, added


def _array(values: Tensor) -> NDArray[np.float64]:
    return values.double().cpu().numpy()
