"""A search as the page shows it, step by step, with reasons in words: what `decoding.search_tree` reports, as JSON.

Knows a `Sentence` and the search's nodes; not HTTP.
"""

import time
from collections.abc import Callable, Sequence

from endeavour.data.normalization import SPACE_MARK
from endeavour.data.protection import protect_target
from endeavour.decoding.engine import Hypothesis, limit_of
from endeavour.decoding.length_penalty import length_penalty
from endeavour.decoding.prefix import ForcedPrefix, Prefix, typed_prefix
from endeavour.decoding.search_tree import Node, Trace, ids_up_to, trace_search
from endeavour.errors import UserError
from endeavour.playground.learn_layers import Numbers
from endeavour.playground.learn_vocabulary import named_pieces
from endeavour.playground.pair_views import finite, scored_rows
from endeavour.playground.schemas import Prefix as AskedPrefix
from endeavour.playground.schemas import SearchRequest
from endeavour.playground.sentence import Sentence
from endeavour.playground.systems import System
from endeavour.special import EOS

Emit = Callable[[str, Numbers], None]


def show_search(
    system: System, asked: SearchRequest, longest: int, emit: Emit, check: Callable[[], None]
) -> None:
    """Searches, and gives `emit` the name and data of each event: start, step …, result.

    Args:
        longest: pieces that a sentence may have.
        check: called at each step; what it raises ends the search.
    """
    started = time.perf_counter()
    view = _SearchView(system, asked, longest)
    emit("start", view.start())

    def on_step(nodes: list[Node]) -> None:
        check()
        if nodes:
            emit("step", view.step(nodes))

    trace = trace_search(
        system.loaded.first,
        view.sentence.ids,
        beam_size=view.beam_size,
        alpha=view.alpha,
        max_length=view.limit,
        num_hypotheses=view.beam_size,
        prefix=view.prefix,
        spellings=system.spellings,
        pruned=asked.pruned,
        on_step=on_step,
        device=system.device,
    )
    check()
    emit("result", view.result(trace) | {"milliseconds": round(1000 * (time.perf_counter() - started), 1)})


