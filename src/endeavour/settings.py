"""How config dataclasses are validated: types and bounds stand in the dataclass, beside the code that it configures.

Knows pydantic; no section and no value. `config` turns a `pydantic.ValidationError` into a line for the user.
"""

from pydantic import ConfigDict

# For `@pydantic.dataclasses.dataclass(kw_only=True, config=STRICT)`: a name such as `1` may be typed without quotes,
# no number may be NaN or infinite, and a key that nobody reads is refused.
STRICT = ConfigDict(extra="forbid", coerce_numbers_to_str=True, allow_inf_nan=False)
