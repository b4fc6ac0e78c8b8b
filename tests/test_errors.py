"""Running out of memory is recognised whatever the library says, and nothing else is taken for it."""

import pytest
import torch

from endeavour.errors import UserError, named_memory_error


def test_what_torch_cannot_allocate_is_named_with_its_remedy() -> None:
    message = "out of memory on a huge tensor\ntake a smaller one"
    with pytest.raises(UserError, match=message), named_memory_error("a huge tensor", "take a smaller one"):
        torch.empty(2**55, dtype=torch.uint8)


@pytest.mark.parametrize("error", [MemoryError(), torch.OutOfMemoryError("CUDA out of memory")])
def test_so_are_other_kinds_of_it(error: Exception) -> None:
    with pytest.raises(UserError, match="out of memory"), named_memory_error("this", "that"):
        raise error


def test_other_errors_pass() -> None:
    with pytest.raises(RuntimeError, match="shapes differ"), named_memory_error("this", "that"):
        raise RuntimeError("shapes differ")
