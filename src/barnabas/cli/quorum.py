"""`barnabas quorum`: describe the metadata quorum, change its voters."""

from typing import Annotated

import typer

from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(help="Describe the metadata quorum, add, remove and update voters.", no_args_is_help=True)

Node = Annotated[int, typer.Argument(metavar="NODE", min=0, help="Id of the node.", show_default=False)]
Directory = Annotated[
    str,
    typer.Argument(
        metavar="DIRECTORY_ID", help="Directory id of the node, as shown by 'describe'.", show_default=False
    ),
]
Endpoints = Annotated[
    list[str],
    typer.Argument(
        metavar="LISTENER=HOST:PORT...",
        help="Addresses of the node's controller, by listener name.",
        show_default=False,
    ),
]


@app.command("describe")
@handle_errors
def describe_quorum(bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False) -> None:
    """Show the voters and observers of the metadata quorum, the leader, and their log end offsets."""
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
    """Add a running node to the voters."""
    from barnabas.cli.work import quorum

    quorum.add_voter(bootstrap, node, directory, endpoints, as_json=as_json)


@app.command("remove-voter")
@handle_errors
def remove_voter(
    node: Node, directory: Directory, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False
) -> None:
    """Remove a node from the voters."""
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
    """Update the addresses of a voter; Apache Kafka accepts this only on the listeners of its controllers."""
    from barnabas.cli.work import quorum

    quorum.update_voter(bootstrap, node, directory, endpoints, as_json=as_json)
