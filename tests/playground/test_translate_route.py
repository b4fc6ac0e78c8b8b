"""POST /translate: LibreTranslate's schema, lines joined across requests, and nothing mixed up."""

import asyncio
import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endeavour.decoding.translator import Translation
from endeavour.playground import libretranslate, systems
from endeavour.playground.libretranslate import LONGEST, lines_of
from endeavour.playground.systems import System
from endeavour.playground.worker import Job
from endeavour.runs.run import Run
from endeavour.runs.translators import load_runs, open_translator
from served import JSON, Answer, Served
from waiting import TIMEOUT, until

FORM = "application/x-www-form-urlencoded"
TEXTS = ["Satz 7 hat Worte.", "Ja!", "", "wie\n\nWorte wie 12"]


def asked(site: Served, q: object, **more: object) -> Any:
    answer = site.post("/translate", {"q": q, "source": "en", "target": "de", **more})
    assert answer.status == 200, answer.body
    return answer.json


@pytest.fixture(scope="module")
def expected(site: Served, run: Run) -> dict[str, str]:
    """What `translate` makes of each line."""
    device = site.playground.systems.get(None).device
    translator = open_translator([run], load_runs([run], device, None), run.config.decoding)
    lines = [line for text in TEXTS for line in text.split("\n")]
    return dict(zip(lines, translator.translate(lines), strict=True))


def test_a_text_a_list_and_paragraphs(site: Served, expected: dict[str, str]) -> None:
    wanted = ["\n".join(expected[line] for line in text.split("\n")) for text in TEXTS]
    assert asked(site, TEXTS) == {"translatedText": wanted}
    for text, translation in zip(TEXTS, wanted, strict=True):
        assert asked(site, text) == {"translatedText": translation}
    assert asked(site, []) == {"translatedText": []}
    assert asked(site, TEXTS, api_key=5) == {"translatedText": wanted}


