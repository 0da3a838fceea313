"""`barnabas jobs`: an operator's jobs, run by Spark."""

from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli.failures import guarded
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, key_value_pairs

app = typer.Typer(help="Jobs on Spark: check what is stored, and archive it.", no_args_is_help=True)

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


@app.command("archive")
@guarded
def archive(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="The archive; made anew where it is not there.")
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    topics: Topics = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="KEY=VALUE", help="An option of the Spark source."),
    ] = None,
    master: Master = "local[*]",
    dry_run: Dry = False,
    as_json: Json = False,
) -> None:
    """Write what is new in topics to Parquet files, by topic and day; every record once, whatever happens."""
    from barnabas.cli.work import jobs

    jobs.archive_topics(
        {**jobs.source_options(bootstrap, topics, ()), **dict(key_value_pairs(option, "--option"))},
        directory,
        master=master,
        dry_run=dry_run,
        as_json=as_json,
    )
