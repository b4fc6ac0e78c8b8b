"""Forced prefixes: against a slow search that is given the prefix, and as text that ends inside a word."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import (
    assert_same,
    log_probability_of,
    random_model,
    random_sources,
    score_of,
    search,
    simple_search,
)

from configs import run_config
from endeavour.data.tokenizer import Tokenizer
from endeavour.data.tokenizer_training import train_tokenizer
from endeavour.decoding.engine import Hypothesis
from endeavour.decoding.prefix import ForcedPrefix, Prefix, typed_prefix
from endeavour.errors import UserError
from endeavour.model.transformer import Transformer
from endeavour.special import EOS

# What the ids of a vocabulary of 12 spell: special ids, two bytes, pieces, one of which is spelt twice.
SPELLINGS = [None, None, None, None, b"a", b"b", b"a", b"ab", b"abc", b"\xc3", b"ba", b"\xc3\xa4"]


def forced(ids: tuple[int, ...] = (), text: bytes = b"") -> ForcedPrefix:
    return ForcedPrefix(Prefix(ids, text), SPELLINGS)


def spelt(ids: list[int]) -> bytes:
    return b"".join(SPELLINGS[number] or b"" for number in ids)


@pytest.mark.parametrize("beam", [1, 3])
def test_each_sentence_continues_its_own_prefix_as_the_simple_search_does(beam: int) -> None:
    model = random_model(12, seed=beam)
    for length, ids in ((5, (7, 5)), (1, ()), (8, (4, 4, 11, 8, 5, 6, 7, 9)), (1, (10,) * 4), (3, (9, 4))):
        source = random_sources(12, [length])
        (found,) = search(model, source, beam_size=beam, num_hypotheses=beam, prefix=forced(ids))
        limit = max(int(1.5 * length + 2), len(ids))
        expected = simple_search(model, source, beam, limit, 0.6, prefix=list(ids))
        assert_same(found, expected[:beam])


@pytest.mark.parametrize("seed", range(4))
def test_greedy_decoding_continues_a_prefix_of_its_own_result_with_the_rest_of_it(seed: int) -> None:
    model = random_model(40, seed=seed)
    for length in (7, 4, 6):
        source = random_sources(40, [length])
        (free,) = search(model, source, beam_size=1)
        for count in range(len(free[0].ids) + 1):
            prefix = ForcedPrefix(Prefix(tuple(free[0].ids[:count])), [None] * 4 + [b"x"] * 36)
            (found,) = search(model, source, beam_size=1, prefix=prefix)
            assert_same(found, free)


def test_a_whole_translation_as_prefix_has_the_score_of_the_search() -> None:
    model = random_model(12, seed=1)
    source = random_sources(12, [6])
    ids = [7, 4, 11]
    (found,) = search(model, source, beam_size=12, num_hypotheses=12, prefix=forced((7, 4, 11)))
    (whole,) = (one for one in found if one.ids == ids)
    value = log_probability_of(model, source, ids)
    assert whole.log_probability == pytest.approx(value, abs=1e-4)
    at_limit = search(model, source, limit=0, prefix=forced((7, 4, 11)))
    assert_same(at_limit[0], [Hypothesis(ids, score_of(value, ids, 0.6), value)])


@pytest.mark.parametrize("text", [b"abb", b"\xc3\xa4b", b"b"])
def test_typed_text_may_be_split_in_any_way_and_its_last_piece_may_say_more(text: bytes) -> None:
    model = random_model(12, seed=5)
    source = random_sources(12, [5])
    wide = {"num_hypotheses": 1000, "beam_size": 1000, "limit": 3}
    (found,) = search(model, source, **wide, prefix=forced((10,), text))
    assert all(one.ids[0] == 10 and spelt(one.ids[1:]).startswith(text) for one in found)
    # Every sentence of up to three tokens that agrees with it is there: the beam has room for all.
    free = {tuple(one.ids): one for one in search(model, source, **wide)[0] if 1 not in one.ids}
    wanted = {ids for ids in free if ids[:1] == (10,) and spelt([*ids[1:]]).startswith(text)}
    assert wanted == {tuple(one.ids) for one in found if len(one.ids) <= 3 and 1 not in one.ids}
    for one in found:
        if tuple(one.ids) in wanted:
            assert one.score == pytest.approx(free[tuple(one.ids)].score, abs=1e-4)


@pytest.mark.parametrize("beam", [1, 2])
@pytest.mark.parametrize("text", [b"abd", b"aabbd", b"ababd"])
def test_no_piece_is_chosen_after_which_nothing_spells_the_rest(text: bytes, beam: int) -> None:
    """In a vocabulary without bytes: `a` and `bd` spell `abd`, and after `ab` nothing spells the rest."""
    spellings = [None, None, None, None, b"a", b"ab", b"abb", b"bd", b"aab", b"ca", b"c", b"x"]
    for seed in range(8):
        (found,) = search(
            random_model(12, seed=seed),
            random_sources(12, [4]),
            beam_size=beam,
            prefix=ForcedPrefix(Prefix((), text), spellings),
        )
        assert b"".join(spellings[number] or b"" for number in found[0].ids).startswith(text)


def test_what_may_follow() -> None:
    typed = forced((8, 5), b"ab")
    assert typed.allowed([]) == [8]
    assert typed.allowed([8]) == [5]
    assert sorted(typed.allowed([8, 5]) or []) == [4, 6, 7, 8]
    assert sorted(typed.allowed([8, 5, 6]) or []) == [5, 10]
    assert typed.allowed([8, 5, 7]) is typed.allowed([8, 5, 8]) is forced().allowed([]) is None
    assert forced((), b"\xc3\xa4").allowed([]) == [11], "after the first byte nothing spells the second"
    assert forced((4,)).allowed([]) == [4]
    assert [one.longest_within(None) for one in (typed, forced(), forced((4,)))] == [4, 0, 1]


@pytest.mark.parametrize("number", [-1, 0, EOS, 12])
def test_an_id_that_no_translation_holds_is_refused(number: int) -> None:
    with pytest.raises(UserError, match=str(number)):
        forced((4, number))


def test_learned_positions_bound_a_prefix() -> None:
    model = random_model(12, positions="learned", max_length=7)
    source = random_sources(12, [4])
    (found,) = search(model, source, prefix=forced((4,) * 6))
    assert found[0].ids == [4] * 6
    with pytest.raises(UserError, match="6 tokens"):
        search(model, source, prefix=forced((4,) * 5, b"ab"))


def test_what_cannot_be_spelt_and_a_model_without_probabilities_are_the_users_errors() -> None:
    model, source = random_model(12), random_sources(12, [4])
    with pytest.raises(UserError, match="prefix: no pieces"):
        search(model, source, prefix=forced((), b"z"))
    with torch.no_grad():
        model.output_weight.fill_(torch.nan)
    for prefix in (None, forced((4,))):
        with pytest.raises(UserError, match=r"lower training\.learning_rate"):
            search(model, source, prefix=prefix)


TEXT = [f"Das Haus {i} hat Häute wie {i * 7}, Übermut und größere Bäume." for i in range(300)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXT, run_config(["tokenizer.vocabulary_size=340"]).tokenizer)


@pytest.mark.parametrize(
    ("typed", "words", "rest"),
    [
        ("", "", None),
        ("  ", "", None),
        ("Hau", "", "▁Hau"),
        ("Das Hau", "Das", "▁Hau"),
        (" Das  Haus ", "Das Haus", "▁"),
        ("Das Haus, Ü", "Das Haus,", "▁Ü"),
        ("Das|", "", "▁Das|"),
    ],
)
def test_whole_words_are_split_as_ever_and_the_last_one_is_open(
    tokenizer: Tokenizer, typed: str, words: str, rest: str | None
) -> None:
    prefix = typed_prefix(tokenizer, typed)
    assert list(prefix.ids) == tokenizer.encode([words])[0]
    assert prefix.text == (rest or "").encode()


def test_what_is_typed_for_a_lowercased_vocabulary_is_lowercased() -> None:
    settings = ["tokenizer.vocabulary_size=340", "tokenizer.lowercase=true"]
    tokenizer = train_tokenizer(TEXT, run_config(settings).tokenizer)
    assert typed_prefix(tokenizer, "DAS Hau") == typed_prefix(tokenizer, "das hau")
    assert typed_prefix(tokenizer, "DAS Hau").text == "▁hau".encode()


@settings(max_examples=30)
@given(st.text("Das Hautebäß😀|.", max_size=14))
def test_what_is_written_begins_with_what_was_typed(tokenizer: Tokenizer, typed: str) -> None:
    model = _model(tokenizer)
    source = [*tokenizer.encode(["Ein Haus."])[0], EOS]
    prefix = ForcedPrefix(typed_prefix(tokenizer, typed), tokenizer.spellings())
    ((found, *_),) = search(model, torch.tensor([source]), limit=4, beam_size=2, prefix=prefix)
    (text,) = tokenizer.decode([found.ids])
    wanted = " ".join(typed.split())
    assert (text + " ").startswith(wanted + " " * bool(wanted and typed[-1].isspace()))


def test_spellings_are_what_decoding_writes(tokenizer: Tokenizer) -> None:
    spellings = tokenizer.spellings()
    assert spellings[:4] == [None] * 4
    assert len(spellings) == tokenizer.vocabulary_size == 340
    assert b"\n" in spellings
    (ids,) = tokenizer.encode(["Häute 😀"])
    assert b"".join(spellings[number] or b"" for number in ids).decode() == "▁Häute▁😀"


_MODELS: dict[int, Transformer] = {}


def _model(tokenizer: Tokenizer) -> Transformer:
    size = tokenizer.vocabulary_size
    return _MODELS.setdefault(size, random_model(size, seed=3))


def test_prefixes_are_forced_on_the_models_device() -> None:
    model = random_model(12, seed=1)
    source = random_sources(12, [5])
    expected = search(model, source, prefix=forced((7,), b"ab"))
    with torch.device("meta"):  # what is made there could not be used together with the others
        found = search(model, source, prefix=forced((7,), b"ab"))
    assert found == expected
