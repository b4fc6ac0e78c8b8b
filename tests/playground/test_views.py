"""What the page is told about a search and about a pair is what the library says."""

import gc
import math
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from configs import run_config
from endeavour.data.tokenizer import Tokenizers
from endeavour.decoding.length_penalty import length_penalty
from endeavour.decoding.scoring import log_probabilities
from endeavour.native.compiler import library_or_reason
from endeavour.playground.schemas import Prefix, SearchRequest
from endeavour.playground.search_view import _numbers, show_search
from endeavour.playground.systems import System
from endeavour.runs.run import Run
from endeavour.runs.translators import Loaded, load_runs, open_translator
from endeavour.special import BOS, EOS, UNK
from scripted import OTHER, WORD, Scripted
from served import Served, served

TEXT = "Satz 7 hat Worte."


def search(site: Served, **asked: object) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """The data of start, all nodes, and the data of result."""
    events = site.stream("/api/search", {"text": TEXT, **asked})
    assert events[0][0] == "start"
    assert events[-1][0] == "result"
    assert {name for name, _ in events[1:-1]} == {"step"}
    steps = [data for _, data in events[1:-1]]
    assert [step["step"] for step in steps] == list(range(len(steps)))
    return events[0][1], [node for step in steps for node in step["nodes"]], events[-1][1]


@pytest.fixture(scope="module")
def tokenizers(site: Served) -> Tokenizers:
    return site.playground.systems.default.load_tokenizers()


def pieces(tokenizers: Tokenizers, ids: list[int]) -> list[dict[str, Any]]:
    return [
        {"id": number, "piece": piece} for number, piece in zip(ids, tokenizers[1].pieces(ids), strict=True)
    ]


def test_a_search_is_a_tree_whose_leaves_are_the_hypotheses(site: Served, tokenizers: Tokenizers) -> None:
    start, nodes, result = search(site, beam_size=3, length_penalty=0.6, pruned=2)
    assert start["source"] == pieces(tokenizers, [*tokenizers[0].encode([TEXT])[0], EOS])
    assert (start["beam_size"], start["length_penalty"]) == (3, 0.6)
    assert nodes[0]["parent"] is None
    assert nodes[0]["piece"] == "<s>"
    assert [node["id"] for node in nodes] == list(range(len(nodes)))
    for node in nodes[1:]:
        parent = nodes[node["parent"]]
        assert node["step"] == parent["step"] + 1
        assert node["total"] == pytest.approx(parent["total"] + node["log_probability"], abs=1e-4)
        assert node["score"] == pytest.approx(node["total"] / length_penalty(node["step"], 0.6), abs=1e-4)
        assert (node["status"] == "pruned") == bool(node["why"])
        assert parent["status"] == "kept"
    for hypothesis in result["hypotheses"]:
        node, ids = nodes[hypothesis["node"]], []
        assert node["status"] == "finished"
        assert node["score"] == pytest.approx(hypothesis["score"], abs=1e-4)
        while node["parent"] is not None:
            ids.append(node["token"])
            node = nodes[node["parent"]]
        assert ids[::-1] == [*hypothesis["ids"], EOS]
        assert hypothesis["pieces"] == pieces(tokenizers, [*hypothesis["ids"], EOS])
        assert hypothesis["text"] == tokenizers[1].decode([hypothesis["ids"]])[0]


def test_at_most_so_many_pruned_nodes_are_told_and_each_is_worse_than_the_worst_kept(site: Served) -> None:
    _, nodes, _ = search(site, beam_size=2, pruned=3)
    for step in {node["step"] for node in nodes}:
        kept = [node["total"] for node in nodes if node["step"] == step and node["status"] != "pruned"]
        pruned = [node["total"] for node in nodes if node["step"] == step and node["status"] == "pruned"]
        assert len(pruned) <= 3
        assert not pruned or max(pruned) <= min(kept)
    assert not any(node["status"] == "pruned" for node in search(site, beam_size=2, pruned=0)[1])


