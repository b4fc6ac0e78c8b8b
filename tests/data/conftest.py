"""What the tests of this folder prepare, each in a folder of its own."""

from pathlib import Path
from typing import Any

import pytest
from building import settings_in


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    return settings_in(tmp_path)
