"""The notebooks run from their first cell to their last, on other settings than a reader's."""

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.filterwarnings("ignore:Glyph")  # the font of the tests need not have every piece
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(
    path: Path, parallel_files: list[str], folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        code = "".join(cell["source"])
        if "parameters" in cell["metadata"].get("tags", []):
            code = f"SETTINGS = {[*parallel_files, *folders, 'name=sub/first']!r}"
        exec(compile(code, f"{path.name}: {cell['id']}", "exec"), names)
        assert cell["outputs"] == [], "a notebook is kept without what it printed"
    assert "bleu" in capsys.readouterr().out
