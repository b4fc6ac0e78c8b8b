"""A mark that runs a test for models of several options."""

import pytest


def options(*models: tuple[str, str, str, str]) -> pytest.MarkDecorator:
    """Each model is norm, positions, activation and tie; the test gets them as `changes`, by these names."""
    names = ("norm", "positions", "activation", "tie")
    changes = [dict(zip(names, model, strict=True)) for model in models]
    return pytest.mark.parametrize("changes", changes, ids=["-".join(model) for model in models])
