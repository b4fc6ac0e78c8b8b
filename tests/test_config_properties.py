"""Any value in any place of the config: taken, or refused by a message that names its key."""

import math
import re
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configs import run_config
from endeavour.commands.bench import BenchRoot
from endeavour.commands.translate import TranslateRoot
from endeavour.config import load_config
from endeavour.errors import UserError
from endeavour.runs.config import RunConfig
from endeavour.settings import validated

RUN = load_config("train", RunConfig)
SECTIONS = {field.name: getattr(RUN, field.name) for field in fields(RUN)}
SECTIONS = {name: value for name, value in SECTIONS.items() if is_dataclass(value)}
SECTIONS |= {"bench": load_config("bench", BenchRoot).bench}
PLACES = [(section, field.name) for section, config in SECTIONS.items() for field in fields(config)]


def value_at(place: tuple[str, str]) -> Any:
    return getattr(SECTIONS[place[0]], place[1])


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_choice(place: tuple[str, str]) -> bool:
    """Whether its values are listed in its type."""
    hint = get_type_hints(type(SECTIONS[place[0]]))[place[1]]
    return isinstance(value_at(place), str) and all(isinstance(one, str) for one in get_args(hint) or [0])


NUMBERS = [place for place in PLACES if is_number(value_at(place))]
# A seed may be any number, and a ratio without end is no limit.
COUNTS = [place for place in NUMBERS if place not in (("corpus", "seed"), ("cleaning", "max_ratio"))]
CHOICES = [place for place in PLACES if is_choice(place)]


def refusal(place: tuple[str, str], value: object) -> str | None:
    """The message, of one line; None if the value is taken."""
    config: Any = SECTIONS[place[0]]
    values = asdict(config) | {place[1]: value}
    try:
        validated(type(config), values, place[0])
    except UserError as error:
        said = str(error)
    else:
        return None
    assert "\n" not in said
    return said


@settings(max_examples=300)
@given(
    st.sampled_from(PLACES),
    st.sampled_from([-1, -0.5, 0, 1, 2, 1e-9, 0.5, 10**9, "", "?", True, None, [], {"a": 1}]),
)
def test_a_value_is_taken_or_refused_by_name(place: tuple[str, str], value: object) -> None:
    said = refusal(place, value)
    assert said is None or re.search(rf"\b{place[0]}\.\w", said)  # it may be another key that does not fit


@pytest.mark.parametrize("place", COUNTS, ids=".".join)
def test_what_is_counted_or_measured_is_a_number_and_not_negative(place: tuple[str, str]) -> None:
    for value in (type(value_at(place))(-1), math.inf, math.nan, "many"):
        assert f"{place[0]}.{place[1]}=" in (refusal(place, value) or ""), value


@pytest.mark.parametrize("place", CHOICES, ids=".".join)
def test_a_word_that_is_not_known_is_refused_by_name(place: tuple[str, str]) -> None:
    assert f"{place[0]}.{place[1]}=" in (refusal(place, "?") or "")


def test_there_is_something_of_each_kind() -> None:
    assert ("training", "learning_rate") in COUNTS
    assert ("tokenizer", "algorithm") in CHOICES


@pytest.mark.parametrize("override", ["output_folder=${oc.env:NO_SUCH}/runs", "name=${corpus.nam}"])
def test_an_interpolation_of_nothing_is_the_users_error(override: str) -> None:
    with pytest.raises(UserError, match=r"NO_SUCH|corpus\.nam"):
        run_config([override])


@pytest.mark.parametrize("override", ["output_folder=${oc.env:NO_SUCH}/runs", "output_folder=null"])
def test_nor_is_it_a_defect_where_a_run_is_looked_for(override: str) -> None:
    with pytest.raises(UserError, match=r"NO_SUCH|output_folder"):
        load_config("translate", TranslateRoot, [override])


def test_folders_may_begin_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    config = run_config(["output_folder='~/runs'", "data_folder='~/data'"])
    assert (config.output_folder, config.data_folder) == (str(tmp_path / "runs"), str(tmp_path / "data"))
