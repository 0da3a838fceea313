"""`barnabas jobs`: an operator's jobs, run by Spark."""

from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli.failures import guarded
from barnabas.cli.options import Json

app = typer.Typer(help="Jobs on Spark: check what is stored.", no_args_is_help=True)

Dry = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be read and written, and change nothing.")
]
Master = Annotated[str, typer.Option("--master", metavar="URL", help="Where Spark runs.")]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="TOPIC", help="A topic; else all but internal ones."),
]


@app.command("scrub")
@guarded
def scrub(
    log_dirs: Annotated[
        list[Path],
        typer.Option(
            "--log-dir", "-d", metavar="DIRECTORY", help="A log directory; every worker must see it."
        ),
    ],
    bootstrap: Annotated[
        str,
        typer.Option(
            "--bootstrap",
            "-b",
            metavar="HOST:PORT",
            help="Brokers that tell how far the logs reach; else the checkpoints do.",
        ),
    ] = "",
    topics: Topics = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="DIRECTORY", help="Write the report as Parquet.")
    ] = None,
    allow_gaps: Annotated[
        bool, typer.Option("--allow-gaps", help="Take missing offsets for the work of a cleaner.")
    ] = False,
    master: Master = "local[*]",
    dry_run: Dry = False,
    as_json: Json = False,
) -> None:
    """Check every batch of log directories: CRCs, offsets, producers' sequences, indexes.

    Ends with 1 when something is damaged.
    """
    from barnabas.cli.work import jobs

    jobs.scrub_files(
        jobs.source_options(bootstrap, topics, log_dirs),
        report=report,
        allow_gaps=allow_gaps,
        master=master,
        dry_run=dry_run,
        as_json=as_json,
    )
