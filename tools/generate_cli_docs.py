"""Write docs/cli.md from the commands and the APIs that a broker serves.

Run it after a change to a command: `python tools/generate_cli_docs.py`.
"""

from collections import defaultdict
from pathlib import Path
from typing import Any

import typer.main

import barnabas.api
from barnabas.api.registry import build
from barnabas.cli.main import COMMANDS, app
from barnabas.cli.support.commands import Entry, entry_of
from barnabas.client.core.request_codec import api_name

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "cli.md"

#: The users of the other APIs.
_OTHERS = {
    "what consumers do": ("JoinGroup", "Heartbeat", "SyncGroup", "ConsumerGroupHeartbeat"),
    "what producers do": ("AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit"),
    "every command with `--command-config`": ("SaslHandshake", "SaslAuthenticate"),
    "what clients report about themselves": ("GetTelemetrySubscriptions", "PushTelemetry"),
    "what brokers ask each other": ("DescribeTopicOffsets", "RestoreTopicOffsets"),
}

_INTRODUCTION = """\
# The command line

Written by `tools/generate_cli_docs.py` from the commands in `src/barnabas/cli`: change those, not this.

`barnabas` administers any Kafka, not only Barnabas. Each command speaks Kafka's protocol to the broker at `--bootstrap`
(or `BARNABAS_BOOTSTRAP`; default: 127.0.0.1:9092), and logs in with the file of Kafka's client properties that
`--command-config` (or `BARNABAS_COMMAND_CONFIG`) names. `--help` describes each command, with an example.

## Exit codes
They are the same for every command.

| Code | Meaning |
| --- | --- |
| 0 | success |
| 1 | failure: the broker returned an error, or a check failed |
| 2 | wrong use: the arguments are not valid |
| 3 | not found: a topic, group, user, broker, file ... does not exist |
| 4 | refused by an ACL, by a policy, or at login |
| 5 | unreachable: no broker responded in time |
| 130 | interrupted by Ctrl-C |

If a command names several resources, it tries all of them. It reports each error, and exits with the code of the first.
A command that lists resources leaves out those that the principal may not see. `barnabas serve` exits with 2 if its
configuration is not valid, or if it cannot listen on its addresses, and with 1 if the broker fails. `barnabas cluster
status` exits with 1 if the cluster is not healthy. `barnabas plan` and `barnabas drift` exit with 2 if there are
differences, and with 1 for wrong use. `spark-submit` and `spark-pipelines` have the codes of Spark.

## Output
- On a terminal, results are tables as wide as the terminal, or lists if the columns would become too narrow. In a pipe
  nothing is truncated or coloured. `NO_COLOR` is respected. Notes and progress go to stderr, only on a terminal.
- `--json` prints one line: an array for a list, an object for a single result. `consume`, `audit` and other commands
  that wait for more print one object on a line. Keys are `snake_case`, sizes end in `_bytes`, times in `_ms`; a missing
  value is `null`. Keys may be added, but are not renamed. Records of the audit are printed as they are in its topic:
  with `time`, in milliseconds.
- An error goes to stderr: `error: ...` and `try: ...`, or with `--json` one object on a line with `error` (Kafka's name
  of the error, or WRONG_USE, UNREACHABLE, CONNECTION_LOST, TIMED_OUT, NOT_KAFKA, REGISTRY_UNAVAILABLE,
  SUBJECT_NOT_FOUND, NOT_FOUND, FILE_NOT_FOUND, REFUSED, FAILED),
  `message` and `hint`. Results that succeeded are still on stdout. Invalid options are reported in the same way.
- `produce` reports each input line that did not arrive, with `--json` in `lines`, counted from 1, and sends the others.
  It stops reading at an error that would affect all later lines, such as a missing permission.
- In the file of `--command-config`, properties that Kafka's own clients do not have, and lines without a value, cause a
  warning on stderr, with `--json` an object with `warning`.
- `--wait SECONDS` waits until the operation is complete, shows its progress, and fails if it takes longer.

## Passwords
`users add` prompts for a password, or reads the first line of stdin if that is not a terminal. `--password @FILE` reads
it from a file, `--password -` from stdin; the variable `BARNABAS_PASSWORD` works as well. `serve --add-scram` accepts
`USER=@FILE`, `configs set` a file of properties with `--file`, and the file of `--command-config` holds a login.
A password among the arguments is overwritten as soon as the command starts (on Linux), but process listings show it
until then, and the shell keeps it in its history.

## Completion
`source <(barnabas completion bash)` completes commands and options, and the names of topics, groups, transactional ids,
users, brokers, directories, features and keys of the cluster at `--bootstrap`, if it responds within half a second, or
within `BARNABAS_COMPLETION_TIMEOUT_MS`. Put it into `~/.bashrc`, for zsh
`source <(barnabas completion zsh)` below `compinit` in `~/.zshrc`; for fish:
`barnabas completion fish > ~/.config/fish/completions/barnabas.fish`.

"""


def commands() -> dict[str, Any]:
    """Return name -> command, for all commands, in the order of the help."""
    root: Any = typer.main.get_command(app)
    return dict(root.every_command())


def entries() -> dict[str, Entry]:
    """Return name -> entry, for all commands."""
    return {name: entry_of(command.callback) for name, command in commands().items()}


def render() -> str:
    """Return the whole page."""
    return _INTRODUCTION + _apis() + _commands()


def _apis() -> str:
    users = defaultdict(list)
    for name, entry in entries().items():
        for api in entry.apis:
            users[api].append(f"`{name}`")
    for purpose, apis in _OTHERS.items():
        for api in apis:
            users[api].append(purpose)
    rows = [
        "## APIs",
        "Every [API that a broker serves](apis.md), and the commands that use it.",
        "",
    ]
    rows += ["| Key | API | Commands |", "| --- | --- | --- |"]
    for key, spec in build(barnabas.api).items():
        name = api_name(spec.request)
        if name not in users:
            message = f"no command uses {name}: name it in the entry of a command, or its users above"
            raise ValueError(message)
        rows.append(f"| {key} | {name} | {', '.join(users[name])} |")
    return "\n".join(rows) + "\n"


def _commands() -> str:
    lines = ["\n## Commands"]
    panels = {row.name: row.panel for row in COMMANDS}
    panel = ""
    for name, command in commands().items():
        if panels[name.split()[0]] != panel:
            panel = panels[name.split()[0]]
            lines += [
                f"\n### {panel}",
                "| Command | What it does | Example | Needs |",
                "| --- | --- | --- | --- |",
            ]
        entry = entry_of(command.callback)
        summary = " ".join((command.help or "").split("\n\n")[0].split())
        lines.append(
            f"| `{name}` | {summary} | `{entry.example}` | {', '.join(entry.needs)} |".replace("|  |", "| |")
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(render(), encoding="utf-8")