def test_what_takes_long_for_a_long_text_holds_nobody_else_up(
    site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("lines_of_all", "answer"):
        slow = getattr(libretranslate, name)

        def beside_the_loop(*arguments: Any, slow: Any = slow, **keywords: Any) -> Any:
            with pytest.raises(RuntimeError, match="no running event loop"):
                asyncio.get_running_loop()
            return slow(*arguments, **keywords)

        monkeypatch.setattr(libretranslate, name, beside_the_loop)
    asked(site, TEXTS)


@given(st.lists(st.tuples(st.integers(1, LONGEST - 1), st.sampled_from(["", ".", "!"])), max_size=5))
def test_a_long_sentence_is_translated_in_parts_that_end_with_its_words(words: list[tuple[int, str]]) -> None:
    text = " ".join("x" * length + end for length, end in words)
    for language in (None, "en"):
        (line,) = lines_of(text, language)
        assert all(len(part) <= LONGEST for part, _ in line)
        assert " ".join(part for part, _ in line) == text
    (line,) = lines_of(text.replace(" ", ""), None)
    assert "".join(part for part, _ in line) == text.replace(" ", "")


def test_of_a_long_line_a_part_ends_with_a_sentence_where_one_does() -> None:
    (line,) = lines_of("a. " + "b " * LONGEST, None)
    assert line[0] == ("a.", " ")
    assert all(len(part) <= LONGEST for part, _ in line)


def test_a_byte_order_mark_is_no_part_of_a_request(site: Served) -> None:
    body = json.dumps({"q": "Ja!", "source": "en", "target": "de"}).encode("utf-8-sig")
    answer = site.ask("POST", "/translate", body, {"Content-Type": JSON})
    assert answer.json == asked(site, "Ja!")


@pytest.mark.parametrize("q", [None, 5, {"text": "Ja!"}])
def test_what_is_no_text_is_refused_by_its_key(site: Served, q: object) -> None:
    answer = site.post("/translate", {"q": q, "target": "de"})
    assert (answer.status, answer.json["error"][:3]) == (400, "q: ")


def test_a_form_is_understood_like_json(site: Served) -> None:
    for texts in (["Ja & nein = Worte"], ["Satz 1", "Sätze 2"]):
        fields = [
            *(("q", text) for text in texts),
            ("source", "auto"),
            ("target", "de"),
            ("alternatives", "2"),
        ]
        answer = site.ask("POST", "/translate", urlencode(fields), {"Content-Type": f"{FORM}; charset=utf-8"})
        q = texts[0] if len(texts) == 1 else texts
        assert answer.json == asked(site, q, source="auto", alternatives=2)


def test_alternatives_are_other_translations_the_best_first(site: Served) -> None:
    one = asked(site, "Satz 7 hat Worte.", alternatives=3)
    assert one["translatedText"] == asked(site, "Satz 7 hat Worte.")["translatedText"]
    several = [one["translatedText"], *one["alternatives"]]
    assert 1 < len(several) <= 4
    assert len(set(several)) == len(several)
    listed = asked(site, ["Satz 7 hat Worte.", "Ja!"], alternatives=3)
    assert listed["alternatives"][0] == one["alternatives"]
    assert len(listed["alternatives"]) == 2


def test_more_alternatives_than_the_beam_has_places_take_no_further_translator(site: Served) -> None:
    system = site.playground.systems.get(None)
    assert system.decoding.beam_size == 3
    assert system.translator(21) is system.translator(3) is not system.translator(1)


def test_an_export_is_in_memory_once(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "open_translator", lambda *_: object())
    system = site.playground.systems.get(None)
    decoding = replace(system.decoding, engine="ctranslate2")
    exported = replace(system, decoding=decoding, _translators={})
    assert exported.translator(1) is exported.translator(2) is exported.translator(21)


def test_the_language_is_named_where_it_was_left_open(site: Served) -> None:
    language = {"confidence": 100.0, "language": "en"}
    assert asked(site, "Ja!", source="auto")["detectedLanguage"] == language
    assert asked(site, ["Ja!", "Ja!"], source="auto")["detectedLanguage"] == [language] * 2
    assert site.get("/languages").json == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": []},
    ]
    assert site.get("/health").json == {"status": "ok"}


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"q": "Ja!", "source": "de", "target": "en"}, "en to de"),
        ({"q": "Ja!", "source": "fr", "target": "de"}, "source=fr"),
        ({"q": "Ja!", "source": "en"}, "target"),
        ({"source": "en", "target": "de"}, "q"),
        ({"q": "<p>Ja!</p>", "source": "en", "target": "de", "format": "html"}, "format"),
        ({"q": "Ja!", "source": "en", "target": "de", "alternatives": -1}, "alternatives"),
        ({"q": "Ja!", "source": "en", "target": "de", "alternatives": 21}, "alternatives"),
        ({"q": "Ja!", "source": "en", "target": "de", "model": "big"}, "model"),
        ({"q": ["Ja!", 5], "source": "en", "target": "de"}, "q"),
        ({"q": "x" * 100_001, "source": "en", "target": "de"}, "100,001"),
        ({"q": [""] * 100_001, "source": "en", "target": "de"}, "100,001"),
    ],
)
def test_what_is_not_possible_is_refused_by_name(site: Served, body: dict[str, Any], named: str) -> None:
    answer = site.post("/translate", body)
    assert answer.status == 400
    assert named in answer.json["error"]
    fields = urlencode([(key, str(value)) for key, value in body.items() if not isinstance(value, list)])
    if not isinstance(body.get("q"), list):
        assert site.ask("POST", "/translate", fields, {"Content-Type": FORM}).status == 400


class Echo:
    """In place of a translator: what it makes of a line belongs to that line and no other."""

    def __init__(self, calls: list[int], order: int = 1) -> None:
        self._calls, self._order = calls, order

    def hypotheses(self, lines: Sequence[str]) -> list[list[Translation]]:
        self._calls.append(len(lines))
        marks = [("<{}>", 0.0), ("<<{}>>", -1.0)][:: self._order]
        return [[Translation(mark.format(line), score, score, ()) for mark, score in marks] for line in lines]


