"""A search that is watched: the search's own result, a tree that adds up, and a reason for every dead end."""

import math

import pytest
import torch
from reference import assert_same, log_probability_of, random_model, random_sources, score_of, search

from endeavour.decoding.prefix import Prefix
from endeavour.decoding.search_tree import Node, Trace, ids_up_to, trace_search
from endeavour.model.transformer import Transformer
from endeavour.special import BOS, EOS
from scripted import OTHER, REST, WORD, Scripted, sources

SETTINGS = {
    "alpha": 0.6,
    "max_length": 11,  # what `search` grants six tokens
    "prefix": None,
    "spellings": (),
    "pruned": 0,
    "on_step": lambda nodes: None,
    "device": torch.device("cpu"),
}


def trace(model: object, source: list[int], beam: int = 4, **changes: object) -> Trace:
    settings: dict[str, object] = {"beam_size": beam, "num_hypotheses": beam, **SETTINGS, **changes}
    return trace_search(model, source, **settings)  # type: ignore[arg-type]


def sentence(seed: int = 0) -> tuple[Transformer, torch.Tensor]:
    return random_model(20, seed=seed), random_sources(20, [6])


@pytest.mark.parametrize("pruned", [0, 3, 100])
@pytest.mark.parametrize("seed", range(3))
def test_the_result_is_the_searchs_and_the_tree_leads_to_it(pruned: int, seed: int) -> None:
    model, source = sentence(seed)
    found = trace(model, source[0].tolist(), pruned=pruned)
    assert_same([one for one, _ in found.hypotheses], search(model, source, num_hypotheses=4)[0])
    for one, node in found.hypotheses:
        assert ids_up_to(node, found.nodes) == [*one.ids, EOS]
        assert found.nodes[node].status == "finished"
        assert node not in found.reasons
        assert found.nodes[node].total == pytest.approx(one.log_probability, abs=1e-5)
        assert found.nodes[node].score == pytest.approx(one.score, abs=1e-5)


def test_every_node_adds_up() -> None:
    model, source = sentence(1)
    found = trace(model, source[0].tolist(), pruned=2)
    assert found.nodes[0] == Node(0, None, 0, BOS, 0.0, 0.0, 0.0, 0, "kept")
    for place, node in enumerate(found.nodes[1:], start=1):
        ids = ids_up_to(node.id, found.nodes)
        assert node.id == place
        assert node.step == len(ids)
        assert node.parent is not None
        parent = found.nodes[node.parent]
        assert parent.status == "kept"
        assert parent.step == node.step - 1
        assert node.total == pytest.approx(parent.total + node.log_probability, abs=1e-5)
        assert node.score == pytest.approx(score_of(node.total, ids[:-1], 0.6), abs=1e-5)
        if node.token == EOS:
            assert node.total == pytest.approx(log_probability_of(model, source, ids[:-1]), abs=1e-4)
    for step in range(1, found.nodes[-1].step + 1):
        made = [node for node in found.nodes if node.step == step]
        assert [node.rank for node in made] == list(range(len(made)))
        assert [node.total for node in made] == sorted((node.total for node in made), reverse=True)
        assert [node.status == "pruned" for node in made] == [node.rank >= 4 for node in made]
        assert len(made) == 6 or all(node.token == EOS for node in made)  # at the limit


def test_each_dead_end_has_its_reason() -> None:
    """By hand: of four extensions two find room; of those that end the better one is asked for."""
    script = [[{WORD: 0.5, OTHER: 0.3, EOS: 0.15}, {EOS: 0.9, WORD: 0.06}]]
    found = trace(Scripted(script), sources(1)[0].tolist(), beam=2, num_hypotheses=1, pruned=1, alpha=0.0)
    rows = [(n.parent, n.step, n.token, n.rank, n.status, found.reasons.get(n.id)) for n in found.nodes[1:]]
    assert rows[:3] == [
        (0, 1, WORD, 0, "kept", None),
        (0, 1, OTHER, 1, "kept", None),
        (0, 1, EOS, 2, "pruned", "beam"),
    ]
    assert rows[3:] == [
        (1, 2, EOS, 0, "finished", None),
        (2, 2, EOS, 1, "finished", "n_best"),
        (1, 2, WORD, 2, "pruned", "beam"),
    ]
    assert found.nodes[4].log_probability == pytest.approx(math.log(0.9), abs=1e-5)
    script = [[{WORD: 0.9, EOS: 0.06}, {EOS: 0.9, WORD: 0.06}]]
    found = trace(Scripted(script), sources(1)[0].tolist(), beam=2, num_hypotheses=1, alpha=0.0)
    rows = [(n.parent, n.token, n.status, found.reasons.get(n.id)) for n in found.nodes[1:]]
    assert rows == [
        (0, WORD, "kept", None),
        (0, EOS, "finished", "n_best"),
        (1, EOS, "finished", None),
        (1, WORD, "kept", "bound"),
    ]
    assert REST not in [node.token for node in found.nodes]


def test_steps_are_told_as_they_are_made_and_may_end_the_search() -> None:
    model, source = sentence(2)
    told: list[list[Node]] = []
    found = trace(model, source[0].tolist(), pruned=2, on_step=told.append)
    assert [node for nodes in told for node in nodes] == found.nodes
    assert [nodes[0].step for nodes in told] == list(range(len(told)))

    def stop(nodes: list[Node]) -> None:
        if nodes[0].step == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        trace(model, source[0].tolist(), on_step=stop)


def test_a_prefix_is_one_branch_and_what_left_the_beam_is_found() -> None:
    model, source = sentence(0)
    spellings = [None] * 4 + [bytes([65 + number]) for number in range(16)]
    prefix = Prefix((9, 5))
    found = trace(model, source[0].tolist(), prefix=prefix, spellings=spellings)
    assert [node.token for node in found.nodes[:3]] == [BOS, 9, 5]
    assert all(one.ids[:2] == [9, 5] for one, _ in found.hypotheses)
    best, node = found.hypotheses[0]
    assert found.follow([*best.ids, EOS])[-1] == node
    assert found.follow([9, 5]) == [1, 2]
    assert found.follow([9, 6, 5]) == [1]
    assert found.follow([7]) == []
    free = trace(model, source[0].tolist(), pruned=3)
    gone = next(node for node in free.nodes if node.status == "pruned")
    assert len(free.follow(ids_up_to(gone.id, free.nodes))) == gone.step - 1


def test_it_is_searched_on_the_models_device() -> None:
    model, source = sentence(3)
    expected = trace(model, source[0].tolist())
    with torch.device("meta"):
        found = trace(model, source[0].tolist(), device=torch.device("cpu"))
    assert found.nodes == expected.nodes