def test_the_best_hypothesis_is_that_of_translate(site: Served, run: Run) -> None:
    loaded = load_runs([run], site.playground.systems.get(None).device, None)
    translator = open_translator([run], loaded, run.config.decoding)
    _, _, result = search(site)
    assert result["hypotheses"][0]["text"] == next(translator.translate([TEXT]))
    assert site.post("/translate", {"q": TEXT, "target": "de"}).json == {
        "translatedText": result["hypotheses"][0]["text"],
        "detectedLanguage": {"confidence": 100.0, "language": "en"},
    }


def test_the_end_says_why_nothing_came_of_what_was_kept(site: Served) -> None:
    _, nodes, result = search(site, beam_size=3)
    late = {one["id"]: one["why"] for one in result["pruned_late"]}
    best = {hypothesis["node"] for hypothesis in result["hypotheses"]}
    finished = {node["id"] for node in nodes if node["status"] == "finished"}
    alive = {node["id"] for node in nodes if node["status"] == "kept" and node["step"] == nodes[-1]["step"]}
    assert late.keys() == (finished - best) | alive
    for node, why in late.items():
        assert why.startswith("finished with the score" if node in finished else "its score could")


def test_a_prefix_is_what_the_translation_begins_with(site: Served, tokenizers: Tokenizers) -> None:
    (ids,) = tokenizers[1].encode(["Ja! Worte"])
    start, _, result = search(site, prefix={"ids": ids})
    assert start["prefix"] == pieces(tokenizers, ids)
    assert all(hypothesis["ids"][: len(ids)] == ids for hypothesis in result["hypotheses"])
    start, _, result = search(site, prefix={"text": "Ja! Wo"})
    assert start["typed"] == " Wo"
    assert all(hypothesis["text"].startswith("Ja! Wo") for hypothesis in result["hypotheses"])
    for text, joined in ((" 7", "Ja! Worte 7"), ("7", "Ja! Worte7")):
        _, _, result = search(site, prefix={"ids": ids, "text": text})
        assert all(hypothesis["text"].startswith(joined) for hypothesis in result["hypotheses"])


def test_the_reference_is_scored_and_the_step_named_where_the_beam_left_it(
    site: Served, tokenizers: Tokenizers
) -> None:
    _, nodes, result = search(site, beam_size=1, reference="Worte wie 7.")
    reference = result["reference"]
    (ids,) = tokenizers[1].encode(["Worte wie 7."])
    system = site.playground.systems.get(None)
    source = [*tokenizers[0].encode([TEXT])[0], EOS]
    (expected,) = log_probabilities(system.loaded.first, [source], [ids])
    assert reference["log_probability"] == pytest.approx(expected, abs=1e-3)
    asked = {"text": TEXT, "target": {"text": "Worte wie 7."}, "alternatives": 1}
    assert reference["pieces"] == site.post("/api/analyse", asked).json["target"]
    greedy = [node["token"] for node in nodes[1:] if node["status"] != "pruned"]
    same = next(place for place, (a, b) in enumerate(zip([*ids, EOS], greedy, strict=False)) if a != b)
    assert reference["left_at"] == same + 1
    assert reference["why"].startswith(f"not the best of step {same + 1} (")


def test_a_reference_that_is_too_long_is_named_and_the_search_made(site: Served) -> None:
    _, _, result = search(site, reference="Worte " * 500)
    assert result["reference"]["error"].startswith("reference has ")
    assert result["hypotheses"]


class Letters:
    """The tokenizer of a scripted model: a letter is a piece."""

    placeholders = 0

    def encode(self, texts: list[str]) -> list[list[int]]:
        return [[{"W": WORD, "O": OTHER}[letter] for letter in text] for text in texts]

    def normalize(self, text: str) -> str:
        return text

    def pieces(self, ids: list[int]) -> list[str]:
        return [str(number) for number in ids]

    def decode(self, rows: list[list[int]]) -> list[str]:
        return ["".join(self.pieces(ids)) for ids in rows]

    def spellings(self) -> list[bytes | None]:
        return [None] * 4 + [b"W", b"O", b"R"]


