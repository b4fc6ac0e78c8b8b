"""Any value in any place of the config: taken, or refused by a message that names its key."""

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
from endeavour.saved_config import differing_keys, read_config, save_config
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from endeavour.config import load_config, to_dict
from endeavour.errors import UserError

CONFIG = load_config([])
SECTIONS = ("cleaning", "tokenizer", "model", "training", "decoding", "evaluation", "tracking", "bench")
NUMBERS = [
    (section, field.name)
    for section in SECTIONS
    for field in fields(getattr(CONFIG, section))
    if isinstance(getattr(getattr(CONFIG, section), field.name), int | float)
    and not isinstance(getattr(getattr(CONFIG, section), field.name), bool)
]
WORDS = [
    (section, field.name)
    for section in SECTIONS
    for field in fields(getattr(CONFIG, section))
    if isinstance(getattr(getattr(CONFIG, section), field.name), str)
    and field.name not in ("name", "project", "english_column", "german_column")
]


@settings(max_examples=300)
@given(
    st.sampled_from(NUMBERS), st.sampled_from([-(10**9), -1, -0.5, 0, 1, 2, 1e-9, 0.5, 10**9, float("inf")])
)
def test_a_number_is_taken_or_refused_by_name(place: tuple[str, str], number: float) -> None:
    section, key = place
    now = getattr(getattr(CONFIG, section), key)
    if isinstance(now, int) and not float(number).is_integer():
        return  # refused by its type, before any check
    value = int(number) if isinstance(now, int) else float(number)
    refusal = f"{section}.{key}"
    try:
        replace(getattr(CONFIG, section), **{key: value}).check()
    except UserError as error:
        refusal = str(error)
    assert re.search(rf"\b{key}\b", refusal)
    assert refusal.count("\n") <= 1


@settings(max_examples=100)
@given(st.sampled_from(WORDS), st.text(max_size=8).map("?{}".format))  # no word of ours begins so
def test_a_word_that_is_not_known_is_refused_by_name(place: tuple[str, str], word: str) -> None:
    section, key = place
    changed = replace(getattr(CONFIG, section), **{key: word})
    with pytest.raises(UserError, match=rf"{section}\.{key}"):
        changed.check()


@pytest.mark.parametrize("place", NUMBERS, ids=".".join)
def test_what_is_counted_or_measured_is_not_negative(place: tuple[str, str]) -> None:
    section, key = place
    now = getattr(getattr(CONFIG, section), key)
    with pytest.raises(UserError, match=rf"{section}\.{key}\b"):
        replace(getattr(CONFIG, section), **{key: type(now)(-1)}).check()


def test_a_key_of_validations_decoding_is_named_as_such() -> None:
    with pytest.raises(UserError, match=r"^validation_decoding\.beam_size=0: must"):
        load_config(["validation_decoding.beam_size=0"])


@pytest.mark.parametrize("override", ["output_folder=${oc.env:NO_SUCH}/runs", "name=${corpus.nam}"])
def test_an_interpolation_of_nothing_is_the_users_error(override: str) -> None:
    with pytest.raises(UserError, match=r"NO_SUCH|corpus\.nam"):
        load_config([override])


def test_a_config_saved_before_there_was_a_key_means_what_was_done_then(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    save_config(CONFIG, path)
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "teachers" not in line), "utf-8")
    newer = replace(CONFIG, teachers="2")
    saved = read_config(path, newer=newer)
    assert differing_keys(newer, saved) == ["teachers: None → 2"]


@settings(max_examples=10, phases=[Phase.explicit, Phase.generate])
@given(st.integers(0, 2**31), st.floats(1e-6, 1.0), st.integers(1, 10**6), st.booleans())
def test_a_saved_config_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, seed: int, rate: float, updates: int, joint: bool
) -> None:
    path = Path(tmp_path_factory.mktemp("config")) / "config.yaml"
    config = replace(
        CONFIG,
        seed=seed,
        training=replace(CONFIG.training, learning_rate=rate, max_updates=updates),
        tokenizer=replace(CONFIG.tokenizer, joint=joint),
        model=replace(CONFIG.model, tie="decoder"),
    )
    save_config(config, path)
    assert to_dict(read_config(path, newer=config)) == to_dict(config)
