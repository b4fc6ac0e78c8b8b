"""Tokenizers lose nothing but what the normal form takes away, and are the same on every run."""

import re
from dataclasses import replace
from functools import cache

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from sentencepiece import sentencepiece_model_pb2

from configs import run_config
from endeavour.data.normalization import normalize
from endeavour.data.tokenizer import Tokenizer
from endeavour.data.tokenizer_training import train_tokenizer
from endeavour.errors import UserError
from endeavour.special import BOS, EOS, PAD, UNK

SENTENCES = [
    f"{subject} {verb} {number} {thing}."
    for subject in ("The old man", "A girl", "Der alte Mann", "Ein Mädchen")
    for verb in ("sees", "buys", "sieht", "grüßt")
    for number in ("two", "three", "zwei", "drei")
    for thing in ("dogs", "green apples", "Hunde", "süße Äpfel")
]


CONFIG = replace(run_config().tokenizer, name="tiny", vocabulary_size=330, max_sentences=1000)
SYMBOLS = ["<mine>", "⟦1⟧"]
KINDS = {
    "bpe": (CONFIG, []),
    "unigram": (replace(CONFIG, algorithm="unigram", vocabulary_size=305), []),
    "bpe, symbols": (CONFIG, SYMBOLS),
    "unigram, symbols": (replace(CONFIG, algorithm="unigram", vocabulary_size=307), SYMBOLS),
    "bpe, lowercased": (replace(CONFIG, lowercase=True), ["<Mine>", "⟦1⟧"]),
    "unigram, lowercased": (
        replace(CONFIG, algorithm="unigram", vocabulary_size=303, lowercase=True),
        ["<Mine>", "⟦1⟧"],
    ),
}


@cache
def trained(kind: str) -> Tokenizer:
    return train_tokenizer(SENTENCES, *KINDS[kind])


@pytest.fixture(scope="module")
def tokenizer(request):
    return trained(request.param)


def kinds(*names: str):
    """A parameter of the fixture above."""
    return pytest.mark.parametrize("tokenizer", names, indirect=True)


both = kinds("bpe", "unigram")


def round_trip(tokenizer: Tokenizer, text: str) -> str:
    return tokenizer.decode(tokenizer.encode([text]))[0]


@both
@pytest.mark.parametrize(
    "text",
    [
        "Fünf süße Äpfel, größer als Öl und Übermut – ß bleibt ß, STRASSE und STRAẞE.",
        "„Ja“, sagte sie, »nein« und 'vielleicht' sowie \"so\"… it’s ½ of 2²!",
        "👩‍👩‍👧 lacht 🙂, ❤️ und 🇩🇪; 日本語, العربية, ελληνικά",
        "1.234.567,89 € am 3.10.1990 um 12:30 = 50% + 10⁻³",
        "<s> </s> <unk> <pad> <0x41> ist Text",
        "ﬁ und Ⅳ und ｗｉｄｅ: compatibility characters stay",
        "",
    ],
)
def test_text_in_normal_form_comes_back_as_it_was(tokenizer, text):
    assert normalize(text) == text
    assert round_trip(tokenizer, text) == text


@both
@given(text=st.text(max_size=40))
@settings(max_examples=200)
def test_any_text_comes_back_in_normal_form_and_none_is_unknown(tokenizer, text):
    ids = tokenizer.encode([text])[0]
    assert not {PAD, UNK, BOS, EOS} & set(ids)
    assert tokenizer.decode([ids]) == [normalize(text)]


lowercased = kinds("bpe, lowercased", "unigram, lowercased")


@lowercased
@given(text=st.text(max_size=40) | st.sampled_from(SENTENCES).map(str.upper))
@settings(max_examples=200)
def test_a_lowercased_vocabulary_reads_and_writes_small_letters_alone(tokenizer, text):
    lowered = "".join(letter.lower() for letter in normalize(text))
    ids = tokenizer.encode([text])[0]
    assert tokenizer.encode([lowered])[0] == ids
    assert tokenizer.decode([ids]) == [normalize(lowered)] == [tokenizer.normalize(text)]
    assert not {PAD, UNK, BOS, EOS} & set(ids)


@lowercased
def test_its_model_lowercases_in_other_programs_too_and_keeps_symbols(tokenizer):
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.serialized)
    assert processor.decode(processor.encode("<mine> SÜẞE Äpfel")) == "<mine> süße äpfel"
    pieces = tokenizer.pieces(range(tokenizer.vocabulary_size))
    assert all(piece == piece.lower() for piece in pieces if not piece.startswith("<0x"))
    assert "<mine>" in tokenizer.pieces(tokenizer.tagged("<Mine>").tag)
    assert tokenizer.lowercase
    assert not trained("bpe").lowercase
    with pytest.raises(UserError, match="two of the corpus's parts have the tag <mine>"):
        train_tokenizer(SENTENCES, replace(CONFIG, lowercase=True), ["<mine>", "<Mine>"])


@kinds(*KINDS)
@given(
    words=st.lists(
        st.sampled_from(" ".join(SENTENCES).split()) | st.text(max_size=5) | st.sampled_from(SYMBOLS)
    )
)
def test_words_that_were_met_before_are_encoded_as_sentencepiece_encodes_the_text(tokenizer, words):
    text = normalize(" ".join(words))
    expected = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.serialized).encode(text)
    assert tokenizer.encode_normal([text, text]) == [expected, expected]


