"""`barnabas pipeline`: run pipelines from topics and files through SQL or Python to topics and tables."""

from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli.failures import handle_errors
from barnabas.cli.options import Json
from barnabas.cli.spark import check_spark_installed

app = typer.Typer(help="Run pipelines on Spark, show their plan and status.", no_args_is_help=True)

File = Annotated[
    Path, typer.Argument(metavar="PIPELINES.YML", help="File that declares the pipeline.", show_default=False)
]
Master = Annotated[str, typer.Option(help="Spark master: local[N], or spark://HOST:7077.")]
Setting = Annotated[
    list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="Spark setting; may be repeated.")
]


@app.command("run")
@handle_errors
def run(
    file: File,
    master: Master = "local[*]",
    conf: Setting = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port of 127.0.0.1 for Prometheus metrics (default: no metrics)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run all flows from where they stopped; on Ctrl-C or SIGTERM, each flow finishes its current batch.

    Exits with 1 if a flow failed; the other flows continue.
    """
    check_spark_installed()
    from barnabas.cli.work import pipeline

    pipeline.run(file, master, conf or [], metrics_port, as_json=as_json)


@app.command("plan")
@handle_errors
def plan(file: File, master: Master = "local[*]", conf: Setting = None, as_json: Json = False) -> None:
    """Show what a run would read, create and write, without running it; exits with 1 if a flow would fail."""
    check_spark_installed()
    from barnabas.cli.work import pipeline

    pipeline.plan(file, master, conf or [], as_json=as_json)


@app.command("status")
@handle_errors
def status(file: File, as_json: Json = False) -> None:
    """Show the status of each flow, whether or not the pipeline is running."""
    check_spark_installed()
    from barnabas.cli.work import pipeline

    pipeline.status(file, as_json=as_json)
