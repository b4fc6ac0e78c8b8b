"""Attention, saliency and word alignment of a pair: as the model computes them, and without a trace in it."""

from typing import Any

import pytest
import torch
from echo import WORD_START, Letters
from reference import random_model, random_sources

from configs import run_config
from endeavour.data.protection import symbols
from endeavour.data.tokenizer import Tokenizer
from endeavour.data.tokenizer_training import train_tokenizer
from endeavour.decoding import alignment
from endeavour.decoding.alignment import (
    align_translation,
    align_words,
    attention,
    attention_picture,
    saliency,
    words_of_pieces,
)
from endeavour.decoding.translator import Part, part_of_pair
from endeavour.special import BOS, EOS

TARGET = [7, 4, 11]


def test_attention_has_all_layers_and_heads_of_the_three_kinds() -> None:
    model = random_model(12)
    (source,) = random_sources(12, [5]).tolist()
    found = attention(model, source, TARGET)
    assert found.encoder.shape == (1, 4, 6, 6)
    assert found.decoder.shape == (2, 4, 4, 4)
    assert found.cross.shape == (2, 4, 4, 6)
    maps = model.attention_maps(torch.tensor([source]), torch.tensor([[BOS, *TARGET]]))
    for ours, theirs in zip(found, maps, strict=True):
        assert torch.equal(ours, theirs[:, 0])
        assert ours.sum(dim=-1) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_saliency_is_the_gradient_of_each_token_alone_times_the_input(positions: str) -> None:
    model = random_model(12, seed=3, positions=positions)
    (source,) = random_sources(12, [4]).tolist()
    found = saliency(model, source, TARGET)
    assert found.shape == (4, 5)
    ids, target_in = torch.tensor([source]), torch.tensor([[BOS, *TARGET]])
    for place, token in enumerate([*TARGET, EOS]):
        embedded = model.embed_source(ids).detach().requires_grad_()
        logits = model.project(model.decode(target_in, model.encode(ids, embedded=embedded)))
        logits[0, place].log_softmax(dim=-1)[token].backward()
        assert embedded.grad is not None
        sizes = (embedded.grad * embedded).sum(dim=-1)[0].abs().detach()
        torch.testing.assert_close(found[place], sizes / sizes.sum(), rtol=1e-3, atol=1e-5)
    model.zero_grad()
    with torch.inference_mode():
        torch.testing.assert_close(saliency(model, source, TARGET), found)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_saliency_of_a_long_translation_takes_the_memory_of_a_few_places(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, target = random_model(12, seed=3), [*range(4, 11)] * 3
    rows: list[int] = []
    decode = model.decode

    def counted(target_in: torch.Tensor, *others: Any) -> torch.Tensor:
        rows.append(len(target_in))
        return decode(target_in, *others)

    monkeypatch.setattr(model, "decode", counted)
    found = saliency(model, [5, 6, EOS], target)
    assert rows == [8, 8, 6]
    monkeypatch.setattr(alignment, "PLACES_AT_ONCE", len(target) + 1)
    torch.testing.assert_close(saliency(model, [5, 6, EOS], target), found)


def test_words_align_by_the_layer_before_the_last() -> None:
    wrong = torch.tensor([[0.0, 0.0, 0.0, 1.0]] * 4)
    right = torch.tensor([[0.1, 0.5, 0.3, 0.1], [0.7, 0.1, 0.1, 0.1], [0.8, 0.1, 0.0, 0.1], [0.0, 0, 0, 1]])
    even = torch.full((4, 4), 0.25)
    cross = torch.stack([torch.stack([layer, even]) for layer in (wrong, right, wrong)])
    # Three source pieces, the last two one word; EOS is no word, however much it is looked at.
    assert align_words(cross, [0, 1, 1], [0, 1, 1]) == [(1, 0), (0, 1)]
    assert align_words(cross[1:2], [0, 1, 2], [0, 1, 1]) == [(1, 0), (0, 1)]
    assert align_words(cross[:, :, :1], [0, 1, 1], []) == []
    assert align_words(cross[:, :, :, :1], [], [0, 1, 2]) == []
    assert align_words(cross, [0, 2, 2], [0, 2, 2]) == [(2, 0), (0, 2)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    text = [f"Das Haus {i} hat Häute wie {i * 7}." for i in range(200)]
    return train_tokenizer(text, run_config(["tokenizer.vocabulary_size=300"]).tokenizer)


def test_the_words_of_a_line_in_parts_are_counted_through(tokenizer: Tokenizer) -> None:
    model = random_model(300, seed=2)
    texts = [("Das Haus hat Häute.", "Häute wie Haus."), ("wie", ""), ("", "Das"), ("Das wie 7", "Das Haus")]
    parts = [
        Part([*tokenizer.encode([source])[0], EOS], tokenizer.encode([target])[0]) for source, target in texts
    ]
    expected: list[tuple[int, int]] = []
    starts = ((0, 0), (4, 3), (5, 3), (5, 4))
    for part, (source_start, target_start) in zip(parts, starts, strict=True):
        words = [words_of_pieces(tokenizer, ids, ()) for ids in (part.source[:-1], part.target)]
        found = align_words(attention(model, part.source, part.target).cross, *words)
        expected += [(source + source_start, target + target_start) for source, target in found]
    assert align_translation(model, (tokenizer, tokenizer), parts) == expected
    assert [target for _, target in expected] == [0, 1, 2, 4, 5], "no source, no word to belong to"
    assert align_translation(model, (tokenizer, tokenizer), []) == []


def test_everything_is_made_on_the_models_device() -> None:
    model = random_model(12, seed=1)
    expected = saliency(model, [5, 6, EOS], TARGET)
    with torch.device("meta"):
        found = saliency(model, [5, 6, EOS], TARGET)
        maps = attention(model, [5, 6, EOS], TARGET)
    torch.testing.assert_close(found, expected)
    assert {weights.device.type for weights in maps} == {"cpu"}


def test_words_of_pieces_are_those_that_spaces_separate(tokenizer: Tokenizer) -> None:
    for line in ("Das Haus hat 😀 Häute.", "Das", "Häuteßhaus wie 12345 das", ""):
        (ids,) = tokenizer.encode([line])
        words = words_of_pieces(tokenizer, ids, ())
        assert len(words) == len(ids)
        assert words == sorted(words)
        gathered = [
            tokenizer.decode([[i for i, w in zip(ids, words, strict=True) if w == n]])[0]
            for n in range(len(line.split()))
        ]
        assert gathered == line.split()


def test_a_symbol_counts_as_the_words_that_it_stands_for() -> None:
    """Alignments are of the words of the text, which has the spans back."""
    text = [f"Das Haus {i} hat Häute wie {i * 7}." for i in range(200)]
    marked = train_tokenizer(text, run_config(["tokenizer.vocabulary_size=310"]).tokenizer, symbols(3))
    line = 'Das <a href="x y">Haus</a> hat'
    source, target, spans = part_of_pair((marked, marked), line, line)
    assert spans == ['<a href="x y">', "</a>"]
    pieces = [piece for piece in marked.pieces(target) if "⟦" in piece]
    assert pieces == ["⟦1⟧", "⟦2⟧"]
    words = words_of_pieces(marked, target, spans)
    place = dict(zip(marked.pieces(target), words, strict=True))
    assert (place["⟦1⟧"], place["⟦2⟧"], words[-1]) == (3, 3, 4)
    assert words_of_pieces(marked, source[:-1], spans) == words


def test_an_attention_picture_is_of_the_last_layer_the_mean_of_its_heads() -> None:
    """Row i shows where the decoder looked when it wrote target piece i."""
    model = random_model(150, seed=2, decoder_layers=3)
    tokenizers = Letters(), Letters(20)
    with torch.device("meta"):  # whatever the default is, on the model's device
        picture = attention_picture(model, tokenizers, "abc de", "fg h")  # type: ignore[arg-type]
    source, target, weights = picture
    assert source == [f"{WORD_START}a", "b", "c", f"{WORD_START}d", "e", ""]
    assert target == [f"{WORD_START}f", "g", f"{WORD_START}h", ""]
    source_ids, target_ids = (
        [*tokenizer.encode([text])[0], EOS]
        for tokenizer, text in zip(tokenizers, ("abc de", "fg h"), strict=True)
    )
    maps = model.attention_maps(torch.tensor([source_ids]), torch.tensor([[BOS, *target_ids[:-1]]]))
    assert len(maps.cross) == 3
    heads = maps.cross[2][0]
    assert heads.shape == (4, 4, 6)
    torch.testing.assert_close(torch.tensor(weights), sum(heads) / 4)