def test_64_clients_at_a_time_each_get_their_own(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """They all wait before the first is served, so that as much is joined as can be."""
    calls: list[int] = []
    monkeypatch.setattr(System, "translator", lambda *_: Echo(calls))
    gate, clients = threading.Event(), 64
    site.playground.worker.submit(Job(lambda _: gate.wait(TIMEOUT)))

    def client(number: int) -> list[Answer]:
        answers: list[Answer] = []
        connection = site.connect()
        for turn in range(3):
            texts = [f"{number}.{turn}.{line}" for line in range(1 + number % 3)]
            body = json.dumps({"q": texts, "source": "en", "target": "de", "alternatives": number % 2})
            connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answers.append(Answer(response.status, {}, response.read()))
            assert answers[-1].json["translatedText"] == [f"<{text}>" for text in texts]
            if number % 2:
                assert answers[-1].json["alternatives"] == [[f"<<{text}>>"] for text in texts]
        connection.close()
        return answers

    with ThreadPoolExecutor(clients) as pool:
        done = [pool.submit(client, number) for number in range(clients)]
        until(lambda: site.playground.worker.waiting == clients)
        gate.set()
        assert all(answer.status == 200 for one in done for answer in one.result())
    assert sum(calls) == 3 * sum(1 + number % 3 for number in range(clients))
    assert max(calls) == site.playground.settings.joined_lines


@pytest.mark.parametrize("drawn", [True, False])
def test_samples_of_sentences_are_joined_one_to_one_and_beam_hypotheses_by_their_scores(
    site: Served, monkeypatch: pytest.MonkeyPatch, drawn: bool
) -> None:
    monkeypatch.setattr(System, "translator", lambda *_: Echo([], order=-1 if drawn else 1))
    decoding = site.playground.systems.decoding
    if drawn:
        decoding = replace(decoding, sampling=True, beam_size=1, epsilon=0.02)
    monkeypatch.setattr(site.playground.systems, "decoding", decoding)
    found = asked(site, "Ja! Nein.", alternatives=1)
    second = "<<Ja!>> <<Nein.>>" if drawn else "<Ja!> <<Nein.>>"
    assert found == {"translatedText": "<Ja!> <Nein.>", "alternatives": [second]}


def test_a_line_of_many_sentences_is_as_many_lines(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(System, "translator", lambda *_: Echo(calls))
    limit = site.playground.settings.joined_lines
    text = "Ja!  Nein.\n\n" + "Ja! " * 2 * limit
    found = asked(site, text, alternatives=1)
    assert max(calls) == limit
    assert found["translatedText"] == "<Ja!>  <Nein.>\n<>\n" + " ".join(["<Ja!>"] * 2 * limit)
    # Of a line the second best differs in one sentence from the best.
    others = ["<Ja!>"] * (2 * limit - 1)
    assert found["alternatives"] == ["<Ja!>  <<Nein.>>\n<<>>\n" + " ".join([*others, "<<Ja!>>"])]


def test_who_finds_the_queue_full_is_told_to_come_again(
    site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, begun = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        begun.set()
        gate.wait(TIMEOUT)

    site.playground.worker.submit(Job(hold))
    assert begun.wait(TIMEOUT)
    monkeypatch.setattr(site.playground.worker, "_most_waiting", 1)
    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(asked, site, "Ja!")
        until(lambda: site.playground.worker.waiting > 0)
        for path, body in (
            ("/translate", {"q": "Ja!", "target": "de"}),
            ("/api/search", {"text": "Ja!"}),
            ("/api/analyse", {"text": "Ja!", "target": {"text": "Ja!"}}),
        ):
            answer = site.post(path, body)
            assert answer.status == 503
            assert answer.headers["retry-after"]
            assert answer.json["error"]
        gate.set()
        assert waits.result()["translatedText"]
