"""`barnabas jobs compact`."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.jobs.options import Master, Topics, source_options
from barnabas.cli.support.commands import command
from barnabas.cli.support.extras import check_spark_installed
from barnabas.cli.support.failures import FAILED
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import notice, print_json, print_table

if TYPE_CHECKING:
    from pyspark_barnabas.jobs.compact.job import Compacted


@command("compact", example="jobs compact --log-dir /disk1/kafka --dry-run")
def compact_topics(
    log_dirs: Annotated[
        list[Path],
        typer.Option(
            "--log-dir",
            "-d",
            metavar="DIRECTORY",
            help="Log directory of a broker, at the same path for the broker and every Spark worker; may be repeated.",
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    topics: Topics = None,
    wait_s: Annotated[
        float,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            help="Seconds to wait for the broker to import the compacted segments.",
        ),
    ] = 600.0,
    master: Master = "local[*]",
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Compact copies beside the logs and show the result, without changing the logs."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Compact topics whose cleanup.policy contains compact, and let their broker import the compacted segments.

    Exits with 1 if a log was not compacted.
    """
    options = source_options(bootstrap, topics, log_dirs)
    check_spark_installed()
    from pyspark_barnabas.jobs.common.session import job_session
    from pyspark_barnabas.jobs.compact.job import compact

    with job_session("compact", master) as spark:
        results = compact(spark, options, dry_run=dry_run, wait_s=wait_s)
    _show(results, dry_run=dry_run, as_json=as_json)
    if any(result.is_failed for result in results):
        raise typer.Exit(FAILED)


def _show(results: "Sequence[Compacted]", *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json({"dry_run": dry_run, "partitions": [asdict(result) for result in results]})
    elif not results:
        notice("no compacted topics found")
    else:
        columns = (
            "TOPIC",
            "PARTITION",
            "STATE",
            "FROM",
            "TO",
            "SEGMENTS",
            "",
            "BYTES",
            "",
            "RECORDS",
            "",
            "REASON",
        )
        print_table(columns, [tuple(asdict(result).values()) for result in results], "Before and after")
