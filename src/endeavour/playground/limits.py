"""How much one request may ask for, and how many may wait. Knows numbers only."""

from typing import Annotated

from pydantic import Field, PositiveInt
from pydantic.dataclasses import dataclass

from endeavour.settings import STRICT


@dataclass(kw_only=True, config=STRICT)
class Limits:
    """Values and their meaning: conf/play.yaml."""

    body: Annotated[int, Field(ge=1024)]
    pieces: Annotated[int, Field(ge=2)]
    beam_size: PositiveInt
    characters: PositiveInt
    alternatives: PositiveInt
    joined_lines: PositiveInt
    waiting: PositiveInt
    systems: PositiveInt
