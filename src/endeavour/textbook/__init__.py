"""The textbook corpus: English-German sentence pairs drawn from a bilingual grammar, without any network.

lexicon/*.tsv        the words; README.md there tells how to add one
entries.py           the words as records
rows.py reading.py   read the lexicon and check it
morphology_*.py      inflection, one file a language
numerals.py          numbers, clock times, dates
trees.py             the sentence as a tree of neither language
german.py english.py write the same tree, each in its language; german_phrases.py its phrases in their cases
draw.py              random words by class
phrases.py adverbials.py tenses.py clauses.py  random parts of trees, chosen so that they make sense
simple.py descriptions.py joined.py relatives.py  random sentences, a function for each construction
generate.py          all constructions and how often each comes; the splits
"""

from endeavour.textbook.generate import textbook_splits

__all__ = ["textbook_splits"]
