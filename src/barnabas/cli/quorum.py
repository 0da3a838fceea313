"""`barnabas quorum`: who keeps cluster state."""

from barnabas.cli.failures import guarded
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json


@guarded
def quorum(bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False) -> None:
    """Show the nodes that keep cluster state, who leads, and how far they are."""
    from barnabas.cli.work import quorum as work

    work.show(bootstrap, as_json=as_json)
