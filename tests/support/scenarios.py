"""Text scenarios: commands, a line `----`, their output, an empty line, the next commands.

`REWRITE_SCENARIOS=1 pytest tests/unit/replication/test_scenarios.py` writes the present output to the files: read the
diff before you keep it. Lines that begin with `#` are comments.
"""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

RULE = "----"
SCENARIOS = Path(__file__).resolve().parents[1] / "scenarios"

#: one command, without comments -> its output lines
Run = Callable[[str], Awaitable[list[str]]]


def files_of(folder: str) -> list[Path]:
    """Return the scenarios of a folder, by name."""
    return sorted((SCENARIOS / folder).glob("*.txt"))


async def replay(path: Path, run: Run) -> None:
    """Run every command of a scenario; its output must be that of the file."""
    text = path.read_text(encoding="utf-8")
    blocks = [await _replay_block(block, run) for block in text.strip("\n").split("\n\n")]
    found = "\n\n".join(blocks) + "\n"
    if os.environ.get("REWRITE_SCENARIOS"):
        path.write_text(found, encoding="utf-8")
    assert found == text, f"{path.name} has another output"


async def _replay_block(block: str, run: Run) -> str:
    lines = block.split("\n")
    if RULE not in lines:
        assert all(line.startswith("#") for line in lines), f"commands without '{RULE}': {block}"
        return block
    commands = lines[: lines.index(RULE)]
    outcome = [line for command in commands if not command.startswith("#") for line in await run(command)]
    return "\n".join([*commands, RULE, *outcome])


def words_of(command: str) -> tuple[str, list[str], dict[str, str]]:
    """Return the verb of a command, its plain words, and its `key=value` words."""
    verb, *words = command.split()
    options = dict(word.split("=", 1) for word in words if "=" in word)
    return verb, [word for word in words if "=" not in word], options
