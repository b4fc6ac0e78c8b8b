"""How a vocabulary is learnt from sentences, by SentencePiece: BPE or unigram, lowercased or not.

Knows sentences in normal form; not which of a corpus they are.
"""

import io
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

import sentencepiece
from pydantic import Field
from pydantic.dataclasses import dataclass

from endeavour.data.normalization import lowercased
from endeavour.data.tokenizer import Tokenizer
from endeavour.errors import UserError
from endeavour.optional import require
from endeavour.settings import STRICT
from endeavour.special import BOS, EOS, PAD, UNK

# The unigram trainer adds up its statistics per thread, so their number must not depend on the machine.
_TRAINER_THREADS = 4


@dataclass(kw_only=True, config=STRICT)
class TokenizerConfig:
    """How a vocabulary is learnt."""

    name: str
    algorithm: Literal["bpe", "unigram"]
    vocabulary_size: Annotated[int, Field(ge=4)]  # per side, including 4 special ids and 256 bytes
    joint: bool  # one vocabulary for both languages
    lowercase: bool  # whether text is lowercased, and with it what a model writes
    # Share of the characters' occurrences that get a piece of their own; the rest is spelt in bytes.
    character_coverage: Annotated[float, Field(ge=0.9, le=1)]
    max_sentences: Annotated[int, Field(ge=1)]  # pairs to learn from, an even sample; bounds the memory
    placeholders: Annotated[int, Field(ge=0, le=99)]  # symbols for markup and the like, see `protection`


def train_tokenizer(
    sentences: Iterable[str], config: TokenizerConfig, symbols: Sequence[str] = ()
) -> Tokenizer:
    """Learns a vocabulary from sentences in normal form. Deterministic.

    Args:
        symbols: SentencePiece's user-defined symbols, in normal form and without spaces. Each is one piece where a text
            has it; in unigram unless pieces that reach over its edge are much more probable.

    Raises:
        UserError: the vocabulary is too large or too small for these sentences; the message says what fits.
    """
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=map(lowercased, sentences) if config.lowercase else iter(sentences),
            model_writer=model,
            normalization_rule_name="identity",
            model_type=config.algorithm,
            vocab_size=config.vocabulary_size,
            character_coverage=config.character_coverage,
            byte_fallback=True,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            user_defined_symbols=[lowercased(one) for one in symbols] if config.lowercase else list(symbols),
            remove_extra_whitespaces=True,
            add_dummy_prefix=True,
            num_threads=_TRAINER_THREADS,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _explained(error, config) from error
    return Tokenizer(_lowercasing(model.getvalue()) if config.lowercase else model.getvalue())


def _lowercasing(model: bytes) -> bytes:
    """The model with rules for each letter, by which SentencePiece, and so any program that reads it, lowercases."""
    letters = (chr(number) for number in range(sys.maxunicode + 1) if chr(number) != chr(number).lower())
    rules = "".join(f"{_code_points(letter)}\t{_code_points(letter.lower())}\n" for letter in letters)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rules.tsv"
        path.write_text(rules, "utf-8")
        normalizer = sentencepiece.SentencePieceNormalizer(rule_tsv=str(path))
    parsed = require("sentencepiece.sentencepiece_model_pb2").ModelProto.FromString
    whole, compiled = parsed(model), parsed(normalizer.serialized_model_proto()).normalizer_spec
    whole.normalizer_spec.name = "lowercase"
    whole.normalizer_spec.precompiled_charsmap = compiled.precompiled_charsmap
    return whole.SerializeToString()


def _code_points(text: str) -> str:
    """As SentencePiece's rules have them."""
    return " ".join(f"{ord(character):X}" for character in text)


def _explained(error: RuntimeError, config: TokenizerConfig) -> Exception:
    """SentencePiece says only inside its message which size fits; other errors are returned unchanged."""
    asked = f"tokenizer.vocabulary_size={config.vocabulary_size}"
    if largest := re.search(r"value <= (\d+)", str(error)):
        return UserError(
            f"{asked}: this corpus allows at most {largest[1]}; choose a smaller vocabulary or more text"
        )
    if smallest := re.search(r"\d+ vs (\d+)", str(error)):
        coverage = ", or tokenizer.character_coverage=0.9998, which spells the rarest ones in bytes"
        return UserError(
            f"{asked}: the characters of this corpus need at least {smallest[1]}; choose a larger vocabulary"
            f"{coverage if config.character_coverage > 0.9998 else ''}"
        )
    if twice := re.search(r"(\S+) is already defined", str(error)):
        return UserError(
            f"tokenizer.lowercase=true: two of the corpus's parts have the tag {twice[1]}; rename one"
        )
    if "!sentences_.empty()" in str(error):
        return UserError(
            "no text for the tokenizer to learn from: it leaves out lines of more than 4,192 bytes"
        )
    return error
