"""Code as it stands in the project's documents."""

import re
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"

#: Where the documents' broker listens; tests put the address of theirs in its place.
ADDRESS = "127.0.0.1:9092"

_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def code_blocks(document: Path, language: str) -> list[str]:
    """The fenced blocks of a language ("" for those that name none), in their order."""
    found = _BLOCK.findall(document.read_text(encoding="utf-8"))
    return [dedent(text) for named, text in found if named == language]


def block_with(document: Path, language: str, part: str) -> str:
    """The only block of a language that has `part` in it."""
    [block] = [block for block in code_blocks(document, language) if part in block]
    return block


def inline_code(document: Path) -> list[str]:
    """What stands between single backticks, outside of the blocks; a line's end in it is a space."""
    prose = _BLOCK.sub("", document.read_text(encoding="utf-8"))
    return [" ".join(text.split()) for text in re.findall(r"`([^`]+)`", prose)]
