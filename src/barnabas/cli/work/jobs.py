"""Implementation of `barnabas jobs`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import typer

from barnabas.cli.failures import FAILED, wrong_use
from barnabas.cli.login import login_properties
from barnabas.cli.output import Row, notice, print_json, print_table
from barnabas.cli.spark import check_spark_installed


def source_options(bootstrap: str, topics: Sequence[str] | None, log_dirs: Sequence[Path]) -> dict[str, str]:
    """Return the options of the Spark source for these arguments."""
    options = {"subscribe": ",".join(topics)} if topics else {"subscribePattern": ".*"}
    if bootstrap:
        options |= connection_options(bootstrap)
    if log_dirs:
        options |= {"transport": "files", "logDirs": ",".join(map(str, log_dirs))}
    return options


def connection_options(bootstrap: str) -> dict[str, str]:
    """Return the options for the brokers and the login of `--command-config`.

    :raises OSError: If its file cannot be read.
    :raises ValueError: If a property in it is not valid.
    """
    properties = {"bootstrap.servers": bootstrap, **login_properties()}
    return {f"kafka.{name}": value for name, value in properties.items()}


def scrub_logs(
    options: Mapping[str, str],
    *,
    report: Path | None,
    allow_gaps: bool,
    master: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Check the batches in log directories, or those fetched from brokers, and print the findings."""
    check_spark_installed()
    from pyspark_barnabas.jobs.common.session import job_session
    from pyspark_barnabas.jobs.scrub.job import ScrubReport, plan_scrub, scrub, scrub_options

    logs = plan_scrub(scrub_options(options), allow_gaps=allow_gaps)
    if dry_run or not logs:
        _show_plan(
            [(*log.tp, str(log.directory or ""), log.end, log.size_bytes) for log in logs],
            report,
            as_json=as_json,
        )
        return
    with job_session("scrub", master) as spark:
        result: ScrubReport = scrub(spark, options, allow_gaps=allow_gaps)
    if report is not None:
        result.save(report)
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
    if result.findings_count:
        raise typer.Exit(FAILED)
    notice("no damage found")


def _show_plan(rows: Sequence[Row], report: Path | None, *, as_json: bool) -> None:
    columns = ("topic", "partition", "directory", "end", "bytes")
    if as_json:
        writes = None if report is None else str(report)
        print_json({"reads": [dict(zip(columns, row, strict=True)) for row in rows], "writes": writes})
        return
    print_table([column.upper() for column in columns], rows, "Would be read")
    if report is not None:
        notice(f"a report would be written to {report}")


def compact_topics(
    options: Mapping[str, str], *, wait_s: float, master: str, dry_run: bool, as_json: bool
) -> None:
    """Compact logs that need it, and print their sizes before and after."""
    check_spark_installed()
    from pyspark_barnabas.jobs.common.session import job_session
    from pyspark_barnabas.jobs.compact.job import compact

    with job_session("compact", master) as spark:
        results = compact(spark, options, dry_run=dry_run, wait_s=wait_s)
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
    if any(result.is_failed for result in results):
        raise typer.Exit(FAILED)


def archive_topics(
    options: Mapping[str, str], directory: Path, *, kind: str, master: str, dry_run: bool, as_json: bool
) -> None:
    """Archive new records, and print their offset ranges."""
    check_spark_installed()
    from pyspark_barnabas.jobs.archive.job import archive
    from pyspark_barnabas.jobs.common.session import job_session

    result = archive(None, options, directory, kind=kind, dry_run=True)
    if result.ranges and not dry_run:
        with job_session("archive", master) as spark:
            result = archive(spark, options, directory, kind=kind)
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


def restore_topics(
    options: Mapping[str, str],
    directory: Path,
    *,
    topics: Sequence[str],
    name: str,
    configs: Mapping[str, str],
    compression: str,
    map_directory: Path | None,
    append: bool,
    master: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Restore topics, and print the restored partitions."""
    check_spark_installed()
    from barnabas.wire.records.compression import Compression
    from pyspark_barnabas.jobs.common.session import job_session
    from pyspark_barnabas.jobs.restore.job import restore
    from pyspark_barnabas.jobs.restore.plan import Request

    codecs = {codec.name.lower(): codec for codec in Compression}
    if compression not in codecs:
        raise wrong_use(f"--compression {compression}: must be one of {', '.join(codecs)}")
    request = Request(options, directory, tuple(topics), name, configs, codecs[compression])
    if map_directory is not None:
        from pyspark_barnabas.jobs.restore.mapped import restore_mapped

        run = partial(restore_mapped, request=request, directory=map_directory, append=append)
        _restore_mapped(run, map_directory, master=master, dry_run=dry_run, as_json=as_json)
        return
    result = restore(None, request, dry_run=True)
    if not dry_run and result.parts:
        with job_session("restore", master) as spark:
            result = restore(spark, request)
    if as_json:
        partitions = [part._asdict() for part in result.parts]
        print_json({"dry_run": dry_run, "created": list(result.created), "partitions": partitions})
        return
    columns = ("TOPIC", "PARTITION", "FROM", "TO", "RECORDS", "EXISTING")
    print_table(columns, result.parts, "Would be restored" if dry_run else "Restored and verified")
    if result.created:
        notice(f"{'would be created' if dry_run else 'created'}: {', '.join(result.created)}")


def _restore_mapped(
    run: Callable[..., Any], map_directory: Path, *, master: str, dry_run: bool, as_json: bool
) -> None:
    from pyspark_barnabas.jobs.common.session import job_session

    result = run(None, dry_run=True)
    if not dry_run:
        with job_session("restore", master) as spark:
            result = run(spark)
    if as_json:
        partitions = [part._asdict() for part in result.parts]
        print_json({"dry_run": dry_run, "created": list(result.created), "partitions": partitions})
        return
    columns = ("TOPIC", "PARTITION", "FROM", "TO", "RECORDS", "RESTORED TOPIC", "FIRST OFFSET")
    print_table(columns, result.parts, "Would be produced" if dry_run else "Produced and verified")
    notice(f"map of offsets {'would be written to' if dry_run else 'written to'} {map_directory}")


def translate_offsets(
    source: Mapping[str, str],
    target: Mapping[str, str],
    map_directory: Path,
    groups: Sequence[str],
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Commit translated offsets, and print them."""
    check_spark_installed()
    from pyspark_barnabas.jobs.restore.offset_map import translate_groups
    from pyspark_barnabas.source.options import batch_options

    offsets = translate_groups(
        batch_options(source).connection,
        batch_options(target).connection,
        map_directory,
        groups,
        dry_run=dry_run,
    )
    if as_json:
        print_json({"dry_run": dry_run, "offsets": [row._asdict() for row in offsets]})
        return
    columns = ("GROUP", "TOPIC", "PARTITION", "OFFSET", "RESTORED TOPIC", "RESTORED OFFSET")
    print_table(columns, offsets, "Would be committed" if dry_run else "Committed")
