"""SentencePiece subword tokenizers: text to ids and back. Knows no file but its model, and not how that was learnt.

Byte fallback spells every character outside the vocabulary as UTF-8 bytes, so no text is unknown. Text is
first brought to the normal form of `normalization`, and SentencePiece alters nothing further, unless the vocabulary is
lowercased: `decode(encode(x)) == normalize(x)`. Kudo & Richardson 2018 (SentencePiece), Sennrich et al. 2016 (BPE),
Kudo 2018 (unigram).
"""

import copy
import hashlib
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import sentencepiece

from endeavour.data.files import Pair
from endeavour.data.normalization import SPACE_MARK, lowercased, normalize
from endeavour.data.parallel import usable_cores
from endeavour.data.protection import protect_pair, symbols
from endeavour.errors import UserError
from endeavour.special import BOS, EOS, PAD, UNK


class Tokenizer:
    """Text ↔ ids. Pure: the same model file gives the same ids everywhere.

    Attributes:
        tag: the ids that stand before those of each text, see `tagged`.
    """

    def __init__(self, model: bytes) -> None:
        self.tag: list[int] = []
        self.serialized = model
        """The content of the model file, a message of SentencePiece's protocol buffer."""
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self._by_words = _encodes_by_words(self._processor)
        one = self._processor
        assert (one.pad_id(), one.unk_id(), one.bos_id(), one.eos_id()) == (PAD, UNK, BOS, EOS)

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Reads a model file. Raises `UserError` where there is none or it is damaged."""
        try:
            return cls(path.read_bytes())
        except (OSError, RuntimeError) as error:
            raise UserError(f"{path}: not a readable SentencePiece model ({error})") from error

    def tagged(self, tag: str) -> "Tokenizer":
        """The same vocabulary, with `tag` and a space in front of every text that is not empty; "" for no tag."""
        other = copy.copy(self)
        other.tag = []
        other.tag = other.encode([tag])[0]
        return other

    @property
    def placeholders(self) -> int:
        """How many symbols of `protection` the vocabulary has."""
        one = self._processor
        return next(n for n, symbol in enumerate(symbols(100)) if one.piece_to_id(symbol) == one.unk_id())

    @property
    def lowercase(self) -> bool:
        """Whether it lowercases."""
        return self.encode_normal(["A"]) == self.encode_normal(["a"])

    def normalize(self, text: str) -> str:
        """What `decode(encode(text))` is."""
        return normalize(lowercased(normalize(text)) if self.lowercase else text)

    @property
    def vocabulary_size(self) -> int:
        """Number of ids."""
        return self._processor.vocab_size()

    @property
    def digest(self) -> str:
        """SHA-256 of the model file, in hex."""
        return hashlib.sha256(self.serialized).hexdigest()

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Ids of each sentence, without BOS and EOS; uses all usable cores. UNK is in them only where a vocabulary
        has no bytes, as imported ones have not.
        """
        return self.encode_normal([normalize(sentence) for sentence in sentences])

    def encode_normal(self, texts: Sequence[str]) -> list[list[int]]:
        """As `encode`, of texts in normal form."""
        rows = self._encode_words(texts) if self._by_words else self._encode(texts)
        # No piece goes beyond a space, so these are the ids of the tag, a space and the text.
        return [[*self.tag, *row] if row else row for row in rows] if self.tag else rows

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        return self._processor.encode(list(texts), out_type=int, num_threads=usable_cores())

    def _encode_words(self, texts: Sequence[str]) -> list[list[int]]:
        """Encodes each word once: of many texts in half the time, because words come again."""
        split = [text.split(" ") for text in texts]
        different = list(dict.fromkeys(chain.from_iterable(split)))
        ids = dict(zip(different, self._encode(different), strict=True))
        return [[number for word in words for number in ids[word]] for words in split]

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """The text of each row of ids, in normal form and so one line: UNK is ⁇, the other special ids nothing."""
        # A model may spell a line break, or half a character, in bytes; the latter comes out as U+FFFD.
        return [normalize(text) for text in self._processor.decode([list(row) for row in ids])]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The written form of each id, for pictures and tables; U+2581 marks the start of a word."""
        return [self._processor.id_to_piece(number) for number in ids]

    def all_pieces(self) -> list[str]:
        """The written form of the whole vocabulary, by id."""
        return self.pieces(range(self.vocabulary_size))

    def spellings(self) -> list[bytes | None]:
        """What each id stands for in a text, in UTF-8, with U+2581 for a space; None for the special ids."""
        one = self._processor
        return [
            None
            if one.is_control(number) or one.is_unknown(number)
            else bytes([int(piece[3:5], 16)])  # <0x0A>
            if one.is_byte(number)
            else piece.encode()
            for number, piece in enumerate(self.all_pieces())
        ]

    def save(self, path: Path) -> None:
        """Writes the model file."""
        path.write_bytes(self.serialized)


SIDES = ("source", "target")
Tokenizers = tuple[Tokenizer, Tokenizer]  # of source and target, which are equal if joint


def _encodes_by_words(processor: sentencepiece.SentencePieceProcessor) -> bool:
    """Whether a text's ids are those of its words, as in BPE without pieces that go beyond a space.

    BPE is told by its scores, which are whole numbers; the sums of a unigram model may be rounded differently in a
    longer text. An unknown character tells whether words are independent in the rest: in some imported models only the
    first has a space before it, and unknown characters of neighbours are joined.
    """
    numbers = [n for n in range(processor.vocab_size()) if not processor.is_control(n)]
    unknown = "\U0010fffd"
    return (
        all(processor.get_score(n).is_integer() for n in numbers)
        and not any(SPACE_MARK in processor.id_to_piece(n)[1:] for n in numbers)
        and processor.encode(f"{unknown} {unknown}") == 2 * processor.encode(unknown)
    )


def placeholders_of(tokenizers: Tokenizers) -> int:
    """The symbols of `protection` that both sides have."""
    return min(one.placeholders for one in tokenizers)


def encode_pairs(tokenizers: Tokenizers, pairs: Sequence[Pair]) -> tuple[list[list[int]], list[list[int]]]:
    """Ids of sources and targets, without EOS, with the symbols that both vocabularies have for spans."""
    normal = [(normalize(source), normalize(target)) for source, target in pairs]
    return encode_normal_pairs(tokenizers, normal, protect_pair)


def encode_normal_pairs(
    tokenizers: Tokenizers, pairs: Sequence[Pair], protect: Callable[[Pair, int], Pair]
) -> tuple[list[list[int]], list[list[int]]]:
    """The same of pairs in normal form.

    Args:
        protect: `protect_training_pair` for pairs from which a model learns, otherwise `protect_pair`.
    """
    if count := placeholders_of(tokenizers):
        pairs = [protect(pair, count) for pair in pairs]
    sources = tokenizers[0].encode_normal([source for source, _ in pairs])
    return sources, tokenizers[1].encode_normal([target for _, target in pairs])


def tag_of(part: str) -> str:
    """What the sources of a part of the corpus begin with."""
    return f"<{part}>"


def with_tag(tokenizers: Tokenizers, part: str | None) -> Tokenizers:
    """Those of sources with the tag of `part`, or without one."""
    return tokenizers[0].tagged("" if part is None else tag_of(part)), tokenizers[1]


def save_tokenizers(folder: Path, tokenizers: Tokenizers) -> None:
    """Writes source.model and target.model into a folder of prepared data or of a model."""
    for side, tokenizer in zip(SIDES, tokenizers, strict=True):
        tokenizer.save(folder / f"{side}.model")


def load_tokenizers(folder: Path) -> Tokenizers:
    """What `save_tokenizers` wrote."""
    source, target = (Tokenizer.load(folder / f"{side}.model") for side in SIDES)
    return source, target
