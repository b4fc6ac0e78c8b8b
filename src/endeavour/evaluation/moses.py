"""Text as papers on Multi30k score it: lowercased, punctuation normalized, tokenized by Moses' rules.

The corpus' own files of that kind, `*.lc.norm.tok.*` (Elliott et al. 2016; scripts/task1-tokenize.sh of
https://github.com/multi30k/dataset), were made by Moses' lowercase.perl, normalize-punctuation.perl and tokenizer.perl
(Koehn et al. 2007); sacremoses has the rules of the last two in Python. Knows lines of text; neither scores nor splits.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from endeavour.data.text_files import aligned_lines
from endeavour.errors import UserError


def tokenize(lines: Sequence[str], language: str) -> list[str]:
    """The tokens of each line with single spaces between them; `"`, `'` and `&` are escaped, as Moses does.

    `language` is "en" or "de": quotation marks, apostrophes, and abbreviations that keep their dot.
    """
    # Imported here: it takes a third of a second, and most commands do not need it.
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    normalizer, tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)
    tokenized: list[str] = []
    for line in lines:
        # Moses' script sees the line end, and so treats a full stop and quotation mark before it as elsewhere.
        text = cast(str, normalizer.normalize(" ".join(line.lower().splitlines()) + "\n"))
        tokenized.append(cast(str, tokenizer.tokenize(text, return_str=True)))
    return tokenized


def signature() -> str:
    """What `tokenize` did, to be appended to sacreBLEU's signature."""
    from sacremoses import __version__

    return f"moses:lc.norm.tok|sacremoses:{__version__}"


def read_tokenized(path: Path, references: Sequence[str], language: str) -> list[str]:
    """The lines of a published file of `references`, tokenized like `tokenize`, unchanged.

    Raises:
        UserError: the file is not there or damaged, has another number of lines, or fewer than half of them are
            what `tokenize` makes of the references: another test set's, another language's, or not tokenized.
    """
    lines = aligned_lines(path, len(references), "references")
    ours = tokenize(references, language)
    same = sum(one.split() == other.split() for one, other in zip(lines, ours, strict=True))
    if 2 * same < len(lines):
        raise UserError(
            f"{path}: only {same:,} of {len(lines):,} lines are the references, lowercased and tokenized by Moses' "
            f"rules for {language!r}: is it another test set's, or not tokenized?"
        )
    return lines
