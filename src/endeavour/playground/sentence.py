"""A source sentence under a model, and translations of it as text, as ids and as pieces.

Knows one system, ids and pieces; not what is computed of them, nor HTTP.
"""

from collections.abc import Sequence

from endeavour.data.normalization import normalize
from endeavour.data.protection import protect, protect_target, restore
from endeavour.data.tokenizer import Tokenizer, placeholders_of
from endeavour.errors import UserError
from endeavour.playground.schemas import Target
from endeavour.playground.systems import System
from endeavour.special import EOS, UNK

CHARACTERS = 20  # of a piece; SentencePiece makes none of more than 16
NO_SPAN = {"", "<s>", "</s>"}


class Sentence:
    """A source sentence as a model reads it.

    Args:
        longest: pieces that it and its translations may have.

    Attributes:
        system: whose model it is.
        longest: as given.
        ids: of the source, ending in EOS.
        spans: what its symbols stand for.

    Raises:
        UserError: it is empty or too long.
    """

    def __init__(self, system: System, text: str, longest: int) -> None:
        self.system, self.longest = system, longest
        self._tokenizers = system.loaded.tokenizers
        self._placeholders = placeholders_of(self._tokenizers)
        protected = protect(normalize(text), self._placeholders)
        self.spans: Sequence[str] = protected.spans
        self.ids = self._encode(self._tokenizers[0], "text", protected.text)
        if len(self.ids) == 1:
            raise UserError("text is empty")

    def target_ids(self, target: Target) -> list[int]:
        """A translation without BOS and EOS. Raises `UserError` for ids that it cannot have, or too many."""
        if target.text is not None:
            return self.read_target("target", target.text)
        # Models without bytes write UNK; a prefix cannot hold it.
        ids = self.own_ids("target.ids", target.ids or [], special=(UNK,))
        return self._require_few("target", [*ids, EOS])[:-1]

    def read_target(self, key: str, text: str) -> list[int]:
        """A translation, the value of `key`, without BOS and EOS. Raises `UserError` where it is too long."""
        return self._encode(self._tokenizers[1], key, protect_target(normalize(text), self.spans))[:-1]

    def own_ids(self, key: str, ids: Sequence[int], special: Sequence[int] = ()) -> list[int]:
        """`ids`, all of which are of pieces, or in `special`. Raises `UserError` otherwise."""
        spellings = self.system.spellings
        for number in set(ids).difference(special):
            if number >= len(spellings) or spellings[number] is None:
                raise UserError(f"{key}: {number} is not the id of a piece of a translation")
        return list(ids)

    def require_few_characters(self, key: str, text: str) -> None:
        """Refuses, before it is split, a text that has too many pieces whatever they are. Raises `UserError`."""
        if len(text) > CHARACTERS * self.longest:
            raise UserError(
                f"{key} has {len(text):,} characters; the page shows at most {self.longest} pieces"
            )

    def _encode(self, tokenizer: Tokenizer, key: str, text: str) -> list[int]:
        self.require_few_characters(key, text)
        (ids,) = tokenizer.encode([text])
        return self._require_few(key, [*ids, EOS])

    def _require_few(self, key: str, ids: list[int]) -> list[int]:
        """`ids`, if there are few enough, and the model has a position for each. Raises `UserError` otherwise."""
        positions = self.system.loaded.first.max_target_length  # the same on either side
        most = self.longest if positions is None else min(self.longest, positions)
        if len(ids) > most:
            raise UserError(f"{key} has {len(ids)} pieces with the end; the page shows at most {most}")
        return ids

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        """Those that stand for spans of the source as these; one for no span stays."""
        return self._pieces(self._tokenizers[0], ids)

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        """The same of a translation."""
        return self._pieces(self._tokenizers[1], ids)

    def _pieces(self, tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
        written = tokenizer.pieces(ids)
        found = map(self.restored, written)
        # <s> and </s> as tags would be taken for the begin and the end.
        return [piece if span in NO_SPAN else span for piece, span in zip(written, found, strict=True)]

    def text_of(self, ids: Sequence[int]) -> str:
        """A translation as text."""
        return self.restored(self._tokenizers[1].decode([ids])[0])

    def restored(self, text: str) -> str:
        """What a model wrote, with the spans of the source in the places of their symbols."""
        return restore(text, self.spans, self._placeholders)
