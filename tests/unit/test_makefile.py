"""The command of `make run`."""

import shlex
from pathlib import Path

from barnabas.server.main import load

MAKEFILE = Path(__file__).resolve().parents[2] / "Makefile"


def test_make_run_serves_the_console_on_loopback(tmp_path: Path) -> None:
    lines = MAKEFILE.read_text().splitlines()
    [command] = [lines[at + 1] for at, line in enumerate(lines) if line.startswith("run:")]
    words = shlex.split(command.strip())
    settings = dict(words[at + 1].split("=", 1) for at, word in enumerate(words) if word == "--set")
    config = load(None, tmp_path, None, settings).config
    assert config.text("barnabas.metrics.listener") == "127.0.0.1:9404"
    assert config.boolean("barnabas.console.enable")
