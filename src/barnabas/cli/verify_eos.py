"""`barnabas verify-eos`: produce numbered inputs for an application, and check that it outputs each exactly once."""

from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(
    help="Test the exactly-once semantics of an application that reads, transforms and writes in transactions.",
    no_args_is_help=True,
)


@app.command("produce")
@handle_errors
def produce_inputs(
    topic: Annotated[
        str,
        typer.Argument(
            help="Topic to write inputs to.", show_default=False, autocompletion=candidates.topics
        ),
    ],
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Number of inputs.", show_default=False)],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    rate: Annotated[
        int | None, typer.Option("--rate", min=1, help="Inputs per second (default: as fast as possible).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Send numbered inputs (PARTITION-SEQUENCE) to all partitions in turn.

    Brokers may be killed meanwhile: inputs that were not stored are retried for ten minutes.
    """
    from barnabas.cli.work import verify_eos as work

    work.produce(bootstrap, topic, count, rate, as_json=as_json)


@app.command("check")
@handle_errors
def check_outputs(
    inputs: Annotated[
        str,
        typer.Argument(help="Topic of the inputs.", show_default=False, autocompletion=candidates.topics),
    ],
    outputs: Annotated[
        str,
        typer.Argument(help="Topic of the outputs.", show_default=False, autocompletion=candidates.topics),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    wait_s: Annotated[
        int,
        typer.Option(
            "--wait", metavar="SECONDS", min=0, help="Seconds to wait until every input has an output."
        ),
    ] = 0,
    as_json: Json = False,
) -> None:
    """Find lost, duplicated, reordered, torn, aborted or hidden outputs; exits with 1 if there are any.

    An output begins with the number of its input. "0-17 tx9/10" is one of ten outputs of the transaction tx9; without
    the word tx9/10, torn transactions cannot be detected. The application must have stopped writing when the wait ends.
    """
    from barnabas.cli.work import verify_eos as work

    work.check(bootstrap, inputs, outputs, wait_s, as_json=as_json)
