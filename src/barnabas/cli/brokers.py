"""`barnabas brokers`: who serves, what each of them speaks, forgetting one."""

from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(
    help="See brokers and the APIs that they serve, forget one that is gone.", no_args_is_help=True
)

Broker = Annotated[
    int,
    typer.Argument(
        metavar="BROKER",
        min=0,
        help="The broker's id.",
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
            metavar="[BROKER]", help="Which; else any.", show_default=False, autocompletion=candidates.brokers
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Show the APIs that a broker serves, and in which versions."""
    from barnabas.cli.work import brokers

    brokers.show_api_versions(bootstrap, broker, as_json=as_json)


@app.command("unregister")
@handle_errors
def unregister_broker(
    broker: Broker, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False
) -> None:
    """Forget a broker that is gone for good."""
    from barnabas.cli.work import brokers

    brokers.unregister(bootstrap, broker, as_json=as_json)
