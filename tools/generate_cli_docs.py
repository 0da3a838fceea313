"""Generate docs/cli.md from the commands, their catalogue, and the APIs that a broker serves.

Run it after a change to a command: `python tools/generate_cli_docs.py`.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

import barnabas.api
from barnabas.api.registry import build
from barnabas.cli.catalogue import ENTRIES
from barnabas.cli.main import app
from barnabas.client.core.framing import api_name

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "cli.md"

#: The users of the other APIs.
_OTHERS = {
    "what consumers do": ("JoinGroup", "Heartbeat", "SyncGroup", "ConsumerGroupHeartbeat"),
    "what producers do": ("AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit"),
    "every command with `--command-config`": ("SaslHandshake", "SaslAuthenticate"),
    "what clients tell of themselves": ("GetTelemetrySubscriptions", "PushTelemetry"),
}

_INTRODUCTION = """\
# The command line

Written by `tools/generate_cli_docs.py` from the commands and `src/barnabas/cli/catalogue.py`: change those, not this.

`barnabas` administers any Kafka, not only Barnabas: each command speaks Kafka's protocol to the broker at `--bootstrap`
(or `BARNABAS_BOOTSTRAP`; 127.0.0.1:9092 unless told otherwise), and logs in as `--command-config` (or
`BARNABAS_COMMAND_CONFIG`) says, a file of Kafka's client properties. `--help` explains each command, with an example.

## Exit codes
They are the same for every command.

| Code | Meaning |
| --- | --- |
| 0 | done |
| 1 | failed: the broker cannot do it, or what was checked is not as it should be |
| 2 | wrong use: what was typed makes no sense |
| 3 | not found: a topic, group, user, broker, file ... that was named is not there |
| 4 | refused: by an ACL, by a policy, or at the login |
| 5 | unreachable: no broker answered, or not in time |
| 130 | interrupted by Ctrl-C |

Where several things are named, each is tried; the code is that of the first that failed, and each failure is told. A
command that lists shows what the principal may see and refuses nothing. `barnabas serve` ends with 2 when its
configuration cannot be, and with 1 when the broker dies.

## Output
- For people: a table. On a terminal it is as wide as that, or a list of rows where the columns would become too narrow;
  in a pipe nothing is cut or coloured. `NO_COLOR` is heeded. Notes and progress go to stderr, on a terminal alone.
- For programs: `--json` prints one line: an array of objects for a list, an object for a single thing. `consume`,
  `audit` and what waits for more print an object a line. Keys are `snake_case`, sizes end in `_bytes`, times in `_ms`,
  what is not there is `null`; keys are added, not renamed.
- A failure goes to stderr: `error: ...` and `try: ...`, or with `--json` an object a line with `error` (Kafka's name of
  it, or WRONG_USE, UNREACHABLE, CONNECTION_LOST, TIMED_OUT, NOT_KAFKA, NOT_FOUND, FILE_NOT_FOUND, FAILED), `message`
  and `hint`. What succeeded beside it is on stdout all the same. Wrong options are answered alike.
- `produce` names each input line that did not arrive, with `--json` in `lines`, counted from 1; it sends the others. It
  stops reading only at an error that later lines would meet as well, such as a missing permission.
- In the file of `--command-config`, properties that Kafka's own clients do not know, and lines without a value, are
  warned of on stderr, with `--json` as an object with `warning`.
- `--wait SECONDS` stays until what was begun is done, with progress, and fails when that takes longer.

## Passwords
`users add` asks for a password, or reads the first line of stdin where that is no terminal; `--password @FILE` takes it
from a file, `--password -` from stdin, and the variable `BARNABAS_PASSWORD` works as well. `serve --add-scram` takes
`USER=@FILE`, `configs set` a file of properties with `--file`, and a login stands in the file of `--command-config`.
A password that is among the arguments is written over as soon as the command starts (on Linux), but process listings
show it until then, and the shell keeps it in its history.

## Completion
`source <(barnabas completion bash)` completes commands and options, and the names of topics, groups, transactional ids,
users, brokers, directories, features and keys as the cluster at `--bootstrap` has them, if it answers within half a
second, or as many ms as `BARNABAS_COMPLETION_TIMEOUT_MS` says. It goes into `~/.bashrc`, for zsh
`source <(barnabas completion zsh)` below `compinit` in `~/.zshrc`; for fish:
`barnabas completion fish > ~/.config/fish/completions/barnabas.fish`.

"""


def commands() -> Iterator[tuple[str, str, Any]]:
    """Return (panel, name, command) of every command, in the order of the help."""
    root: Any = typer.main.get_command(app)
    for name in root.list_commands(None):
        outer = root.commands[name]
        panel = getattr(outer, "rich_help_panel", None) or "Others"
        for inner_name, inner in getattr(outer, "commands", {"": outer}).items():
            yield panel, f"{name} {inner_name}".strip(), inner


def render() -> str:
    """Return the whole page."""
    return _INTRODUCTION + _apis() + _commands()


def _apis() -> str:
    users = defaultdict(list)
    for name, entry in ENTRIES.items():
        for api in entry.apis:
            users[api].append(f"`{name}`")
    for audience, apis in _OTHERS.items():
        for api in apis:
            users[api].append(audience)
    rows = [
        "## APIs",
        "Every [API that a broker serves](apis.md), and the commands that are there for it.",
        "",
    ]
    rows += ["| Key | API | Commands |", "| --- | --- | --- |"]
    for key, spec in build(barnabas.api).items():
        name = api_name(spec.request)
        if name not in users:
            message = f"no command uses {name}: name its command or its users in the catalogue"
            raise ValueError(message)
        rows.append(f"| {key} | {name} | {', '.join(users[name])} |")
    return "\n".join(rows) + "\n"


def _commands() -> str:
    lines = ["\n## Commands"]
    panel = ""
    for its_panel, name, command in commands():
        if its_panel != panel:
            panel = its_panel
            lines += [
                f"\n### {panel}",
                "| Command | What it does | Example | Needs |",
                "| --- | --- | --- | --- |",
            ]
        entry = ENTRIES.get(name)
        example = f"`{entry.example}`" if entry else ""
        needs = ", ".join(entry.needs) if entry else ""
        summary = " ".join((command.help or "").split("\n\n")[0].split())
        lines.append(f"| `{name}` | {summary} | {example} | {needs} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(render(), encoding="utf-8")
