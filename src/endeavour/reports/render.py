"""Templates to pages: HTML and Markdown, in which every value is escaped unless it is a finished chart.

Knows Jinja2 and the escaping of either language; not what a page holds. A page needs no scripts, fonts or images from
elsewhere.
"""

from functools import cache
from typing import Any, cast

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from endeavour.reports.figures import COLOURS, SERIES, bar_chart, heatmap


def render_html(template: str, **values: object) -> str:
    return _environment("html").get_template(template).render(**values)


def render_markdown(template: str, **values: object) -> str:
    return _environment("markdown").get_template(template).render(**values).rstrip() + "\n"


def escape_markdown(value: object) -> Markup:
    """Text that Markdown shows as it stands, on one line; what is finished Markdown already stays."""
    if isinstance(value, Markup):
        return value
    escaped = "".join(f"\\{mark}" if mark in "\\`*_[]<>|~#$&" else mark for mark in str(value))
    return Markup(" ".join(escaped.splitlines()))


@cache
def _environment(language: str) -> Environment:
    options: dict[str, Any] = {}
    if language == "markdown":
        # It sees every value before autoescape, which leaves what it returns alone: one way to escape for both.
        options["finalize"] = escape_markdown
    environment = Environment(
        loader=PackageLoader("endeavour.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )
    shared = {"bar_chart": bar_chart, "heatmap": heatmap, "colours": COLOURS, "series": SERIES}
    cast(dict[str, Any], environment.globals).update(shared)
    return environment
