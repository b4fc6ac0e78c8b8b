"""Which source token a target token translates, from nothing but which tokens occur in pairs together.

IBM model 1 (Brown et al. 1993, "The Mathematics of Statistical Machine Translation", section 4.2): each target token
was made by one source token, or by none, all of them equally likely beforehand. Knows ids; no model and no text.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

ITERATIONS = 6  # of expectation maximisation; the best partners hardly change afterwards

# Source id, None for no source token → target id → probability of the target, given the source.
LexicalTable = Mapping[int | None, Mapping[int, float]]
Pair = tuple[Sequence[int], Sequence[int]]


def learn_lexicon(pairs: Sequence[Pair], iterations: int = ITERATIONS) -> LexicalTable:
    """The translation probabilities that make the targets of these pairs most likely."""
    table: dict[int | None, dict[int, float]] = defaultdict(dict)
    for source, target in pairs:
        for word in (None, *source):
            table[word].update(dict.fromkeys(target, 1.0))  # any constant: the first step sees ratios only
    for _ in range(iterations):
        counts: dict[int | None, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for source, target in pairs:
            words = (None, *source)
            for made in target:
                total = sum(table[word][made] for word in words)
                for word in words:
                    counts[word][made] += table[word][made] / total
        for word, made in counts.items():
            total = sum(made.values())
            table[word] = {token: count / total for token, count in made.items()}
    return table


def partners(table: LexicalTable, source: Sequence[int], target: Sequence[int]) -> list[int | None]:
    """For each target token the place of the source token that most likely made it; None where that is none."""
    found: list[int | None] = []
    for token in target:
        chances = [table.get(word, {}).get(token, 0.0) for word in source]
        best = max(range(len(source)), key=chances.__getitem__, default=None)
        none = table.get(None, {}).get(token, 0.0)
        found.append(best if best is not None and chances[best] > none else None)
    return found
