"""Generate docs/apis.md from the table of handlers and the docstrings of their modules.

Run it after a change to an API: `python tools/generate_api_docs.py`.
"""

import inspect
import re
import sys
from pathlib import Path
from typing import NamedTuple

import barnabas.api
from barnabas.api.registry import ApiSpec, build

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "apis.md"

_HEAD = re.compile(r"(?P<name>\w+) \((?P<key>\d+)\), v(?P<first>\d+)(?:-v(?P<last>\d+))?: (?P<summary>.+)")
_VERSION_NOTE = re.compile(r"  (?=v\d+: )")

_INTRODUCTION = """\
# APIs

Written by `tools/generate_api_docs.py` from the modules under `src/barnabas/api/`: change those, not this.

These are the APIs of the Kafka protocol that a broker serves, and the versions of each. ApiVersions tells a client
the same. Those from key 32000 up only Barnabas has: ApiVersions tells of them to clients alone whose
`ClientSoftwareName` is `barnabas`, and their messages are written by hand, in `src/barnabas/wire/barnabas_messages/`. A
request of another API or version is answered with UNSUPPORTED_VERSION, and its connection closes; a
request that cannot be read closes its connection. UNKNOWN_SERVER_ERROR may come from any API: it is a fault of the
broker, which its log explains.

"""


class ApiText(NamedTuple):
    """The content of a handler module's docstring."""

    name: str
    api_key: int
    first: int
    last: int
    summary: str
    notes: list[str]  #: additions of each version, and other notes
    errors: str


def text_of(spec: ApiSpec) -> ApiText:
    """Parse a handler module's docstring.

    :raises ValueError: If it does not begin with `Name (key), vA-vB: what it does.`
    """
    module = sys.modules[spec.handle.__module__]
    document = inspect.getdoc(module) or ""
    head, _, body = document.partition("\n\n")
    head = " ".join(head.split())
    match = _HEAD.fullmatch(head)
    if match is None:
        message = f"{module.__name__} begins with '{head}', not with 'Name (key), vA-vB: what it does.'"
        raise ValueError(message)
    diagnostics, _, errors = body.partition("Errors")
    notes = [note for line in _paragraphs(diagnostics) for note in _VERSION_NOTE.split(line)]
    first, last = int(match["first"]), int(match["last"] or match["first"])
    return ApiText(
        match["name"], int(match["key"]), first, last, match["summary"], notes, " ".join(errors.split())
    )


def _paragraphs(text: str) -> list[str]:
    """Return paragraphs without their line breaks; a break before a version's note counts as its two spaces."""
    text = re.sub(r"\n(?=v\d+: )", "  ", text.strip())
    return [paragraph.replace("\n", " ") for paragraph in text.split("\n\n") if paragraph]


def render() -> str:
    """Return the whole page."""
    texts = [text_of(spec) for spec in build(barnabas.api).values()]
    rows = ["| Key | API | Versions | What it does |", "| --- | --- | --- | --- |"]
    rows += [
        f"| {each.api_key} | [{each.name}](#{each.name.lower()}) | {_versions(each)} | {each.summary} |"
        for each in texts
    ]
    return _INTRODUCTION + "\n".join(rows) + "\n" + "".join(map(_section, texts))


def _versions(text: ApiText) -> str:
    return f"{text.first}" if text.first == text.last else f"{text.first}-{text.last}"


def _section(text: ApiText) -> str:
    lines = [f"\n## {text.name}\n"]
    lines += [f"- {note.strip()}" for note in text.notes]
    lines.append(f"- Errors{text.errors}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(render(), encoding="utf-8")
