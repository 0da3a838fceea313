"""`barnabas export`."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli.declared.options import (
    READING_APIS,
    READING_NEEDS,
    Exclude,
    Include,
    Sections,
    resource_filter_of,
)
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import print_json
from barnabas.declared.live import whole_state
from barnabas.declared.parser import read_state
from barnabas.declared.renderer import to_tree, to_yaml
from barnabas.declared.state import ResourceFilter
from barnabas.declared.updating import updated


@command("export", example="export --include 'topic/*'", apis=READING_APIS, needs=READING_NEEDS)
def export(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    include: Include = None,
    exclude: Exclude = None,
    section: Sections = None,
    into: Annotated[
        Path | None,
        typer.Option("--into", metavar="FILE", help="Update this file and keep its comments."),
    ] = None,
    as_json: Json = False,
) -> None:
    resource_filter = resource_filter_of(include, exclude, section)
    if into is None:
        _print_state(bootstrap, resource_filter, as_json=as_json)
    else:
        _update(bootstrap, into, resource_filter, as_json=as_json)


def _print_state(bootstrap: str, resource_filter: ResourceFilter, *, as_json: bool) -> None:
    """Print the declared state of a cluster."""
    tree = to_tree(with_admin(bootstrap, lambda admin: whole_state(admin, resource_filter)))
    if as_json:
        print_json(tree)
    else:
        print(to_yaml(tree), end="")


def _update(bootstrap: str, file: Path, resource_filter: ResourceFilter, *, as_json: bool) -> None:
    """Update a file to the state of a cluster, and print whether it changed.

    :raises CannotEdit: If the file cannot be edited in place.
    """
    with file.open(encoding="utf-8", newline="") as lines:
        raw = lines.read()
    text = raw.replace("\r\n", "\n")
    declared = read_state(file)
    live = with_admin(bootstrap, lambda admin: whole_state(admin, resource_filter))
    after = updated(text, declared, live, resource_filter)
    if after != text:
        _write(file.resolve(), after, newline="\r\n" if "\r\n" in raw else "\n")
    if as_json:
        print_json({"file": str(file), "changed": after != text})
    else:
        print(f"{file}: {'updated' if after != text else 'already up to date'}")


def _write(file: Path, text: str, newline: str) -> None:
    """Replace the file atomically, with its permissions."""
    temporary = file.with_name(f".{file.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=0o600, exist_ok=False)
    shutil.copymode(file, temporary)
    temporary.write_text(text, encoding="utf-8", newline=newline)
    temporary.replace(file)
