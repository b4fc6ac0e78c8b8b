"""On which device an export decodes."""

import pytest

from endeavour.errors import UserError
from endeavour.runs.exports import _device


@pytest.mark.parametrize(
    ("name", "gpus", "expected"),
    [
        ("cpu", 1, ("cpu", 0)),
        ("auto", 0, ("cpu", 0)),
        ("auto", 2, ("cuda", 0)),
        ("cuda", 2, ("cuda", 0)),
        ("cuda:1", 2, ("cuda", 1)),
    ],
)
def test_a_device_is_a_kind_and_an_index(
    name: str, gpus: int, expected: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctranslate2.get_cuda_device_count", lambda: gpus)
    assert _device(name) == expected


@pytest.mark.parametrize("name", ["mps", "cuda:x", "cpu:7"])
def test_a_device_that_the_engine_does_not_know_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=rf"device={name}: decoding\.engine=ctranslate2"):
        _device(name)
