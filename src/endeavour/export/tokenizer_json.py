"""A SentencePiece vocabulary as Hugging Face's tokenizer.json, with its normal form: `AutoTokenizer` reads it.

BPE: SentencePiece joins whatever two neighbours make a piece, the piece that was learnt first before all others; so
every way to split a piece becomes a merge, in the order of the pieces. Unigram: both look for the best path through the
same scores. A user-defined symbol is cut out before BPE; in unigram it has the score by which SentencePiece prefers it.
What is known to differ is written in the model card (`readme.py`). Knows pieces and lines; no model.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from endeavour.data.marian_vocabulary import BPE, BYTE, NORMAL, UNKNOWN, USER_DEFINED
from endeavour.data.marian_vocabulary import CONTROL as CONTROL_PIECE
from endeavour.data.normalization import CONTROL, SPACE_MARK
from endeavour.data.tokenizer import Tokenizer, Tokenizers
from endeavour.errors import UserError
from endeavour.optional import require
from endeavour.special import BOS, EOS, PAD, UNK

TARGET_FOLDER = "target"  # of the target's tokenizer, where the two differ: AutoTokenizer holds only one


def write_tokenizers(folder: Path, tokenizers: Tokenizers, *, positions: int) -> None:
    """Writes tokenizer.json and tokenizer_config.json into `folder`, and the target's into a subfolder if it differs.

    Args:
        positions: the most ids of a sentence, EOS included.

    Raises:
        UserError: a vocabulary has pieces of a kind that the format does not know.
    """
    source, target = tokenizers
    _write(folder, source, positions)
    if is_separate(tokenizers):
        (folder / TARGET_FOLDER).mkdir()
        _write(folder / TARGET_FOLDER, target, positions)


def is_separate(tokenizers: Tokenizers) -> bool:
    """Whether source and target have vocabularies of their own."""
    source, target = tokenizers
    return source.digest != target.digest


def require_same_ids(
    folder: Path, tokenizers: Tokenizers, lines: tuple[Sequence[str], Sequence[str]]
) -> None:
    """Raises `UserError` where a written tokenizer splits or joins one of these lines otherwise than SentencePiece."""
    source, target = tokenizers
    for part, tokenizer, texts in (
        (folder, source, lines[0]),
        (folder / TARGET_FOLDER if is_separate(tokenizers) else folder, target, lines[1]),
    ):
        theirs = require("tokenizers").Tokenizer.from_file(str(part / "tokenizer.json"))
        theirs.encode_special_tokens = True  # as tokenizer_config.json says
        ours = tokenizer.encode(texts)
        ids = [encoding.ids for encoding in theirs.encode_batch(list(texts), add_special_tokens=False)]
        joined = theirs.decode_batch(ours, skip_special_tokens=True)
        for number, differs in enumerate(
            split != expected or text != whole
            for split, expected, text, whole in zip(ids, ours, joined, tokenizer.decode(ours), strict=True)
        ):
            if differs:
                raise UserError(
                    f"tokenizer.json does not do what SentencePiece does with {texts[number]!r}; nothing was written\n"
                    "use format=ctranslate2"
                )


def _write(folder: Path, tokenizer: Tokenizer, positions: int) -> None:
    pad, unk, bos, eos = tokenizer.pieces([PAD, UNK, BOS, EOS])
    fast = _converted(tokenizer)
    fast.post_processor = require("tokenizers").processors.TemplateProcessing(
        single=f"$A {eos}", pair=f"$A {eos} $B {eos}", special_tokens=[(eos, EOS)]
    )
    require("transformers").PreTrainedTokenizerFast(
        tokenizer_object=fast,
        pad_token=pad,
        unk_token=unk,
        bos_token=bos,
        eos_token=eos,
        split_special_tokens=True,  # "</s>" in a text is four characters
        clean_up_tokenization_spaces=False,
        model_max_length=positions,
        model_input_names=["input_ids", "attention_mask"],
    ).save_pretrained(str(folder))


def _converted(tokenizer: Tokenizer) -> Any:
    """The same function as a `tokenizers.Tokenizer`, without EOS."""
    tokenizers = require("tokenizers")
    model = require("sentencepiece.sentencepiece_model_pb2").ModelProto.FromString(tokenizer.serialized)
    kinds = {piece.type for piece in model.pieces}
    if unknown := kinds - {NORMAL, UNKNOWN, CONTROL_PIECE, USER_DEFINED, BYTE}:
        raise UserError(
            f"format=huggingface cannot hold this vocabulary: its pieces of type {min(unknown)} (see "
            "sentencepiece_model.proto) have no counterpart; use format=ctranslate2"
        )
    fast = tokenizers.Tokenizer(_bpe(model) if model.trainer_spec.model_type == BPE else _unigram(model))
    normal, split, decode = tokenizers.normalizers, tokenizers.pre_tokenizers.Split, tokenizers.decoders
    control = tokenizers.Regex(f"[{CONTROL}]")
    spaces = tokenizers.Regex(f"[{_whitespace()}{SPACE_MARK}]+")
    fast.normalizer = normal.Sequence(
        [
            normal.Replace(control, ""),
            normal.NFC(),
            *([normal.Lowercase()] if tokenizer.lowercase else []),
            normal.Replace(spaces, " "),
            normal.Strip(),
            normal.Prepend(SPACE_MARK),
            normal.Replace(" ", SPACE_MARK),
        ]
    )
    # A piece such as "</s>" or "<0x41>" stands for no text, but unigram would find it in one.
    names = "|".join(piece.piece[1:-1] for piece in model.pieces if piece.type not in (NORMAL, USER_DEFINED))
    splits = [split(tokenizers.Regex(f"<(?=({names})>)"), "isolated")]
    symbols = sorted(_symbols(model), key=len, reverse=True)  # of two that begin alike, the longer one
    if symbols and model.trainer_spec.model_type == BPE:
        splits.insert(0, split(tokenizers.Regex("|".join(map(re.escape, symbols))), "isolated"))
    fast.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(splits) if len(splits) > 1 else splits[0]
    fast.decoder = decode.Sequence(
        [
            decode.Replace(SPACE_MARK, " "),
            decode.ByteFallback(),
            decode.Fuse(),
            decode.Replace(control, ""),
            decode.Replace(spaces, " "),
            decode.Replace(tokenizers.Regex(r"\A | \z"), ""),  # Strip fails on an empty text
        ]
    )
    return fast


def _bpe(model: Any) -> Any:
    ids = {piece.piece: number for number, piece in enumerate(model.pieces)}
    ranked = sorted((piece for piece in model.pieces if piece.type == NORMAL), key=lambda piece: -piece.score)
    merges = [
        (piece.piece[:end], piece.piece[end:])
        for piece in ranked
        for end in range(1, len(piece.piece))
        if piece.piece[:end] in ids and piece.piece[end:] in ids
    ]
    return require("tokenizers").models.BPE(
        ids,
        merges,
        unk_token=model.pieces[UNK].piece,
        fuse_unk=True,
        byte_fallback=True,
        # No merges make a symbol. Any other piece that stands alone is made by its merges anyway.
        ignore_merges=bool(_symbols(model)),
    )


def _unigram(model: Any) -> Any:
    # A symbol's score as in `Model::EncodeOptimized` of sentencepiece's unigram_model.cc.
    best = max(piece.score for piece in model.pieces if piece.type == NORMAL)
    scores = [
        (
            piece.piece,
            len(piece.piece.encode()) * best - 0.1 if piece.type == USER_DEFINED else piece.score,
        )
        for piece in model.pieces
    ]
    return require("tokenizers").models.Unigram(scores, unk_id=UNK, byte_fallback=True)


def _symbols(model: Any) -> list[str]:
    return [piece.piece for piece in model.pieces if piece.type == USER_DEFINED]


def _whitespace() -> str:
    """All that `str.split` takes for it."""
    return "".join(character for character in map(chr, range(sys.maxunicode + 1)) if character.isspace())
