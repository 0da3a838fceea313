"""What `barnabas export` does."""

from barnabas.cli.output import print_json
from barnabas.cli.work.calls import with_admin
from barnabas.declared.live import whole_state
from barnabas.declared.state import Choice
from barnabas.declared.writing import to_tree, to_yaml


def export(bootstrap: str, choice: Choice, *, as_json: bool) -> None:
    """Print what a cluster has set."""
    tree = to_tree(with_admin(bootstrap, lambda admin: whole_state(admin, choice)))
    if as_json:
        print_json(tree)
    else:
        print(to_yaml(tree), end="")
