"""`barnabas jobs archive`."""

from typing import Annotated

import typer

from barnabas.cli.jobs.options import (
    ArchiveLocation,
    DryRun,
    Master,
    SourceOption,
    Topics,
    source_options,
)
from barnabas.cli.support.commands import command
from barnabas.cli.support.extras import check_spark_installed
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import notice, print_json, print_table
from barnabas.cli.support.stores import StoreOption, store_settings
from barnabas.objects.location import parse_location


@command("archive", example="jobs archive ./archive --topic orders")
def archive_topics(
    location: ArchiveLocation,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    topics: Topics = None,
    kind: Annotated[
        str,
        typer.Option(
            "--format", metavar="FORMAT", help="Format of a new archive: parquet or delta (default: parquet)."
        ),
    ] = "",
    option: SourceOption = None,
    store_option: StoreOption = None,
    master: Master = "local[*]",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Write new records of topics to Parquet files or a Delta table, by topic and day.

    Every record is archived exactly once, even if runs fail.
    """
    options = source_options(bootstrap, topics, others=option)
    directory, settings = parse_location(location), store_settings(store_option)
    check_spark_installed()
    from pyspark_barnabas.jobs.archive.job import archive
    from pyspark_barnabas.jobs.common.session import job_session

    result = archive(None, options, directory, kind=kind, settings=settings, dry_run=True)
    if result.ranges and not dry_run:
        with job_session("archive", master) as spark:
            result = archive(spark, options, directory, kind=kind, settings=settings)
    if as_json:
        sums = [row._asdict() for row in result.sums]
        ranges = [row._asdict() for row in result.ranges]
        print_json({"run": result.run, "dry_run": dry_run, "ranges": ranges, "sums": sums})
    elif not result.ranges:
        notice("no new records to archive")
    elif dry_run:
        print_table(
            ("TOPIC", "PARTITION", "FROM", "TO"), result.ranges, f"Would be run {result.run} in {directory}"
        )
    else:
        columns = ("TOPIC", "DATE", "PARTITION", "RECORDS", "CHECKSUM", "FIRST", "LAST")
        print_table(columns, result.sums, f"Run {result.run} in {directory}")
