"""tokenizer.json splits and joins text as SentencePiece does: words, and whatever else there is."""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2
from textbook_vocabularies import english, german, trained
from tokenizers import Tokenizer as Fast
from transformers import AutoTokenizer, MarianConfig, PegasusConfig

from endeavour.data.tokenizer import Tokenizer
from endeavour.errors import UserError
from endeavour.export.tokenizer_json import require_same_ids, write_tokenizers
from endeavour.special import EOS, UNK

# Repeated letters meet every order of merging; what is trained without them must spell them.
ODD = [
    "banana bananas ananas",
    "aaaa aaaaaa aa a",
    "Schifffahrt, Kaffeeernte, Zooorchester",
    "10 100 1000 1.000",
]


# Some begin alike, one holds what a text may have too, and one what a regular expression would read otherwise.
SYMBOLS = ["<mine>", "<mine>>", "<the", "⟦1⟧", "(.*)"]


def much() -> list[str]:
    return [*english(), *german(), *ODD * 5]


def little() -> list[str]:
    return [*english(), *german()]


JOINT = {
    "bpe": lambda: trained(much(), "bpe", 900),
    "bpe, few characters": lambda: trained(little(), "bpe", 500, 0.98),
    "bpe, symbols": lambda: trained(much(), "bpe", 900, symbols=SYMBOLS),
    "unigram, symbols": lambda: trained(much(), "unigram", 800, symbols=SYMBOLS),
    "bpe, lowercased": lambda: trained(much(), "bpe", 900, symbols=SYMBOLS, lowercase=True),
    "unigram": lambda: trained(much(), "unigram", 800),
    "unigram, few characters": lambda: trained(little(), "unigram", 450, 0.98),
}


@cache
def joint(name: str) -> Tokenizer:
    return JOINT[name]()


@pytest.fixture(scope="module", params=JOINT)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, Any]:
    """A tokenizer, and the same by the `tokenizers` library."""
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer = joint(request.param)
    write_tokenizers(folder, (tokenizer, tokenizer), positions=512)
    fast = Fast.from_file(str(folder / "tokenizer.json"))
    fast.encode_special_tokens = True
    return tokenizer, fast


more = ["ANNA", "<s>", "</s>", "<0x41>", "a" * 30, *SYMBOLS]
words = st.deferred(lambda: st.sampled_from([*" ".join(english()[:80] + german()[:80] + ODD).split(), *more]))
separators = st.sampled_from(
    [" ", "  ", "\t", "\x85", "\u2003", "\u2028", "\u2581", "\u200b", "\x00", "\ufeff", "", "-"]
)
# Marks since Unicode 10 are the known difference: the library does not put them in order.
characters = st.characters(
    exclude_categories=["Cs", "Mn", "Mc", "Me"],
    include_characters="\u0300\u0301\u0302\u0308\u030a\u0327\u0328\u093c",
)
lines = st.lists(st.tuples(st.one_of(words, st.text(characters, max_size=8)), separators), max_size=12).map(
    lambda parts: "".join(word + separator for word, separator in parts)
)


@given(text=lines)
@settings(max_examples=120)
def test_any_text_has_the_ids_that_sentencepiece_gives_it(both: tuple[Tokenizer, Any], text: str) -> None:
    ours, theirs = both
    (ids,) = ours.encode([text])
    assert theirs.encode(text, add_special_tokens=False).ids == ids
    assert theirs.encode(text).ids == [*ids, EOS]
    assert theirs.decode([*ids, EOS]) == ours.decode([ids])[0]


@given(data=st.data())
@settings(max_examples=60)
def test_whatever_ids_a_model_writes_the_text_is_the_same(
    both: tuple[Tokenizer, Any], data: st.DataObject
) -> None:
    ours, theirs = both
    # Of the bytes from <0x80> on, a sequence may be no character.
    pieces = [
        number
        for number, piece in enumerate(ours.pieces(range(ours.vocabulary_size)))
        if number != UNK and not re.fullmatch("<0x[89A-F].>", piece)
    ]
    ids = data.draw(st.lists(st.sampled_from(pieces), max_size=20))
    assert theirs.decode(ids) == ours.decode([ids])[0]


@pytest.mark.parametrize("config", [MarianConfig, PegasusConfig])
def test_autotokenizer_needs_nothing_else(config: Callable[[], Any], tmp_path: Path) -> None:
    tokenizer = joint("bpe")
    config().save_pretrained(tmp_path)
    write_tokenizers(tmp_path, (tokenizer, tokenizer), positions=300)
    theirs = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    texts = ["Ein  Mädchen\tlacht.", "</s> is a tag", ""]
    batch = theirs(texts, padding=True)
    rows = [[*ids, EOS] for ids in tokenizer.encode(texts)]
    longest = max(map(len, rows))
    assert batch["input_ids"] == [row + [0] * (longest - len(row)) for row in rows]
    assert batch["attention_mask"] == [[1] * len(row) + [0] * (longest - len(row)) for row in rows]
    assert set(batch) == {"input_ids", "attention_mask"}
    assert theirs(text_target=texts)["input_ids"] == rows
    assert theirs.batch_decode(rows, skip_special_tokens=True) == ["Ein Mädchen lacht.", "</s> is a tag", ""]
    assert theirs.model_max_length == 300
    theirs.save_pretrained(tmp_path / "again")
    assert AutoTokenizer.from_pretrained(tmp_path / "again", config=config())(texts)["input_ids"] == rows


def test_the_target_has_its_own_where_the_vocabularies_are_two(tmp_path: Path) -> None:
    pair = trained(english(), "bpe", 500), trained(german(), "bpe", 510)
    write_tokenizers(tmp_path, pair, positions=512)
    require_same_ids(tmp_path, pair, (english(), german()))
    for subfolder, tokenizer, text in (("", pair[0], english()[3]), ("target", pair[1], german()[3])):
        theirs = AutoTokenizer.from_pretrained(tmp_path, subfolder=subfolder, local_files_only=True)
        assert theirs(text, add_special_tokens=False)["input_ids"] == tokenizer.encode([text])[0]
    with pytest.raises(UserError, match=r"tokenizer\.json does not do what SentencePiece does"):
        require_same_ids(tmp_path, pair[::-1], (english(), german()))


@pytest.mark.parametrize("part", ["merges", "decoder"])
def test_one_that_splits_or_joins_otherwise_is_found(part: str, tmp_path: Path) -> None:
    pair = (joint("bpe"),) * 2
    write_tokenizers(tmp_path, pair, positions=512)
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text("utf-8"))
    if part == "merges":
        content["model"]["merges"].reverse()
    else:
        content["decoder"]["decoders"].pop()
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(UserError, match="nothing was written"):
        require_same_ids(tmp_path, pair, (english(), german()))


def test_pieces_of_another_kind_are_refused(tmp_path: Path) -> None:
    model = sentencepiece_model_pb2.ModelProto.FromString(joint("bpe").serialized)
    model.pieces[300].type = model.SentencePiece.UNUSED
    tokenizer = Tokenizer(model.SerializeToString())
    with pytest.raises(UserError, match="format=ctranslate2"):
        write_tokenizers(tmp_path, (tokenizer, tokenizer), positions=512)