class Judge(Scripted):
    """A scripted model that scores whole translations too."""

    device = torch.device("cpu")

    def __call__(self, source: torch.Tensor, target_in: torch.Tensor) -> torch.Tensor:
        steps = range(target_in.shape[1])
        return torch.tensor([[self._logits(row, step) for step in steps] for row in range(len(source))])


@pytest.mark.parametrize(
    ("reference", "prefix", "left_at", "why"),
    [
        ("W", None, None, "found: number 1 "),
        ("WW", None, None, "found: number 2 "),
        ("", None, None, "found, but not among the best"),
        ("O", None, 1, "not among the 2 best of step 1 "),
        ("WO", None, 2, "not among the 2 best of step 2 "),
        ("WWWW", None, 5, "the search had ended before"),
        ("W", [OTHER], 1, "the prefix, which was forced, leads elsewhere at step 1"),
        ("O", [WORD], 1, "the prefix, which was forced, leads elsewhere at step 1"),
        ("WO", [WORD], 2, "not among the 2 best of step 2 "),
    ],
)
def test_where_and_why_the_reference_was_lost(
    reference: str, prefix: list[int] | None, left_at: int | None, why: str
) -> None:
    """By hand: [] ends with 0.1, W with 0.38, WW with 0.19; then WWWW, with 0.11, can become nothing better."""
    script = [{WORD: 0.85, EOS: 0.1, OTHER: 0.03}, {WORD: 0.5, EOS: 0.45, OTHER: 0.03}]
    model: Any = Judge([script])
    tokenizers: Any = (Letters(), Letters())
    decoding = replace(run_config().decoding, max_length_ratio=0.0, max_length_offset=10)
    loaded = Loaded(model, model, tokenizers)
    system = System("name", Run(Path(), "name"), loaded, decoding, (0, 0, 0))
    asked = SearchRequest(text="W", beam_size=2, length_penalty=0.0, reference=reference)
    asked.prefix = None if prefix is None else Prefix(ids=prefix)
    events: dict[str, Any] = {}
    show_search(system, asked, 20, events.__setitem__, lambda: None)
    found = events["result"]["reference"]
    assert found["left_at"] == left_at
    assert found["why"].startswith(why)


class Symbols(Letters):
    """The same, with a symbol for what is not translated."""

    placeholders = 1

    def pieces(self, ids: list[int]) -> list[str]:
        return ["⟦1⟧" if number == OTHER else str(number) for number in ids]

    def encode(self, texts: list[str]) -> list[list[int]]:
        return super().encode([text.replace("⟦1⟧", "O") for text in texts])

    def spellings(self) -> list[bytes | None]:
        return [None] * 4 + [b"W", "⟦1⟧".encode(), b"R"]


def test_what_is_not_translated_is_forced_by_its_symbol() -> None:
    model: Any = Judge([[{WORD: 0.85, EOS: 0.1, OTHER: 0.03}] * 3])
    tokenizers: Any = (Symbols(), Symbols())
    system = System(
        "name",
        Run(Path(), "name"),
        Loaded(model, model, tokenizers),
        run_config().decoding,
        (0, 0, 0),
    )
    asked = SearchRequest(text="W<b>", prefix=Prefix(ids=[WORD], text="<b>"))
    events: dict[str, Any] = {}
    show_search(system, asked, 20, events.__setitem__, lambda: None)
    assert events["start"]["typed"] == "<b>"
    hypothesis = events["result"]["hypotheses"][0]
    assert hypothesis["ids"][:2] == [WORD, OTHER]
    assert [piece["piece"] for piece in hypothesis["pieces"][:2]] == [str(WORD), "<b>"]
    assert hypothesis["text"].startswith(f"{WORD}<b>")
    asked = SearchRequest(text="W</s>", prefix=Prefix(ids=[WORD], text="</s>"))
    show_search(system, asked, 20, events.__setitem__, lambda: None)
    assert events["result"]["hypotheses"][0]["pieces"][1]["piece"] == "⟦1⟧", "it would be taken for the end"


