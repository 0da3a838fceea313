"""A command line that imports the module of a command only if it runs or completes it, or shows its help."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from barnabas.cli.support.commands import add_command
from barnabas.cli.support.failures import INTERRUPTED


class TopLevel(NamedTuple):
    """A name after `barnabas`: the module below `barnabas.cli` and its attribute, a command or a group."""

    name: str
    target: str  #: MODULE:ATTRIBUTE
    panel: str  #: of the help that lists it
    summary: str  #: the first paragraph of its help


class _Unloaded(TyperCommand):
    """Stands for a command or a group whose module is not imported: has what lists of commands show."""

    def __init__(self, row: TopLevel) -> None:
        super().__init__(row.name, help=row.summary, rich_help_panel=row.panel)
        self._row = row

    def load(self) -> Any:
        """Import the module, and return the command or group."""
        name, target, panel, summary = self._row
        module, _, attribute = target.partition(":")
        loaded = getattr(import_module(f"barnabas.cli.{module}"), attribute)
        app = typer.Typer(add_completion=False)
        if not isinstance(loaded, typer.Typer):
            add_command(app, loaded, summary, panel)
            return typer.main.get_command(app)
        app.add_typer(loaded, name=name, help=summary, rich_help_panel=panel)
        root: Any = typer.main.get_command(app)
        return root.commands[name]


class LazyGroup(TyperGroup):
    """A group of commands and groups that are loaded when they are called by name."""

    rows: tuple[TopLevel, ...] = ()

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands.update({row.name: _Unloaded(row) for row in self.rows})

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, found, rest = super().resolve_command(ctx, args)
        try:
            return name, found.load() if isinstance(found, _Unloaded) else found, rest
        except KeyboardInterrupt:  # as while the command runs
            raise typer.Exit(INTERRUPTED) from None

    def every_command(self) -> Iterator[tuple[str, Any]]:
        """Import all modules, and return the full name of each command and the command, in the order of the help."""
        for name, stand_in in self.commands.items():
            outer: Any = stand_in.load() if isinstance(stand_in, _Unloaded) else stand_in
            for inner_name, inner in getattr(outer, "commands", {"": outer}).items():
                yield f"{name} {inner_name}".strip(), inner
