"""What an export is compared with its model on, and what its README shows."""

from dataclasses import replace
from pathlib import Path

import pytest
from textbook_vocabularies import english, trained

from endeavour.data.protection import symbols
from endeavour.decoding.config import DecodingConfig
from endeavour.errors import UserError
from endeavour.export import exporter
from endeavour.export.formats import FORMATS, Trained
from endeavour.export.model_card import Card
from endeavour.special import EOS
from random_models import drawn, tiny

SOURCE, TARGET = "Press <b>OK</b> now.", "Drücken Sie <b>OK</b>."


def test_the_tag_is_none_of_the_spans_that_symbols_stand_for(
    tmp_path: Path, decoding: DecodingConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = trained([*english(), SOURCE, TARGET], "bpe", 400, symbols=symbols(2))
    compared: dict[str, list[list[int]]] = {}
    measure = exporter.measure_parity

    def noted(*engines: object, **sentences: list[list[int]]) -> object:
        compared.update(sentences)
        return measure(*engines, **sentences)  # pyright: ignore

    monkeypatch.setattr(exporter, "measure_parity", noted)
    model = Trained(
        run="run",
        model=drawn(tiny(), (400, 400), alpha=0.3, seed=1),
        tokenizers=(tokenizer, tokenizer),
        decoding=decoding,
        card=Card(
            address=".",
            direction="en-de",
            corpus="pairs",
            repository=None,
            revision=None,
            splits={},
            settings={},
            decoding="beam",
            evaluations=[],
        ),
        tag="<own>",
        sources=["", SOURCE],
        references=["", TARGET],
    )
    made = exporter.Exporter(
        format="ctranslate2", quantization="float32", trained=model, weights_digest="digest"
    )
    made.write(tmp_path)
    (source,), (target,) = compared["sources"], compared["targets"]
    assert source == [*tokenizer.encode(["<own> Press ⟦1⟧OK⟦2⟧ now."])[0], EOS]
    assert target == tokenizer.encode(["Drücken Sie ⟦1⟧OK⟦2⟧."])[0]
    readme = (tmp_path / "README.md").read_text("utf-8")
    assert f'sentences = ["<own> {SOURCE}"]' in readme
    assert "Every sentence begins with the tag `<own>`" in readme
    assert "the tag `<own>` comes before what is left then" in readme


def test_argos_takes_no_model_that_fails_at_a_sentence_which_it_would_hand_over() -> None:
    learned = replace(tiny(), positions="learned")
    FORMATS["argos"].check(replace(learned, max_length=1024))
    FORMATS["argos"].check(replace(tiny(), positions="rotary", max_length=128))
    with pytest.raises(UserError, match=r"model\.max_length=128"):
        FORMATS["argos"].check(replace(learned, max_length=128))
