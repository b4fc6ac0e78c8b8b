"""Moses' tokens by hand, of any text, and beside the corpus' own files."""

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from endeavour.data.text_files import text_lines
from endeavour.errors import UserError
from endeavour.evaluation import metrics, moses
from multi30k import MULTI30K, needs_multi30k


@pytest.mark.parametrize(
    ("language", "line", "tokens"),
    [
        ("de", "Ein Mädchen, das STEHT.", "ein mädchen , das steht ."),
        ("de", "Auf dem Schild steht „Geöffnet“!", "auf dem schild steht &quot; geöffnet &quot; !"),
        (
            "de",
            "Der 3-Jährige läuft 2,5 km – ca. 1.000 Schritte.",
            "der 3-jährige läuft 2,5 km - ca. 1.000 schritte .",
        ),
        ("de", "  Brot   & Käse…  ", "brot &amp; käse ..."),
        # The dot leaves the quotation marks, at the end of a line as elsewhere.
        ("de", 'Sie ruft: "Halt."', "sie ruft : &quot; halt &quot; ."),
        ("de", 'Sie ruft: "Halt." Er geht.', "sie ruft : &quot; halt &quot; . er geht ."),
        ("en", "The DOG's ball isn’t here.", "the dog &apos;s ball isn &apos;t here ."),
        ("en", 'It reads "Open", doesn\'t it?', "it reads &quot; open , &quot; doesn &apos;t it ?"),
        ("de", "", ""),
    ],
)
def test_lines_tokenized_by_hand(language: str, line: str, tokens: str) -> None:
    assert moses.tokenize([line], language) == [tokens]


@settings(max_examples=50)
@given(st.lists(st.text(max_size=30), max_size=4), st.sampled_from(["de", "en"]))
@example(["a\nb\r\u2028c", "\x00", "DOTMULTI.. ...."], "de")
def test_any_text_comes_out_as_one_line_of_single_spaced_tokens_each(lines: list[str], language: str) -> None:
    tokenized = moses.tokenize(lines, language)
    assert len(tokenized) == len(lines)
    for line in tokenized:
        assert "\n" not in line
        assert "  " not in line
        assert line == line.strip(" ")
    assert moses.tokenize([line.lower() for line in lines], language) == tokenized


def test_a_published_file_is_taken_as_it_stands(tmp_path: Path) -> None:
    references = ["Ein Hund rennt.", "Zwei Hunde.", "Sie sagt „ja“."]
    lines = ["ein hund rennt .", "zwei hunde .", 'sie sagt " ja " .']  # not escaped: one line that differs
    (tmp_path / "file").write_bytes("\r\n".join(lines).encode())
    assert moses.read_tokenized(tmp_path / "file", references, "de") == lines


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"ein hund .\n", "1 lines for 2 references"),
        (b"ein hund .\nzwei hunde .\n\n", "3 lines for 2 references"),
        (b"Ein Hund.\nZwei Hunde.\n", "only 0 of 2 lines"),
        (b"a dog .\ntwo dogs .\n", "another test set's"),
        (b"ein hund .\n\xff\n", ":2: invalid UTF-8"),
    ],
)
def test_a_file_that_does_not_belong_to_the_references_is_refused(
    content: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UserError, match=message):
        moses.read_tokenized(tmp_path / "file", ["Ein Hund.", "Zwei Hunde."], "de")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere: no such file"):
        moses.read_tokenized(tmp_path / "nowhere", ["Ein Hund."], "de")


@needs_multi30k
@pytest.mark.parametrize("language", ["de", "en"])
@pytest.mark.parametrize("split", ["val", "test_2016_flickr"])
def test_the_published_files_come_out_line_by_line(split: str, language: str) -> None:
    ours = moses.tokenize(list(text_lines(MULTI30K / f"{split}.{language}")), language)
    assert ours == list(text_lines(MULTI30K / "tok" / f"{split}.lc.norm.tok.{language}"))


@needs_multi30k
def test_translations_score_the_same_against_the_published_file() -> None:
    references = list(text_lines(MULTI30K / "test_2016_flickr.de"))
    path = MULTI30K / "tok" / "test_2016_flickr.lc.norm.tok.de"
    file = moses.read_tokenized(path, references, "de")
    hypotheses = [" ".join(line.split()[:-1]) + "." for line in references]  # each without its last word
    ours, theirs = (
        metrics.score_corpus(
            hypotheses,
            references,
            bootstrap_samples=40,
            seed=1,
            tokenized_as="de",
            tokenized_references=lines,
        )["bleu_tokenized"]
        for lines in (None, file)
    )
    assert 50 < ours.value < 99
    assert (ours.value, ours.low, ours.high) == (theirs.value, theirs.low, theirs.high)


@needs_multi30k
def test_the_validation_file_is_not_taken_for_the_test_set() -> None:
    references = list(text_lines(MULTI30K / "test_2016_flickr.de"))
    with pytest.raises(UserError, match="1,014 lines for 1,000 references"):
        moses.read_tokenized(MULTI30K / "tok" / "val.lc.norm.tok.de", references, "de")
    with pytest.raises(UserError, match="another test set's"):
        moses.read_tokenized(MULTI30K / "tok" / "test_2016_flickr.lc.norm.tok.en", references, "de")
