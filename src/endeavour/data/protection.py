"""Markup, placeholders and addresses, which a translation has to keep as they are: symbols stand for them meanwhile.

`Press <b>{key}</b>` is `Press ⟦1⟧⟦2⟧⟦3⟧` to a model whose vocabularies have these symbols, and its translation gets the
spans back in their places. Knows text; not which vocabulary has how many symbols.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from endeavour.data.files import Pair

# What may stand in one side of a pair as it stands in the other. `50% sure` and `100%ig` hold no placeholder.
SPAN = re.compile(
    r"""
    </?[A-Za-z][^<>%]{0,200}>                                 # <b>, </b>, <a href="…">, <br/>
  | &(?:\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]\w{1,30});   # &amp; &#8211;
  | [$%]?\{\{?[^{}]{0,80}\}\}?                                # {name} {0} {{x}} ${x} %{x}
  | (?<![\d%])%(?:\(\w+\)|\d+\$)?[-+\#0']{0,3}\d{0,4}(?:\.\d{1,4})?(?:hh|h|ll|l|L|z|j|t|q)?
        [diouxXeEfFgGcsp@](?![A-Za-z])                        # %s %(name)s %1$d %.2f %lu
  | (?<![\d%])%L?\d{1,2}\b                                  # Qt's %1
  | (?:https?|ftp|file)://[^\s<>"„“”»«]*[^\s<>"„“”»«.,;:!?)'…]
  | (?<!\w)www\.[^\s<>"„“”»«]*[^\s<>"„“”»«.,;:!?)'…]
  | (?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+                  # e-mail
  | ⟦\d+⟧                                                     # what would be taken for a symbol afterwards
    """,
    re.VERBOSE,
)
_SYMBOL = re.compile(r"⟦(\d{1,6})⟧")


class Protected(NamedTuple):
    """A text with symbols, and the spans that they stand for: that of ⟦n⟧ is `spans[n - 1]`."""

    text: str
    spans: list[str]


def symbols(count: int) -> list[str]:
    """The first `count` symbols."""
    return [f"⟦{number}⟧" for number in range(1, count + 1)]


def protect(source: str, count: int) -> Protected:
    """The first `count` spans of a text replaced by symbols, in their order."""
    spans = SPAN.findall(source)[:count] if count else []
    numbers = iter(symbols(len(spans)))
    return Protected(SPAN.sub(lambda _: next(numbers), source, len(spans)) if spans else source, spans)


def protect_target(target: str, spans: Sequence[str]) -> str:
    """A translation in which the spans of its source are replaced by their symbols.

    Of equal spans the first in the source is the first in the target. What the source does not have stays.
    """
    if not spans:
        return target
    numbers: dict[str, list[str]] = {}
    for symbol, span in zip(symbols(len(spans)), spans, strict=True):
        numbers.setdefault(span, []).append(symbol)
    places = {span: iter(names) for span, names in numbers.items()}
    return SPAN.sub(lambda found: next(places.get(found[0], iter(())), found[0]), target)


def protect_pair(pair: Pair, count: int) -> Pair:
    """A source as a model reads it, and a translation of it as the model writes it."""
    source, spans = protect(pair[0], count)
    return source, protect_target(pair[1], spans)


def protect_training_pair(pair: Pair, count: int) -> Pair:
    """The same, but the pair as it is where its sides have other spans: it would teach a model to lose symbols."""
    source, target = pair
    if not count or Counter(SPAN.findall(source)) != Counter(SPAN.findall(target)):
        return pair
    return protect_pair(pair, count)


def restore(text: str, spans: Sequence[str], count: int) -> str:
    """`text` with the spans in the places of their symbols; one of the `count` symbols that stands for none is left
    out, and what only looks like a symbol stays."""

    def span_of(found: re.Match[str]) -> str:
        number = int(found[1])
        if not 1 <= number <= count:
            return found[0]
        return spans[number - 1] if number <= len(spans) else ""

    return _SYMBOL.sub(span_of, text) if "⟦" in text else text


def lost_spans(source: str, translation: str) -> list[str]:
    """The spans of a source that its translation does not have as often, each as often as it is missing."""
    return list((Counter(SPAN.findall(source)) - Counter(SPAN.findall(translation))).elements())
