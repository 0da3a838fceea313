"""The template environment: autoescaped, with the filters that format values."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from barnabas import __version__
from barnabas.base.resource_names import HIDDEN
from barnabas.console import formatting
from barnabas.console.records import printable

#: htmx must neither write styles nor evaluate code: the content security policy allows neither.
HTMX_CONFIG = json.dumps(
    {
        "includeIndicatorStyles": False,
        "allowEval": False,
        "allowScriptTags": False,
        "selfRequestsOnly": True,
        "historyCacheSize": 0,
        "refreshOnHistoryMiss": True,
        "responseHandling": [
            {"code": "204", "swap": False},
            {"code": "[23]..", "swap": True},
            {"code": "[45]..", "swap": True, "error": True},
        ],
    }
)


@cache
def environment() -> Environment:
    """The templates of the console."""
    made = Environment(
        loader=PackageLoader("barnabas.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        size=formatting.size,
        count=formatting.count,
        rate=formatting.rate,
        percent=formatting.percent,
        moment=formatting.moment,
        duration=formatting.duration,
        plural=formatting.plural,
        prose=formatting.prose,
        json_text=json.dumps,
        printable=printable,
    )
    made.globals.update(version=__version__, htmx_config=HTMX_CONFIG, polyline=polyline, hidden=HIDDEN)
    return made


def render(template: str, context: Mapping[str, Any]) -> str:
    return environment().get_template(template).render(context)


def polyline(values: Sequence[float], width: int, height: int) -> str:
    """The points of an SVG polyline of equidistant values, the highest at the top."""
    top = max([*values, 1e-9])
    step = width / max(1, len(values) - 1)
    return " ".join(
        f"{index * step:.1f},{height - 1 - value / top * (height - 2):.1f}"
        for index, value in enumerate(values)
    )
