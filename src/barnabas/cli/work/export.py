"""What `barnabas export` does."""

from pathlib import Path

from barnabas.cli.output import print_json
from barnabas.cli.work.calls import with_admin
from barnabas.declared.live import whole_state
from barnabas.declared.reading import read_state
from barnabas.declared.state import Choice
from barnabas.declared.updating import updated
from barnabas.declared.writing import to_tree, to_yaml


def export(bootstrap: str, choice: Choice, *, as_json: bool) -> None:
    """Print what a cluster has set."""
    tree = to_tree(with_admin(bootstrap, lambda admin: whole_state(admin, choice)))
    if as_json:
        print_json(tree)
    else:
        print(to_yaml(tree), end="")


def update(bootstrap: str, file: Path, choice: Choice, *, as_json: bool) -> None:
    """Bring a file up to what a cluster has set, and say so.

    :raises CannotEdit: When that cannot be done in place.
    """
    text = file.read_text(encoding="utf-8")
    declared = read_state(file)
    live = with_admin(bootstrap, lambda admin: whole_state(admin, choice))
    after = updated(text, declared, live, choice)
    if after != text:
        beside = file.with_name(f".{file.name}.new")
        beside.write_text(after, encoding="utf-8")
        beside.replace(file)
    if as_json:
        print_json({"file": str(file), "changed": after != text})
    else:
        print(f"{file}: {'brought up to date' if after != text else 'is up to date'}")
