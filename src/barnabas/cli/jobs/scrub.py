"""`barnabas jobs scrub`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.jobs.options import (
    DryRun,
    Master,
    Topics,
    check_local,
    source_options,
)
from barnabas.cli.support.commands import command
from barnabas.cli.support.extras import check_spark_installed
from barnabas.cli.support.failures import FAILED, wrong_use
from barnabas.cli.support.options import Json
from barnabas.cli.support.output import Row, notice, print_json, print_table
from barnabas.cli.support.stores import StoreOption, store_settings
from barnabas.objects.location import parse_location
from barnabas.objects.settings import StoreSettings

if TYPE_CHECKING:
    from pyspark_barnabas.jobs.scrub.job import ScrubReport


LogDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--log-dir",
        "-d",
        metavar="DIRECTORY",
        help="Log directory that every Spark worker can read (default: fetch from the brokers).",
    ),
]
EndOffsetBrokers = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        metavar="HOST:PORT",
        help="Brokers to ask for the end offsets; without it, checkpoint files in the log directories are used.",
    ),
]
CheckedArchive = Annotated[
    str,
    typer.Option(
        "--archive",
        metavar="LOCATION",
        help="Check an archive instead: a directory, or a URL in an object store (s3://, gs:// or az://).",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option("--report", metavar="DIRECTORY", help="Directory to write the report to, as Parquet."),
]


@command("scrub", example="jobs scrub --log-dir /disk1/kafka --report report")
def scrub_logs(
    log_dirs: LogDirs = None,
    bootstrap: EndOffsetBrokers = "",
    archive: CheckedArchive = "",
    topics: Topics = None,
    report: Report = None,
    allow_gaps: Annotated[
        bool, typer.Option("--allow-gaps", help="Treat missing offsets as the result of compaction.")
    ] = False,
    store_option: StoreOption = None,
    master: Master = "local[*]",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Check every batch, in log directories or over the network: CRCs, offsets, producer sequences; indexes of files.

    With --archive, check that an archive still has what its manifests say.

    Exits with 1 if anything is damaged.
    """
    for directory in log_dirs or ():
        check_local(directory, "--log-dir")
    check_local(report, "--report")
    if archive:
        if log_dirs or bootstrap:
            raise wrong_use(
                "--archive excludes --log-dir and --bootstrap: check the archive in a run of its own"
            )
        settings = store_settings(store_option)
        _scrub_archive(
            archive, topics or [], settings, report, master=master, dry_run=dry_run, as_json=as_json
        )
        return
    if not log_dirs and not bootstrap:
        raise wrong_use("nothing to check: specify --log-dir, --bootstrap or both, or --archive")
    options = source_options(bootstrap, topics, log_dirs or ())
    _scrub_logs(options, report, allow_gaps=allow_gaps, master=master, dry_run=dry_run, as_json=as_json)


def _scrub_logs(
    options: Mapping[str, str],
    report: Path | None,
    *,
    allow_gaps: bool,
    master: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Check logs, and print the damage.

    :raises Exit: If there is any.
    """
    check_spark_installed()
    from pyspark_barnabas.jobs.common.session import job_session
    from pyspark_barnabas.jobs.scrub.job import plan_scrub, scrub, scrub_options

    logs = plan_scrub(scrub_options(options), allow_gaps=allow_gaps)
    if dry_run or not logs:
        _show_plan(
            [(*log.tp, str(log.directory or ""), log.end, log.size_bytes) for log in logs],
            report,
            as_json=as_json,
        )
        return
    with job_session("scrub", master) as spark:
        result = scrub(spark, options, allow_gaps=allow_gaps)
    if report is not None:
        result.save(report)
    _show(result, as_json=as_json)
    if result.findings_count:
        raise typer.Exit(FAILED)
    notice("no damage found")


def _scrub_archive(
    archive: str,
    topics: Sequence[str],
    settings: StoreSettings,
    report: Path | None,
    *,
    master: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Check an archive, and print the damage.

    :raises Exit: If there is any.
    """
    location = parse_location(archive)
    check_spark_installed()
    from pyspark_barnabas.jobs.common.session import job_session
    from pyspark_barnabas.jobs.scrub.archives import scrub_archive

    result = scrub_archive(None, location, topics, settings=settings, dry_run=True)
    if not dry_run:
        with job_session("scrub", master) as spark:
            result = scrub_archive(spark, location, topics, settings=settings)
        if report is not None:
            result.save(report)
    if as_json:
        findings = [finding._asdict() for finding in result.findings]
        print_json({**vars(result), "findings": findings})
    else:
        counts = (result.runs_count, result.files_count, result.size_bytes, result.records_count)
        print_table(
            ("RUNS", "FILES", "BYTES", "RECORDS"), [counts], "Would be read" if dry_run else "Checked"
        )
        if result.findings:
            print_table(("DAMAGE", "TOPIC", "DATE", "FILE", "DETAILS"), result.findings, "Damaged")
    if result.findings:
        raise typer.Exit(FAILED)
    if not dry_run:
        notice("no damage found")


def _show(result: "ScrubReport", *, as_json: bool) -> None:
    if as_json:
        partitions = [
            {**asdict(partition), "findings": [finding._asdict() for finding in partition.findings]}
            for partition in result.partitions
        ]
        print_json({"findings_count": result.findings_count, "partitions": partitions})
    else:
        columns = ("TOPIC", "PARTITION", "SEGMENTS", "BATCHES", "RECORDS", "BYTES", "FROM", "TO", "FINDINGS")
        print_table(
            columns, [tuple(asdict(partition).values())[:9] for partition in result.partitions], "Checked"
        )
        if result.findings:
            print_table(
                ("DAMAGE", "TOPIC", "PARTITION", "FROM", "TO", "FILE", "POSITION", "DETAILS"),
                result.findings,
                "Damaged",
            )


def _show_plan(rows: Sequence[Row], report: Path | None, *, as_json: bool) -> None:
    columns = ("topic", "partition", "directory", "end", "bytes")
    if as_json:
        writes = None if report is None else str(report)
        print_json({"reads": [dict(zip(columns, row, strict=True)) for row in rows], "writes": writes})
        return
    print_table([column.upper() for column in columns], rows, "Would be read")
    if report is not None:
        notice(f"a report would be written to {report}")
