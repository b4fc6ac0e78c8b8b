"""Endeavour: an English-German translation training pipeline.

    import endeavour

    run = endeavour.load("textbook-tiny-1")    # a trained run; endeavour.train(["seed=2"]) makes one
    run.translate("The old dog sleeps.")

`import endeavour` loads nothing; its names are loaded when they are used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from endeavour.decoding.translator import Translation
    from endeavour.errors import UserError
    from endeavour.interface import PairAttention, TrainedRun, load, train

_NAMES = {
    "load": "interface",
    "train": "interface",
    "TrainedRun": "interface",
    "PairAttention": "interface",
    "Translation": "decoding.translator",
    "UserError": "errors",
}
__all__ = ["PairAttention", "TrainedRun", "Translation", "UserError", "load", "train"]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'endeavour' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"endeavour.{_NAMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
