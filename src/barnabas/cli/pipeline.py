"""`barnabas pipeline`: topics and files through SQL or Python into topics and tables, as a file declares."""

from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli.failures import handle_errors
from barnabas.cli.options import Json
from barnabas.cli.spark import check_spark_installed

app = typer.Typer(
    help="Run pipelines on Spark, see what they would do and how they are.", no_args_is_help=True
)

File = Annotated[
    Path, typer.Argument(metavar="PIPELINES.YML", help="What the pipelines are.", show_default=False)
]
Master = Annotated[str, typer.Option(help="Where Spark runs: local[N], or spark://HOST:7077.")]
Setting = Annotated[
    list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may repeat.")
]


@app.command("run")
@handle_errors
def run(
    file: File,
    master: Master = "local[*]",
    conf: Setting = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve Prometheus metrics on this port of 127.0.0.1.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run all flows, from where they ended; Ctrl-C or SIGTERM lets each finish the batch it is at.

    Ends with 1 when a flow failed; the others go on.
    """
    check_spark_installed()
    from barnabas.cli.work import pipeline

    pipeline.run(file, master, conf or [], metrics_port, as_json=as_json)


@app.command("plan")
@handle_errors
def plan(file: File, master: Master = "local[*]", conf: Setting = None, as_json: Json = False) -> None:
    """Show what a run would read, make and write, without running it; ends with 1 when a flow would fail."""
    check_spark_installed()
    from barnabas.cli.work import pipeline

    pipeline.plan(file, master, conf or [], as_json=as_json)


@app.command("status")
@handle_errors
def status(file: File, as_json: Json = False) -> None:
    """Show how each flow is, whether or not a run is going on."""
    check_spark_installed()
    from barnabas.cli.work import pipeline

    pipeline.status(file, as_json=as_json)
