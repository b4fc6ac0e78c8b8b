"""Properties of the textbook corpus: its splits and the shape of its sentences."""

import re
import subprocess
import sys
from itertools import chain, islice

import pytest

from endeavour.textbook import german, textbook_splits
from endeavour.textbook.draw import Draw
from endeavour.textbook.generate import CONSTRUCTIONS, draw_sentence, held_out
from endeavour.textbook.reading import load_lexicon
from endeavour.textbook.trees import words_of

Splits = dict[str, list[tuple[str, str]]]

TRAIN_PAIRS = 34_000
EVALUATION = ("validation", "test", "test_unseen")


def drawn(seed: int, train_pairs: int) -> Splits:
    return {name: list(pairs) for name, pairs in textbook_splits(seed, train_pairs).items()}


@pytest.fixture(scope="module")
def splits() -> Splits:
    return drawn(1, TRAIN_PAIRS)


@pytest.fixture(scope="module")
def texts(splits: Splits) -> tuple[str, str]:
    """All English and all German training text."""
    english, german = zip(*splits["train"], strict=True)
    return "\n".join(english), "\n".join(german)


def test_sizes(splits: Splits) -> None:
    assert {name: len(pairs) for name, pairs in splits.items()} == {
        "train": TRAIN_PAIRS,
        "validation": 1000,
        "test": 1000,
        "test_unseen": 1000,
    }


def test_another_seed_has_other_pairs(splits: Splits) -> None:
    assert drawn(3, 300)["train"] != splits["train"][:300]


def test_same_pairs_in_another_process() -> None:
    code = "from endeavour.textbook import textbook_splits; print(list(textbook_splits(5, 40)['train']))"
    command = [sys.executable, "-c", code]
    other = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8").stdout
    assert other.strip() == str(drawn(5, 40)["train"])


def test_shorter_training_split_is_the_beginning_of_a_longer_one(splits: Splits) -> None:
    short = drawn(1, 500)
    assert short["train"] == splits["train"][:500]
    assert all(short[name] == splits[name] for name in EVALUATION)


def test_training_pairs_are_distinct(splits: Splits) -> None:
    sources = [source for source, _ in splits["train"]]
    assert len(set(sources)) == len(sources)


def test_english_decides_german(splits: Splits) -> None:
    """No English sentence has two translations, in whatever split."""
    translations: dict[str, str] = {}
    for pairs in splits.values():
        for source, target in pairs:
            assert translations.setdefault(source, target) == target


def test_no_sentence_stands_in_two_splits(splits: Splits) -> None:
    names = list(splits)
    for side in (0, 1):
        sentences = {name: {pair[side] for pair in splits[name]} for name in names}
        for number, name in enumerate(names):
            for other in names[number + 1 :]:
                assert not sentences[name] & sentences[other]


def test_unseen_combinations_are_never_in_training(splits: Splits) -> None:
    """Judged from the text alone, by the sentences of the pattern "Die NOUN ist ADJECTIVE."."""
    lexicon = load_lexicon()
    nouns = {noun.german for noun in lexicon.nouns}
    adjectives = {word.german for word in lexicon.adjectives}
    pattern = re.compile(r"^(?:Der|Die|Das) (\S+) ist (?:sehr |zu |ziemlich |nicht )?(\S+)\.$")

    def combinations(name: str) -> set[tuple[str, str]]:
        found = (pattern.match(target) for _, target in splits[name])
        return {(m[1], m[2]) for m in found if m and m[1] in nouns and m[2] in adjectives}

    seen = combinations("train") | combinations("validation") | combinations("test")
    assert len(seen) > 100
    assert combinations("test_unseen")
    assert not any(held_out(noun, "sein", adjective) for noun, adjective in seen)
    assert all(held_out(noun, "sein", adjective) for noun, adjective in combinations("test_unseen"))


