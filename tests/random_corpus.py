"""References of random words, and what systems make of them that get a share of the words right."""

import random

WORDS = [f"wort{number}" for number in range(200)]


def outputs(references: list[str], right: float, seed: int = 3) -> list[str]:
    """With a share `right` of the words, and another one in place of each of the rest."""
    draw = random.Random(seed)
    return [
        " ".join(word if draw.random() < right else "falsch" for word in line.split()) for line in references
    ]


def corpus(right: float, sentences: int = 60, seed: int = 3) -> tuple[list[str], list[str]]:
    """Outputs, which the seed draws, and references, which are always the same."""
    draw = random.Random(3)
    references = [" ".join(draw.choices(WORDS, k=draw.randint(5, 15))) for _ in range(sentences)]
    return outputs(references, right, seed), references
