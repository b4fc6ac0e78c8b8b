"""The text of Multi30k, in the folder that ENDEAVOUR_MULTI30K names, or beside the checkout."""

import os
from pathlib import Path

import pytest

MULTI30K = Path(
    os.environ.get("ENDEAVOUR_MULTI30K") or Path(__file__).parents[2] / "shared" / "data" / "multi30k"
)
needs_multi30k = pytest.mark.skipif(not MULTI30K.is_dir(), reason=f"Multi30k is not at {MULTI30K}")