def test_words_of_a_tree_are_those_it_is_drawn_from() -> None:
    """Every lexicon noun that stands in its dictionary form in the German text is among the words of the tree."""
    other_words = {"Frau", "Uhr", "Reise", "Koch"}  # Frau Weber, um drei Uhr, Reise bald!, Koch das Ei!
    nouns = {noun.german for noun in load_lexicon().nouns} - other_words
    plural_too = {noun.german for noun in load_lexicon().nouns if noun.plural == noun.german}
    draw = Draw(load_lexicon(), 11)
    for _ in range(2000):
        tree = draw_sentence(draw)
        text = german.sentence(tree)
        mentioned = nouns & set(re.findall(r"[\w-]+", text))
        assert mentioned - plural_too <= {word.german for word in words_of(tree)}, text


def test_every_word_of_the_unseen_split_occurs_in_training(splits: Splits) -> None:
    def words(name: str, side: int) -> set[str]:
        return {word for pair in splits[name] for word in re.findall(r"[^\W\d]+", pair[side].lower())}

    for side in (0, 1):
        missing = words("test_unseen", side) - words("train", side)
        assert len(missing) <= 0.01 * len(words("test_unseen", side)), missing


def test_sentences_look_like_sentences(splits: Splits) -> None:
    for pairs in splits.values():
        for pair in pairs:
            for text in pair:
                assert text[0].isupper(), text
                assert text[-1] in ".?!", text
                assert "  " not in text, text
                assert not re.search(r" [,.?!]|,,|,[.?!]|None", text), text


def test_nouns_are_capitalised(texts: tuple[str, str]) -> None:
    small = set(re.findall(r"\b[a-zäöü]\w*", texts[1]))
    lexicon = load_lexicon()
    nouns = {form.lower() for noun in lexicon.nouns for form in (noun.german, noun.genitive, noun.plural)}
    # junge, reisen and fragen are forms of adjectives and verbs, too.
    stems = [word.stem for word in lexicon.adjectives] + [verb.base[:-2] for verb in lexicon.verbs]
    assert not {word for word in small & nouns if not word.startswith(tuple(stems))} - {"morgen"}


def test_every_entry_is_used(texts: tuple[str, str]) -> None:
    english, german = texts
    lexicon = load_lexicon()
    german_words = set(re.findall(r"[\w-]+", german))
    for noun in lexicon.nouns:
        assert {noun.german, noun.genitive, noun.plural} & german_words, noun.german
    for verb in lexicon.verbs:
        participle = verb.participle.split(" ")[-1]
        in_the_past = lexicon.finite_forms.get((verb.german, "past"), ())
        rare = verb.frame in ("name", "price", "that wh", "that", "that to")  # only in the present
        assert {participle, *in_the_past} & german_words or rare, verb.german
    for adjective in lexicon.adjectives:
        assert any(word.startswith(adjective.stem) for word in german_words), adjective.german
    for entry in chain.from_iterable(lexicon.words.values()):
        assert entry.german.lower() in german.lower(), entry.german
        assert entry.english.lower() in english.lower(), entry.english
    for modal in lexicon.modals:
        assert set(lexicon.finite_forms[modal.german, "present"]) & german_words