def test_a_system_keeps_one_copy_of_its_model_in_half_precision(site: Served) -> None:
    known = site.playground.systems.get(None)
    system = replace(known, decoding=replace(known.decoding, precision="bf16"), _translators={})
    first = weakref.ref(system.translator(1))
    assert system.translator(1) is first()
    system.translator(2)
    gc.collect()
    assert first() is None


def test_the_analysis_of_a_hypothesis_is_what_the_search_found(site: Served, tokenizers: Tokenizers) -> None:
    _, _, result = search(site, beam_size=3)
    for hypothesis in result["hypotheses"]:
        asked = {"text": TEXT, "target": {"ids": hypothesis["ids"]}, "alternatives": 4}
        found = site.post("/api/analyse", asked).json
        assert found["log_probability"] == pytest.approx(hypothesis["log_probability"], abs=1e-3)
        assert found["score"] == pytest.approx(hypothesis["score"], abs=1e-3)
        assert found["text"] == hypothesis["text"]
        assert [piece["id"] for piece in found["target"]] == [*hypothesis["ids"], EOS]
        for piece in found["target"]:
            assert piece["surprisal"] == pytest.approx(-piece["log_probability"] / math.log(2), abs=1e-4)
            values = [other["log_probability"] for other in piece["alternatives"]]
            assert len(values) == 4
            assert values == sorted(values, reverse=True)
            if piece["rank"] < 4:
                assert piece["id"] in {other["id"] for other in piece["alternatives"]}
        assert found["perplexity"] == pytest.approx(
            math.exp(-found["log_probability"] / len(found["target"])), rel=1e-3
        )


