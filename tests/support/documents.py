"""Code blocks in the project's documents."""

import re
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"

#: The broker's address in the documents; tests replace it with that of theirs.
ADDRESS = "127.0.0.1:9092"

_BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def code_blocks(document: Path, language: str) -> list[str]:
    """Return the fenced blocks of a language ("" for blocks that name none), in order."""
    found = _BLOCK.findall(document.read_text(encoding="utf-8"))
    return [dedent(text) for named, text in found if named == language]


def block_with(document: Path, language: str, part: str) -> str:
    """Return the only block of a language that contains `part`."""
    [block] = [block for block in code_blocks(document, language) if part in block]
    return block


def inline_code(document: Path) -> list[str]:
    """Return the text between single backticks outside of blocks; a line end in it becomes a space."""
    prose = _BLOCK.sub("", document.read_text(encoding="utf-8"))
    return [" ".join(text.split()) for text in re.findall(r"`([^`]+)`", prose)]
