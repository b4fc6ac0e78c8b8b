"""Which function computes which step of the Learn view, with its source as it is installed.

Knows where things are done; not what they do to a sentence.
"""

import inspect
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any

from endeavour.model.config import ModelConfig

ATTENTION = "model.attention:"
LAYERS = "model.layers:"
MODEL = "model.transformer:Transformer."

STEPS = {
    "pieces": ["data.tokenizer:Tokenizer.encode"],
    "embedding": [MODEL + "_embed"],
    "stream": [LAYERS + "Residual.forward"],
    "norm": [LAYERS + "Residual.forward"],
    "scores": [ATTENTION + "attend"],
    "scale": [ATTENTION + "attend"],
    "softmax": [ATTENTION + "attend"],
    "mix": [ATTENTION + "attend"],
    "heads": [ATTENTION + "split_heads", ATTENTION + "merge_heads"],
    "add": [LAYERS + "Residual.forward"],
    "feed_forward": [LAYERS + "FeedForward.forward"],
    "stack": [MODEL + "encode", MODEL + "decode"],
    "cross": [ATTENTION + "CrossAttention.forward", ATTENTION + "multi_head_attention"],
    "logits": [MODEL + "project"],
    "probability": ["decoding.beam_search:_State.extend"],
    "search": ["decoding.beam_search:beam_search"],
}
POSITIONS = {
    "sinusoidal": ["model.positions:SinusoidalPositions._tabulate", MODEL + "_embed"],
    "learned": ["model.positions:LearnedPositions.forward", MODEL + "_embed"],
    "rotary": ["model.positions:rotate", "model.positions:RotaryPositions.forward"],
}
OF_KIND = {
    "encoder": {
        "layer": ["model.transformer:EncoderLayer.forward"],
        "project": [ATTENTION + "SelfAttention.forward", ATTENTION + "multi_head_attention"],
        "mask": [ATTENTION + "padding_mask"],
    },
    "decoder": {
        "layer": ["model.transformer:DecoderLayer.forward"],
        "project": [ATTENTION + "SelfAttention.forward", ATTENTION + "multi_head_attention"],
        "mask": [ATTENTION + "causal_mask"],
    },
    "cross": {
        "layer": ["model.transformer:DecoderLayer.forward"],
        "project": [ATTENTION + "CrossAttention.forward", ATTENTION + "multi_head_attention"],
        "mask": [ATTENTION + "padding_mask"],
    },
}


def code_of(config: ModelConfig, kind: str) -> dict[str, list[dict[str, Any]]]:
    """For each step the functions, as `file`, `function`, `line` and `source`."""
    steps = {**STEPS, "positions": POSITIONS[config.positions], **OF_KIND[kind]}
    return {step: [_described(name) for name in names] for step, names in steps.items()}


def _described(name: str) -> dict[str, Any]:
    module, _, path = name.partition(":")
    function: Any = import_module(f"endeavour.{module}")
    for part in path.split("."):
        function = getattr(function, part)
    # The undecorated function: a decorator's wrapper has another source.
    function = inspect.unwrap(function)
    lines, line = inspect.getsourcelines(function)
    file = Path(inspect.getfile(function)).relative_to(Path(__file__).parents[2]).as_posix()
    return {
        "file": f"src/{file}",
        "function": path,
        "line": line,
        "source": dedent("".join(lines)),
    }
