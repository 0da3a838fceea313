"""Declare commands: their names, examples, the APIs that they call, and the permissions that they need.

Help, docs/cli.md and the hints after authorization errors use that; tests run every command and compare.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, ParamSpec

import typer

from barnabas.cli.support.failures import handle_errors

Arguments = ParamSpec("Arguments")

#: The attribute of a command's function that holds its `Entry`.
_ENTRY = "command_entry"


class Entry(NamedTuple):
    """A command: its name in its group, its example without `barnabas`, the Kafka APIs that it calls.

    `needs` are permissions as "operation kind". A permission on a topic, a group or a transactional id applies to
    those that the arguments name.
    """

    name: str
    example: str
    apis: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    hides: bool = False  #: without permission, results are left out; there is no error
    details: str = ""  #: paragraphs of the help after the summary, if the summary is not the docstring
    context_settings: Mapping[str, Any] | None = None


def command(
    name: str,
    *,
    example: str,
    apis: tuple[str, ...] = (),
    needs: tuple[str, ...] = (),
    hides: bool = False,
    details: str = "",
    context_settings: Mapping[str, Any] | None = None,
) -> Callable[[Callable[Arguments, None]], Callable[Arguments, None]]:
    """Make a function a command with this `Entry`, which prints its errors and exits with their code."""
    entry = Entry(name, example, apis, needs, hides, details, context_settings)

    def decorate(function: Callable[Arguments, None]) -> Callable[Arguments, None]:
        run = handle_errors(function, entry.needs)
        run.__dict__[_ENTRY] = entry
        return run

    return decorate


def entry_of(function: Callable[..., Any]) -> Entry:
    """Return the entry of a function that `command` has made a command."""
    entry = function.__dict__[_ENTRY]
    assert isinstance(entry, Entry)
    return entry


def command_group(*functions: Callable[..., None]) -> typer.Typer:
    """Return a group of commands, which shows its help if it is called without a command."""
    app = typer.Typer(no_args_is_help=True)
    for function in functions:
        add_command(app, function)
    return app


def add_command(
    app: typer.Typer, function: Callable[..., None], summary: str | None = None, panel: str | None = None
) -> None:
    """Add a command to an app.

    :param summary: First paragraph of the help; by default, the docstring is the help.
    :param panel: The panel of the help that lists the command.
    """
    entry = entry_of(function)
    settings = None if entry.context_settings is None else dict(entry.context_settings)
    app.command(
        entry.name,
        help=None if summary is None else "\n\n".join(filter(None, (summary, entry.details.strip()))),
        epilog=f"Example: barnabas {entry.example}" + permissions_help(entry),
        context_settings=settings,
        rich_help_panel=panel,
    )(function)


def permissions_help(entry: Entry) -> str:
    """Return the paragraph of the help about the permissions that a command needs; "" if it needs none."""
    if not entry.needs:
        return ""
    words = [need.replace(" ", " on the ", 1) for need in entry.needs]
    return f"\n\nRequired ACLs: {', '.join(words)}."
