"""A beam search that can be watched: every hypothesis that it kept, finished or gave up, as a tree of nodes, and why.

The search is `beam_search` itself, told of by its `on_step`. Knows one sentence as ids; not text, or how a tree is
shown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from endeavour.decoding.beam_search import beam_search
from endeavour.decoding.engine import Hypothesis
from endeavour.decoding.length_penalty import length_penalty
from endeavour.decoding.model import Model
from endeavour.decoding.prefix import ForcedPrefix, Prefix
from endeavour.special import BOS, EOS

Status = Literal["kept", "finished", "pruned"]
# Why a node leads nowhere: too improbable for the beam; finished, but not among the n best; still alive when nothing
# that it could become would have been among the n best.
Reason = Literal["beam", "n_best", "bound"]


@dataclass(frozen=True)
class Node:
    """One token of a hypothesis. Probabilities are natural logarithms.

    Attributes:
        id: its place among the nodes; 0 is the root, BOS.
        parent: the node before it; None for the root.
        step: number of tokens up to here, EOS included.
        token: its id in the vocabulary.
        log_probability: of the token.
        total: of all tokens up to here.
        score: `total` divided by the length penalty of this length.
        rank: among the extensions of this step; 0 is the best.
        status: `finished` ends in EOS; `pruned` did not enter the beam.
    """

    id: int
    parent: int | None
    step: int
    token: int
    log_probability: float
    total: float
    score: float
    rank: int
    status: Status


@dataclass(frozen=True)
class Trace:
    """A search and its result.

    Attributes:
        nodes: in the order in which they were made; the ids are their places.
        hypotheses: the n best, and the node at which each ends.
        reasons: node → why nothing came of it, for nodes that are pruned, finished or still alive at the end.
    """

    nodes: list[Node]
    hypotheses: list[tuple[Hypothesis, int]]
    reasons: dict[int, Reason]

    def follow(self, ids: Sequence[int]) -> list[int]:
        """The nodes along these tokens as far as the beam kept them, which may be fewer nodes than tokens."""
        children = {(node.parent, node.token): node.id for node in self.nodes if node.status != "pruned"}
        path: list[int] = []
        place = 0
        for token in ids:
            found = children.get((place, token))
            if found is None:
                break
            path.append(found)
            place = found
        return path


def ids_up_to(node: int, nodes: Sequence[Node]) -> list[int]:
    """The tokens up to a node, without BOS. The nodes are those of a trace, or the first of them."""
    ids: list[int] = []
    one = nodes[node]
    while one.parent is not None:
        ids.append(one.token)
        one = nodes[one.parent]
    return ids[::-1]


def trace_search(
    model: Model,
    source: Sequence[int],
    *,
    beam_size: int,
    alpha: float,
    max_length: int,
    num_hypotheses: int,
    prefix: Prefix | None,
    spellings: Sequence[bytes | None],
    pruned: int,
    on_step: Callable[[list[Node]], None],
    device: torch.device,
) -> Trace:
    """Searches as `beam_search` does.

    Args:
        source: ids of one sentence, ending in EOS.
        max_length: the most tokens of a translation, without EOS.
        prefix: what the translation begins with; `spellings` are then those of the target's tokenizer.
        pruned: of those that found no place in the beam, the best so many are reported for each step.
        on_step: is given the root, and then the nodes of each step as soon as they are known; what it raises ends the
            search.
        device: the model's.
    """
    observer = _Observer(beam_size, alpha, on_step)
    (found,) = beam_search(
        model,
        torch.tensor([source], device=device),
        [max_length],
        beam_size=beam_size,
        alpha=alpha,
        num_hypotheses=num_hypotheses,
        prefix=None if prefix is None else ForcedPrefix(prefix, spellings),
        on_step=observer.step,
        extra=pruned,
    )
    nodes, reasons = observer.nodes, observer.reasons
    finished = {tuple(ids_up_to(node.id, nodes)): node.id for node in nodes if node.status == "finished"}
    hypotheses = [(one, finished[(*one.ids, EOS)]) for one in found]
    best = {node for _, node in hypotheses}
    reasons |= {node: "n_best" for node in finished.values() if node not in best}
    reasons |= {node: "bound" for node in observer.live if node is not None}
    return Trace(nodes, hypotheses, reasons)


class _Observer:
    """Makes nodes of what `beam_search` reports."""

    def __init__(self, beam_size: int, alpha: float, on_step: Callable[[list[Node]], None]) -> None:
        self.nodes = [Node(0, None, 0, BOS, 0.0, 0.0, 0.0, 0, "kept")]
        self.reasons: dict[int, Reason] = {}
        self.live: list[int | None] = [0]
        """The node at each place of the beam; None where there is no hypothesis, or it has ended."""
        self._beam_size = beam_size
        self._alpha = alpha
        self._on_step = on_step
        self._steps = 0
        on_step(list(self.nodes))

    def step(self, log_probabilities: Tensor, parents: Tensor, tokens: Tensor) -> None:
        """See `on_step` of `beam_search`."""
        self._steps += 1
        penalty = length_penalty(float(self._steps), self._alpha)
        before, self.live = self.live, []
        made: list[Node] = []
        columns = (log_probabilities, parents, tokens)
        rows = zip(*(column[0].tolist() for column in columns), strict=True)
        for rank, (total, place, token) in enumerate(rows):
            parent = before[place] if place < len(before) else None
            if parent is None or total == -torch.inf:
                self.live.append(None)
                continue
            status: Status = "finished" if token == EOS else "kept"
            if rank >= self._beam_size:
                status = "pruned"
                self.reasons[len(self.nodes) + len(made)] = "beam"
            node = Node(
                id=len(self.nodes) + len(made),
                parent=parent,
                step=self._steps,
                token=token,
                log_probability=total - self.nodes[parent].total,
                total=total,
                score=total / penalty,
                rank=rank,
                status=status,
            )
            made.append(node)
            self.live.append(node.id if status == "kept" else None)
        self.nodes += made
        self.live = self.live[: self._beam_size]
        self._on_step(made)