@pytest.mark.parametrize(
    ("phenomenon", "pattern"),
    [
        ("perfect with sein", r"\bist \w.* gegangen\."),
        ("perfect with haben", r"\bhat \w.* gekauft\."),
        ("separable verb", r"\bsteht .*\bauf\."),
        ("reflexive dative", r"\bmir .*die Zähne"),
        (
            "dative plural",
            r"\b(?:mit|bei|von) (?:\w+en )+(?:Kindern|Brüdern|Freunden|Ärzten|Männern|Schülern|Lehrern)\b",
        ),
        ("genitive", r"\bmeines \w+s\b"),
        ("weak noun", r"\bden (?:\w+en )?Studenten\b"),
        (
            "strong ending",
            r"\b(?:kaltes|gutes|heißes) Wasser\b|\b(?:kalten|guten|starken) (?:Tee|Kaffee|Saft)\b",
        ),
        ("verb-final weil", r", weil er .* hat\."),
        ("verb-final dass", r", dass .* (?:hat|ist|wird|will)\."),
        ("wenn first", r"^Wenn .*, \w+ "),
        ("obwohl", r"\bobwohl\b"),
        ("relative dative", r", (?:dem|der|denen) "),
        ("relative with preposition", r", in (?:dem|der) "),
        ("whose", r", dessen "),
        ("kein", r"\bkeine[nmr]?\b"),
        ("nicht", r"\bnicht\b"),
        ("yes-no question", r"^(?:Hast|Kannst|Willst) du .*\?"),
        ("wh-question", r"^W(?:er|en|em|as|o|ann|arum|ohin)\b.*\?"),
        ("imperative du", r"^(?:Nimm|Lies|Gib|Öffne) .*!"),
        ("imperative Sie", r", \w+ Sie .*!"),
        ("imperative ihr", r"^Kinder, .*!"),
        (
            "place with dative",
            r"\b(?:liegt|liegen|steht|stehen) (?:auf|unter|neben|hinter|vor) (?:dem|der)\b",
        ),
        ("movement with accusative", r"\bauf den Tisch\b"),
        ("comparative", r"\bgrößer als\b"),
        ("superlative", r"\bdas (?:älteste|schönste|größte)\b"),
        ("clock time", r"\bhalb vier\b"),
        ("date", r"\bam dritten Mai\b|\bam \w+ten \w+\b"),
        ("number", r"\beinund\w+zig\b"),
        ("seit", r"\bseit \w+ \w+"),
        ("infinitive with zu", r", .*\bzu \w+en\."),
        ("um zu", r", um .*\bzu\b|, um .*zu\w+"),
        ("fronted time", r"^Gestern (?:hat|habe|haben|ist|sind|war)\b"),
        ("gern", r"\bgern\b"),
        ("pronoun before subject", r"\b(?:mir|mich|ihn|ihm) (?:mein|der|die|das|Anna)\b"),
    ],
)
def test_phenomenon_occurs(texts: tuple[str, str], phenomenon: str, pattern: str) -> None:
    assert len(re.findall(pattern, texts[1], flags=re.MULTILINE)) >= 5, phenomenon


@pytest.mark.parametrize(
    ("error", "pattern"),
    [
        ("yet of what is done", r"^(?!.*\b(?:not|cannot)\b).*\byet\b.*"),
        ("denied twice", r".*\b[Nn]obody (?:\w+ )?(?:not|cannot)\b.*"),
        ("nothing denied", r".*\b(?:not|cannot) \w+ nothing\b.*|.*\b[Nn]obody (?:\w+ )?\w+ nothing\b.*"),
        (
            "the hair of another",
            r"(?:Who|.* child) (?:\w+ ){1,4}(?:my|your|our|his) (?:hair|teeth|face|hands)\b.*",
        ),
    ],
)
def test_errors_do_not_occur(splits: Splits, error: str, pattern: str) -> None:
    english = [source for pairs in splits.values() for source, _ in pairs]
    assert not [source for source in english if re.fullmatch(pattern, source)], error


def test_every_construction_can_be_drawn() -> None:
    draw = Draw(load_lexicon(), 7)
    for _, construct in CONSTRUCTIONS:
        for _ in range(50):
            draw.start("you")
            construct(draw)


def test_average_length(splits: Splits) -> None:
    lengths = [len(source.split()) for source, _ in splits["train"]]
    assert 6 <= sum(lengths) / len(lengths) <= 11


def test_training_pairs_come_lazily() -> None:
    """Millions can be asked for; only those that are taken are drawn."""
    assert len(list(islice(textbook_splits(1, 10_000_000)["train"], 10))) == 10
