"""The vocabulary of a Marian checkpoint in Hugging Face's form as two SentencePiece models with our ids.

Such a checkpoint has a SentencePiece model for each side, and vocab.json, which gives the pieces of both ids from one
set. Here each model is written anew with all pieces in one order, so that its own ids are those of the weights' rows. A
piece that the side itself does not know is marked as unused, and not found in a text. Knows files; no weights.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from endeavour.data.tokenizer import SIDES, Tokenizer, Tokenizers
from endeavour.errors import UserError
from endeavour.optional import require
from endeavour.special import BOS, EOS, PAD, UNK

SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")  # by our ids
BPE = 2  # sentencepiece's TrainerSpec.ModelType
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # sentencepiece's SentencePiece.Type
# What SentencePiece's unigram model takes off the least score for a character that it does not know.
UNKNOWN_COST = 10.0


class MarianVocabulary(NamedTuple):
    """Two vocabularies of one size, with shared ids.

    Attributes:
        tokenizers: of source and target.
        rows: for each of our ids the checkpoint's; None where it has none.
        algorithm: of the source's SentencePiece model.
    """

    tokenizers: Tokenizers
    rows: list[int | None]
    algorithm: Literal["bpe", "unigram"]


def read_marian_vocabulary(folder: Path, *, pad: int, eos: int) -> MarianVocabulary:
    """Reads vocab.json, source.spm and target.spm.

    Args:
        pad, eos: the checkpoint's ids of padding and of the end of a sentence.

    Raises:
        UserError: a file is missing or damaged, or the model translates into several languages.
    """
    ids = _read_ids(folder / "vocab.json")
    names = {number: piece for piece, number in ids.items()}
    sides = [_read_model(folder / f"{side}.spm") for side in SIDES]
    special: list[int | None] = [pad, ids[SPECIAL[UNK]], ids.get(SPECIAL[BOS]), eos]
    others = sorted(names.keys() - set(special))
    # SentencePiece may need the pieces that vocab.json lacks on its way to longer ones.
    lacking = sorted({piece.piece for side in sides for piece in side.pieces if _spells(piece)} - ids.keys())
    pieces = [*SPECIAL, *(names[number] for number in others), *lacking]
    if len(set(pieces)) < len(pieces):
        raise UserError(f"{folder / 'vocab.json'}: {', '.join(SPECIAL)} have other ids than config.json says")
    source, target = (Tokenizer(_with_pieces(side, pieces, known=ids.keys())) for side in sides)
    algorithm = "bpe" if sides[0].trainer_spec.model_type == BPE else "unigram"
    return MarianVocabulary((source, target), [*special, *others, *(None for _ in lacking)], algorithm)


def _read_ids(path: Path) -> dict[str, int]:
    """Piece → id."""
    try:
        ids: dict[str, int] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a readable vocabulary ({error})") from error
    if SPECIAL[UNK] not in ids or sorted(ids.values()) != list(range(len(ids))):
        raise UserError(f"{path}: not the vocabulary of a Marian model, with ids from 0 on, <unk> among them")
    if codes := [piece for piece in ids if piece.startswith(">>") and piece.endswith("<<")]:
        raise UserError(
            f"{path}: this model translates into several languages, each sentence begins with a code ({codes[0]} …): "
            "only models of one direction are supported"
        )
    return ids


def _read_model(path: Path) -> Any:
    model = require("sentencepiece.sentencepiece_model_pb2").ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
    except Exception as error:  # of the file, or of protobuf, which has kinds of its own
        raise UserError(f"{path}: not a readable SentencePiece model ({error})") from error
    return model


def _spells(piece: Any) -> bool:
    """Whether it stands for something in a text."""
    return piece.type in (NORMAL, USER_DEFINED, BYTE)


def _with_pieces(side: Any, pieces: Sequence[str], known: Any) -> bytes:
    """The model `side` with these pieces instead of its own, in this order; those not `known` are unused."""
    model = type(side)()
    model.CopyFrom(side)
    model.DiscardUnknownFields()  # samples with their ids, which SentencePiece would test itself with
    own = {piece.piece: piece for piece in side.pieces if _spells(piece)}
    # MarianTokenizer looks up what SentencePiece does not know in vocab.json, and finds characters of the other side.
    found = min(piece.score for piece in own.values()) - UNKNOWN_COST
    del model.pieces[:]
    for number, text in enumerate(pieces):
        if number < len(SPECIAL):
            model.pieces.add(piece=text, score=0.0, type=UNKNOWN if number == UNK else CONTROL)
        elif text not in own:
            model.pieces.add(piece=text, score=found, type=NORMAL if len(text) == 1 else UNUSED)
        else:
            kind = own[text].type
            unused = text not in known and kind != BYTE  # of bytes SentencePiece wants all or none
            model.pieces.add(piece=text, score=own[text].score, type=UNUSED if unused else kind)
    spec = model.trainer_spec
    spec.vocab_size = len(pieces)
    spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id = PAD, UNK, BOS, EOS
    spec.pad_piece, spec.unk_piece, spec.bos_piece, spec.eos_piece = SPECIAL
    return model.SerializeToString()