class _SearchView:
    """What is known of one search so far."""

    def __init__(self, system: System, asked: SearchRequest, longest: int) -> None:
        own = system.decoding
        self.sentence = Sentence(system, asked.text, longest)
        self.beam_size = own.beam_size if asked.beam_size is None else asked.beam_size
        self.alpha = own.length_penalty if asked.length_penalty is None else asked.length_penalty
        self.prefix = None if asked.prefix is None else _prefix(self.sentence, asked.prefix)
        self._reference = None if asked.reference is None else self._reference_ids(asked.reference)
        self._nodes: list[Node] = []
        self._worst_kept: list[float] = []
        """The smallest total that found a place, by step."""

    def _reference_ids(self, text: str) -> list[int] | str:
        """Without BOS and EOS; or why it cannot be scored, which is no reason not to search."""
        try:
            return self.sentence.read_target("reference", text)
        except UserError as error:
            return str(error)

    @property
    def limit(self) -> int:
        """The most tokens that a translation may have; the views must be able to show it with its end."""
        system = self.sentence.system
        positions = system.loaded.first.max_target_length
        limit = limit_of(system.decoding, len(self.sentence.ids) - 1, positions=positions)
        return max(min(limit, self.sentence.longest - 1), 0 if self.prefix is None else self.prefix.longest)

    def start(self) -> Numbers:
        sentence, prefix = self.sentence, self.prefix or Prefix()
        return {
            "source": named_pieces(sentence.ids, sentence.source_pieces),
            "prefix": named_pieces(prefix.ids, sentence.target_pieces),
            "typed": sentence.restored(prefix.text.decode().replace(SPACE_MARK, " ")),
            "beam_size": self.beam_size,
            "length_penalty": self.alpha,
        }

    def step(self, nodes: list[Node]) -> Numbers:
        """`nodes` are all of one step."""
        self._nodes += nodes
        kept = [node.total for node in nodes if node.status != "pruned"]
        self._worst_kept.append(min(kept, default=0.0))
        pieces = self.sentence.target_pieces([node.token for node in nodes])
        best = max(nodes, key=lambda node: (node.status != "pruned", node.score))
        return {
            "step": nodes[0].step,
            "nodes": [self._node(node, piece) for node, piece in zip(nodes, pieces, strict=True)],
            "text": self.sentence.text_of(
                [token for token in ids_up_to(best.id, self._nodes) if token != EOS]
            ),
        }

    def _node(self, node: Node, piece: str) -> Numbers:
        pruned = node.status == "pruned"
        return {
            "id": node.id,
            "parent": node.parent,
            "step": node.step,
            "token": node.token,
            "piece": piece,
            "log_probability": finite(node.log_probability),
            "total": finite(node.total),
            "score": finite(node.score),
            "rank": node.rank,
            "status": node.status,
            "why": self._outside(node.total, node.step) if pruned else None,
        }

    def _outside(self, total: float, step: int) -> str:
        """Why something of that log-probability is not in the beam after that step."""
        among = "not the best" if self.beam_size == 1 else f"not among the {self.beam_size} best"
        ours, worst = _numbers(total, self._worst_kept[step])
        return f"{among} of step {step} ({ours}; the worst kept has {worst})"

    def result(self, trace: Trace) -> Numbers:
        hypotheses = [hypothesis for hypothesis, _ in trace.hypotheses]
        return {
            "hypotheses": [self._hypothesis(hypothesis, node) for hypothesis, node in trace.hypotheses],
            "pruned_late": [
                {"id": node, "why": self._late(trace.nodes[node], reason, hypotheses)}
                for node, reason in sorted(trace.reasons.items())
                if reason != "beam"
            ],
            "reference": self._show_reference(trace),
        }

    def _hypothesis(self, hypothesis: Hypothesis, node: int) -> Numbers:
        return {
            "ids": hypothesis.ids,
            "pieces": named_pieces([*hypothesis.ids, EOS], self.sentence.target_pieces),
            "text": self.sentence.text_of(hypothesis.ids),
            "log_probability": finite(hypothesis.log_probability),
            "score": finite(hypothesis.score),
            "node": node,
        }

    def _late(self, node: Node, reason: str, best: Sequence[Hypothesis]) -> str:
        """Why nothing came of a node that the beam had kept."""
        if reason == "n_best":
            ours, last = _numbers(node.score, best[-1].score)
            return f"finished with the score {ours}; the last of the {len(best)} best has {last}"
        reachable = node.total / length_penalty(self.limit + 1, self.alpha)
        ours, last = _numbers(reachable, best[-1].score)
        return f"its score could at best become {ours}; the last of the {len(best)} best has {last}"

    def _show_reference(self, trace: Trace) -> Numbers | None:
        """Where the beam lost the reference, if it did; what a better search would have had to find."""
        if self._reference is None:
            return None
        if isinstance(self._reference, str):
            return {"error": self._reference}
        tokens = [*self._reference, EOS]
        scores, rows = scored_rows(self.sentence, self._reference, alternatives=1)
        values = [one.log_probability for one in scores]
        total = sum(values)
        path = trace.follow(tokens)
        left_at = len(path) + 1 if len(path) < len(scores) else None
        return {
            "pieces": rows,
            "log_probability": finite(total),
            "score": finite(total / length_penalty(len(scores), self.alpha)),
            "left_at": left_at,
            "why": self._why_left(tokens, values, left_at, trace, path),
        }

    def _why_left(
        self, tokens: list[int], values: list[float], left_at: int | None, trace: Trace, path: list[int]
    ) -> str:
        if left_at is None:
            found = {node: place for place, (_, node) in enumerate(trace.hypotheses, start=1)}
            place = found.get(path[-1])
            return "found, but not among the best" if place is None else f"found: number {place} of the best"
        if left_at >= len(self._worst_kept):
            return "the search had ended before: nothing that was left could have been among the best"
        if not self._fits_prefix(tokens[:left_at]):
            return f"the prefix, which was forced, leads elsewhere at step {left_at}"
        return self._outside(sum(values[:left_at]), left_at)

    def _fits_prefix(self, tokens: list[int]) -> bool:
        """Whether the last one may follow the others."""
        if self.prefix is None:
            return True
        allowed = ForcedPrefix(self.prefix, self.sentence.system.spellings).allowed(tokens[:-1])
        return allowed is None or tokens[-1] in allowed


def _prefix(sentence: Sentence, asked: AskedPrefix) -> Prefix:
    """Text alone is split into words and pieces; after ids it goes on in their last word unless it begins with a space.

    Raises:
        UserError: an id that a translation cannot have, or too many.
    """
    sentence.require_few_characters("prefix", asked.text)
    target = sentence.system.loaded.tokenizers[1]
    text = protect_target(asked.text, sentence.spans)
    if not asked.ids:
        prefix = typed_prefix(target, text)
    else:
        ids = sentence.own_ids("prefix.ids", asked.ids)
        open_text = target.normalize(f"|{text}|")[1:-1]  # marks, so that spaces at the ends survive
        prefix = Prefix(tuple(ids), open_text.replace(" ", SPACE_MARK).encode())
    if prefix.longest >= sentence.longest:
        raise UserError(
            f"prefix: it may take {prefix.longest + 1} pieces with the end; "
            f"the page shows at most {sentence.longest}"
        )
    return prefix


def _numbers(first: float, second: float) -> tuple[str, str]:
    """With as many decimals as tell them apart, from two to four; the minus sign is as wide as a plus."""
    shown = "", ""
    for decimals in (2, 3, 4):
        shown = f"{first:.{decimals}f}", f"{second:.{decimals}f}"
        if shown[0] != shown[1]:
            break
    return shown[0].replace("-", "\u2212"), shown[1].replace("-", "\u2212")
