"""`barnabas quorum`: who keeps cluster state, and who votes on it."""

from typing import Annotated

import typer

from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(help="See the nodes that keep cluster state, change who votes.", no_args_is_help=True)

Node = Annotated[int, typer.Argument(metavar="NODE", min=0, help="The node's id.", show_default=False)]
Directory = Annotated[
    str,
    typer.Argument(
        metavar="DIRECTORY_ID", help="The id of its directory, as 'describe' shows it.", show_default=False
    ),
]
Endpoints = Annotated[
    list[str],
    typer.Argument(
        metavar="LISTENER=HOST:PORT...",
        help="Where its controller is reached, by the listeners' names.",
        show_default=False,
    ),
]


@app.command("describe")
@handle_errors
def describe_quorum(bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False) -> None:
    """Show the nodes that keep cluster state, who leads, and how far they are."""
    from barnabas.cli.work import quorum

    quorum.describe(bootstrap, as_json=as_json)


@app.command("add-voter")
@handle_errors
def add_voter(
    node: Node,
    directory: Directory,
    endpoints: Endpoints,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Let a node that runs vote."""
    from barnabas.cli.work import quorum

    quorum.add_voter(bootstrap, node, directory, endpoints, as_json=as_json)


@app.command("remove-voter")
@handle_errors
def remove_voter(
    node: Node, directory: Directory, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False
) -> None:
    """Let a node vote no longer."""
    from barnabas.cli.work import quorum

    quorum.remove_voter(bootstrap, node, directory, as_json=as_json)


@app.command("update-voter")
@handle_errors
def update_voter(
    node: Node,
    directory: Directory,
    endpoints: Endpoints,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Tell where a voter is reached; Apache Kafka takes that on the listeners of its controllers alone."""
    from barnabas.cli.work import quorum

    quorum.update_voter(bootstrap, node, directory, endpoints, as_json=as_json)