def without_bytes_and_mark(model):
    """As imported models may be: what is unknown has one id, and neighbours share it."""
    kept = [piece for piece in model.pieces if piece.type != piece.BYTE and piece.piece != "▁"]
    del model.pieces[:]
    model.pieces.extend(kept)
    model.trainer_spec.byte_fallback = False


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda model: setattr(model.normalizer_spec, "add_dummy_prefix", False), "Hunde sieht Hunde"),
        (without_bytes_and_mark, "日 本"),
    ],
    ids=["no space before the first word", "neighbours that are unknown"],
)
def test_words_that_depend_on_their_neighbours_are_encoded_with_them(change, text):
    model = sentencepiece_model_pb2.ModelProto.FromString(trained("bpe").serialized)
    change(model)
    changed = Tokenizer(model.SerializeToString())
    processor = sentencepiece.SentencePieceProcessor(model_proto=changed.serialized)
    assert processor.encode(text) != [n for word in text.split() for n in processor.encode(word)]
    assert changed.encode([text]) == [processor.encode(text)]


@both
def test_special_ids_are_fixed_and_never_decoded(tokenizer):
    ids = tokenizer.encode(["A girl sees two dogs."])[0]
    assert tokenizer.decode([[BOS, *ids, EOS, PAD, PAD]]) == ["A girl sees two dogs."]
    assert tokenizer.pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]


@pytest.mark.parametrize(("algorithm", "size"), [("bpe", 330), ("unigram", 305)])
def test_training_is_deterministic(algorithm, size):
    again = train_tokenizer(iter(SENTENCES), replace(CONFIG, algorithm=algorithm, vocabulary_size=size))
    assert again.digest == trained(algorithm).digest
    assert again.vocabulary_size == size


def test_no_sentences_give_no_rows():
    tokenizer = trained("bpe")
    assert tokenizer.encode([]) == []
    assert tokenizer.decode([]) == []
    assert tokenizer.encode(["", "  "]) == [[], []]
    assert tokenizer.decode([[], [EOS]]) == ["", ""]


@both
def test_whatever_ids_a_model_writes_the_text_is_one_line(tokenizer):
    every = [[number] for number in range(tokenizer.vocabulary_size)]
    texts = tokenizer.decode([*every, [number for row in every for number in row]])
    assert len(texts) == len(every) + 1
    assert all(text == normalize(text) for text in texts)
    assert "\n" in tokenizer._processor.decode([tokenizer._processor.piece_to_id("<0x0A>")])


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_too_large_a_vocabulary_names_the_largest_possible(algorithm):
    with pytest.raises(UserError, match=r"vocabulary_size=5000: this corpus allows at most (\d+)") as caught:
        train_tokenizer(SENTENCES, replace(CONFIG, algorithm=algorithm, vocabulary_size=5000))
    largest = int(str(caught.value).split("at most ")[1].split(";")[0])
    found = train_tokenizer(SENTENCES, replace(CONFIG, algorithm=algorithm, vocabulary_size=largest))
    assert found.vocabulary_size == largest


def test_too_small_a_vocabulary_names_the_smallest_possible():
    with pytest.raises(UserError, match=r"need at least (\d+)") as caught:
        train_tokenizer(SENTENCES, replace(CONFIG, vocabulary_size=100))
    smallest = int(re.search(r"at least (\d+)", str(caught.value))[1])
    assert train_tokenizer(SENTENCES, replace(CONFIG, vocabulary_size=smallest)).vocabulary_size == smallest
    assert "character_coverage" in str(caught.value)
    with pytest.raises(UserError, match=r"choose a larger vocabulary$"):
        train_tokenizer(SENTENCES, replace(CONFIG, vocabulary_size=4, character_coverage=0.9998))


@pytest.mark.parametrize(
    "change",
    [{"algorithm": "word"}, {"character_coverage": 0.5}, {"vocabulary_size": 3}, {"max_sentences": 0}],
)
def test_impossible_settings_are_named(change):
    with pytest.raises(ValidationError, match=next(iter(change))):
        replace(CONFIG, **change)


def test_a_model_comes_back_from_its_file_and_a_damaged_or_missing_one_is_named(tmp_path):
    tokenizer = trained("bpe")
    tokenizer.save(tmp_path / "source.model")
    loaded = Tokenizer.load(tmp_path / "source.model")
    assert (loaded.digest, loaded.encode(SENTENCES)) == (tokenizer.digest, tokenizer.encode(SENTENCES))
    (tmp_path / "bad.model").write_bytes(b"no model")
    for name in ("bad.model", "missing.model"):
        with pytest.raises(UserError, match=name):
            Tokenizer.load(tmp_path / name)


def test_the_trainer_is_silent(capfd):
    train_tokenizer(SENTENCES, CONFIG)
    assert capfd.readouterr() == ("", "")


symbols_and_text = st.lists(
    st.sampled_from([*SYMBOLS, " ", "  ", "<", ">", "mine", "The", "ß", "1", "⟦", "."])
)


@kinds("bpe, symbols", "unigram, symbols")
@given(parts=symbols_and_text)
@settings(max_examples=80)
def test_each_symbol_is_one_piece_wherever_it_stands(tokenizer, parts):
    text = "".join(parts)
    (ids,) = tokenizer.encode([text])
    pieces = tokenizer.pieces(ids)
    assert tokenizer.decode([ids]) == [normalize(text)]
    for symbol in SYMBOLS:
        assert pieces.count(symbol) == text.count(symbol)
    spelt = b"".join(tokenizer.spellings()[number] or b"" for number in ids).decode()
    assert spelt.replace("\u2581", " ").strip() == normalize(text)


def test_without_symbols_the_vocabulary_is_as_ever():
    assert train_tokenizer(SENTENCES, CONFIG, []).digest == trained("bpe").digest
    assert not set(SYMBOLS) & set(trained("bpe").pieces(range(trained("bpe").vocabulary_size)))
