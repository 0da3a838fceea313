"""`barnabas verify-eos`: numbered inputs for an application, and whether its output holds each exactly once."""

from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(
    help="Put an application that reads, transforms and writes in transactions to the test.",
    no_args_is_help=True,
)


@app.command("produce")
@handle_errors
def produce_inputs(
    topic: Annotated[
        str, typer.Argument(help="Where the inputs go.", show_default=False, autocompletion=candidates.topics)
    ],
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many inputs.", show_default=False)],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    rate: Annotated[
        int | None, typer.Option("--rate", min=1, help="Inputs per second; else as fast as can be.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Send numbered inputs, PARTITION-SEQUENCE, to all partitions in turn.

    Brokers may be killed meanwhile: what was not stored is sent again for ten minutes.
    """
    from barnabas.cli.work import verify_eos as work

    work.produce(bootstrap, topic, count, rate, as_json=as_json)


@app.command("check")
@handle_errors
def check_outputs(
    inputs: Annotated[
        str,
        typer.Argument(help="The topic of the inputs.", show_default=False, autocompletion=candidates.topics),
    ],
    outputs: Annotated[
        str,
        typer.Argument(
            help="The topic of the outputs.", show_default=False, autocompletion=candidates.topics
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    wait_s: Annotated[
        int, typer.Option("--wait", metavar="SECONDS", min=0, help="How long outputs may still be coming.")
    ] = 0,
    as_json: Json = False,
) -> None:
    """Find what is lost, duplicated, reordered, torn, aborted or hidden; exit code 1 when anything is.

    An output begins with the number of its input. "0-17 tx9/10" is one of ten outputs of the transaction tx9; without
    that word, torn transactions cannot be told. Outputs should have ceased to come when the waiting is over.
    """
    from barnabas.cli.work import verify_eos as work

    work.check(bootstrap, inputs, outputs, wait_s, as_json=as_json)