def test_a_translation_may_hold_unknown_pieces_which_nobody_can_force(
    site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Imported models, which have no bytes, write them."""
    weight = site.playground.systems.get(None).loaded.first.output_weight
    monkeypatch.setattr(weight, "data", weight.data.clone())
    weight.data[UNK] *= -100  # now the most probable one at the beginning
    asked = {"text": TEXT, "target": {"ids": [UNK, EOS + 3, UNK]}, "kind": "cross", "layer": 0, "head": 0}
    for path in ("attention", "saliency", "learn", "analyse"):
        keys = asked if path == "learn" else {key: asked[key] for key in ("text", "target")}
        found = site.post(f"/api/{path}", keys)
        assert found.status == 200, path
    assert [piece["id"] for piece in found.json["target"]] == [*asked["target"]["ids"], EOS]
    assert found.json["target"][0]["rank"] == 0
    for piece in found.json["target"]:
        assert len(piece["alternatives"]) == 10
        assert UNK not in {other["id"] for other in piece["alternatives"]}


def test_attention_has_all_layers_and_heads_and_saliency_a_row_for_each_target_piece(
    site: Served, tokenizers: Tokenizers
) -> None:
    asked = {"text": TEXT, "target": {"text": "Ja! Worte."}}
    found = site.post("/api/attention", asked).json
    (ids,) = tokenizers[1].encode(["Ja! Worte."])
    assert found["target_in"] == pieces(tokenizers, [BOS, *ids])
    assert found["target_out"] == pieces(tokenizers, [*ids, EOS])
    source, target = len(found["source"]), len(ids) + 1
    for kind, queries, keys in (
        ("encoder", source, source),
        ("decoder", target, target),
        ("cross", target, source),
    ):
        assert (len(found[kind]), len(found[kind][0])) == (2, 2)
        for head in (head for layer in found[kind] for head in layer):
            assert (len(head), len(head[0])) == (queries, keys)
            assert all(sum(row) == pytest.approx(1, abs=0.01) for row in head)
    assert all(weight == 0 for weight in found["decoder"][0][0][0][1:])  # the future
    found = site.post("/api/saliency", asked).json
    assert (len(found["weights"]), len(found["weights"][0])) == (target, source)
    assert all(sum(row) == pytest.approx(1, abs=0.01) for row in found["weights"])


def test_the_numbers_of_the_learn_view_are_those_of_the_head_that_is_asked_for(site: Served) -> None:
    asked = {"text": TEXT, "target": {"text": "Ja!"}, "kind": "cross", "layer": 1, "head": 1}
    found = site.post("/api/learn", asked).json
    assert (found["kind"], found["layer"], found["head"]) == ("cross", 1, 1)


def test_what_the_search_finds_can_be_shown_by_the_views(run: Run) -> None:
    with served(run.root, "run=run", "limits.pieces=8", "decoding.max_length_offset=50") as site:
        _, _, result = search(site, text="Ja!")
        target = {"ids": max((found["ids"] for found in result["hypotheses"]), key=len)}
        assert site.post("/api/analyse", {"text": "Ja!", "target": target}).status == 200
        prefix = {"ids": (target["ids"] * 8)[:8]}
        assert site.post("/api/search", {"text": "Ja!", "prefix": prefix}).status == 400


def test_nobody_waits_for_the_compiler(run: Run) -> None:
    library_or_reason.cache_clear()
    with served(run.root, "run=run"):
        assert library_or_reason.cache_info().currsize == 1


def test_a_name_that_no_path_can_have_is_of_no_run(site: Served) -> None:
    assert site.post("/api/search", {"text": TEXT, "system": "a/" * 3000 + "a"}).status == 404


@pytest.mark.parametrize(
    ("path", "asked", "named"),
    [
        ("search", {"text": "  "}, "text"),
        ("search", {"text": "Worte " * 500}, "text"),
        ("search", {"text": "W" * 10_000}, "text"),
        ("search", {"text": TEXT, "prefix": {"text": "W" * 10_000}}, "prefix"),
        ("search", {"text": TEXT, "beam_size": 51}, "beam_size"),
        ("search", {"text": TEXT, "pruned": 11}, "pruned"),
        ("search", {"text": TEXT, "beam": 5}, "beam"),
        ("search", {"text": TEXT, "prefix": {"ids": [0]}}, "prefix"),
        ("search", {"text": TEXT, "prefix": {"ids": [300]}}, "prefix"),
        ("search", {"text": TEXT, "prefix": {"text": "Worte " * 500}}, "prefix"),
        ("analyse", {"text": TEXT}, "target"),
        ("analyse", {"text": TEXT, "target": {}}, "target"),
        ("analyse", {"text": TEXT, "target": {"ids": [5], "text": "Ja"}}, "target"),
        ("analyse", {"text": TEXT, "target": {"ids": [EOS]}}, "target"),
        ("attention", {"text": TEXT, "target": {"ids": [10**30]}}, "target"),
        ("saliency", {"text": TEXT, "target": {"ids": ["5"]}}, "target"),
        ("learn", {"text": TEXT, "target": {"text": "Ja"}, "kind": "cross", "layer": 2, "head": 0}, "layer"),
        ("learn", {"text": TEXT, "target": {"text": "Ja"}, "kind": "both", "layer": 0, "head": 0}, "kind"),
    ],
)
def test_a_wrong_request_is_refused_by_the_name_of_its_key(
    site: Served, path: str, asked: dict[str, object], named: str
) -> None:
    answer = site.post(f"/api/{path}", asked)
    assert answer.status == 400
    assert named in answer.json["error"]


def test_numbers_are_shown_with_as_many_decimals_as_tell_them_apart() -> None:
    assert _numbers(-1.234, 2.0) == ("−1.23", "2.00")
    assert _numbers(-1.2341, -1.2349) == ("−1.234", "−1.235")
    assert _numbers(1.0, 1.0) == ("1.0000", "1.0000")
