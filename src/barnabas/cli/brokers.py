"""`barnabas brokers`: list brokers, show their API versions, unregister one."""

from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(help="List brokers, show the APIs that they support, unregister one.", no_args_is_help=True)

Broker = Annotated[
    int,
    typer.Argument(
        metavar="BROKER",
        min=0,
        help="Id of the broker.",
        show_default=False,
        autocompletion=candidates.brokers,
    ),
]


@app.command("list")
@handle_errors
def list_brokers(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    fenced: Annotated[
        bool, typer.Option("--fenced", help="Include fenced brokers (Kafka 4.0 and later).")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the brokers of the cluster."""
    from barnabas.cli.work import brokers

    brokers.show_list(bootstrap, fenced=fenced, as_json=as_json)


@app.command("api-versions")
@handle_errors
def show_api_versions(
    broker: Annotated[
        int | None,
        typer.Argument(
            metavar="[BROKER]",
            help="Id of the broker (default: any broker).",
            show_default=False,
            autocompletion=candidates.brokers,
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Show the APIs that a broker supports, and their versions."""
    from barnabas.cli.work import brokers

    brokers.show_api_versions(bootstrap, broker, as_json=as_json)


@app.command("unregister")
@handle_errors
def unregister_broker(
    broker: Broker, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False
) -> None:
    """Unregister a broker that has been removed from the cluster for good."""
    from barnabas.cli.work import brokers

    brokers.unregister(bootstrap, broker, as_json=as_json)
