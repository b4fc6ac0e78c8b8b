"""The pictures of docs/transformer.md, drawn of models that were never trained, for every option."""

from pathlib import Path

import pytest

from configs import run_config
from endeavour.data.tokenizer import Tokenizers
from endeavour.playground.story_pictures import draw_story
from endeavour.reports import transformer_pictures
from endeavour.runs.config import RunConfig
from served import SMALL
from untrained import small_tokenizers, untrained_model

LARGEST = 120_000  # bytes of a picture in the documents
PAIRS = [("Satz 1 hat Worte.", "Ja! Worte wie 7."), ("Ja!", "Satz 2."), ("Satz 3 wie 21.", "Worte wie 3.")]


@pytest.fixture(scope="module")
def tokenizers() -> Tokenizers:
    return small_tokenizers(run_config(SMALL))


def draw(tokenizers: Tokenizers, folder: Path, *overrides: str) -> list[Path]:
    config: RunConfig = run_config([*SMALL, *overrides])
    model = untrained_model(config, tokenizers)
    return draw_story(model, tokenizers, "Satz 7 hat Worte.", "Worte wie 49. Ja!", folder, pairs=PAIRS)


@pytest.mark.parametrize(
    "overrides",
    [
        ["model.norm=post", "model.positions=rotary", "model.activation=swiglu"],
        ["model.positions=learned", "model.activation=gelu", "model.tie=none", "model.decoder_layers=1"],
    ],
    ids=["post-rotary-swiglu", "learned-gelu-untied"],
)
def test_all_pictures_are_drawn(tokenizers: Tokenizers, tmp_path: Path, overrides: list[str]) -> None:
    drawn = draw(tokenizers, tmp_path / "pictures", *overrides)
    assert len(drawn) == len(set(drawn)) == 12
    assert set(drawn) == set((tmp_path / "pictures").iterdir())
    for path in drawn:
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) < LARGEST


def test_the_habits_of_heads_say_over_how_many_pairs_they_were_measured(
    tokenizers: Tokenizers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    titles: list[str] = []
    monkeypatch.setattr(
        transformer_pictures, "save_png", lambda figure, path: titles.append(figure.get_suptitle())
    )
    draw(tokenizers, tmp_path)
    assert "over 3 sentence pairs" in titles[-1]
