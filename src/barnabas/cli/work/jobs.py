"""What the commands of `barnabas jobs` do."""

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
    """The options of the source that these arguments stand for."""
    options = {"subscribe": ",".join(topics)} if topics else {"subscribePattern": ".*"}
    if bootstrap:
        options |= connection_options(bootstrap)
    if log_dirs:
        options |= {"transport": "files", "logDirs": ",".join(map(str, log_dirs))}
    return options


def connection_options(bootstrap: str) -> dict[str, str]:
    """Where the brokers are, and the login of `--command-config`.

    :raises OSError: Its file cannot be read.
    :raises ValueError: What it says cannot be.
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
    """Check log directories, or what brokers give, and show what was found."""
    check_spark_installed()
    from pyspark_barnabas.jobs.common.session import job_session
    from pyspark_barnabas.jobs.scrub.job import ScrubReport, plan_scrub, scrub, scrub_options

    wanted = plan_scrub(scrub_options(options), allow_gaps=allow_gaps)
    if dry_run or not wanted:
        _show_plan(
            [(*each.place, str(each.directory or ""), each.end, each.size_bytes) for each in wanted],
            report,
            as_json=as_json,
        )
        return
    with job_session("scrub", master) as spark:
        found: ScrubReport = scrub(spark, options, allow_gaps=allow_gaps)
    if report is not None:
        found.save(report)
    if as_json:
        partitions = [
            {**asdict(each), "findings": [f._asdict() for f in each.findings]} for each in found.partitions
        ]
        print_json({"findings_count": found.findings_count, "partitions": partitions})
    else:
        columns = ("TOPIC", "PARTITION", "SEGMENTS", "BATCHES", "RECORDS", "BYTES", "FROM", "TO", "FINDINGS")
        print_table(columns, [tuple(asdict(each).values())[:9] for each in found.partitions], "Checked")
        if found.findings:
            named = ("DAMAGE", "TOPIC", "PARTITION", "FROM", "TO", "FILE", "POSITION", "WHAT")
            print_table(named, found.findings, "Damaged")
    if found.findings_count:
        raise typer.Exit(FAILED)
    notice("all is well")


def _show_plan(rows: Sequence[Row], report: Path | None, *, as_json: bool) -> None:
    columns = ("topic", "partition", "directory", "end", "bytes")
    if as_json:
        writes = None if report is None else str(report)
        print_json({"reads": [dict(zip(columns, row, strict=True)) for row in rows], "writes": writes})
        return
    print_table([each.upper() for each in columns], rows, "Would be read")
    if report is not None:
        notice(f"a report would be written to {report}")


def compact_topics(
    options: Mapping[str, str], *, wait_s: float, master: str, dry_run: bool, as_json: bool
) -> None:
    """Compact what is dirty, and show what is left."""
    check_spark_installed()
    from pyspark_barnabas.jobs.common.session import job_session
    from pyspark_barnabas.jobs.compact.job import compact

    with job_session("compact", master) as spark:
        done = compact(spark, options, dry_run=dry_run, wait_s=wait_s)
    if as_json:
        print_json({"dry_run": dry_run, "partitions": [asdict(each) for each in done]})
    elif not done:
        notice("no topic of these is compacted")
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
            "WHY",
        )
        print_table(columns, [tuple(asdict(each).values()) for each in done], "Before and after")
    if any(each.is_failed for each in done):
        raise typer.Exit(FAILED)


def archive_topics(
    options: Mapping[str, str], directory: Path, *, kind: str, master: str, dry_run: bool, as_json: bool
) -> None:
    """Archive what is new, and show what that was."""
    check_spark_installed()
    from pyspark_barnabas.jobs.archive.job import archive
    from pyspark_barnabas.jobs.common.session import job_session

    done = archive(None, options, directory, kind=kind, dry_run=True)
    if done.ranges and not dry_run:
        with job_session("archive", master) as spark:
            done = archive(spark, options, directory, kind=kind)
    if as_json:
        sums = [each._asdict() for each in done.sums]
        ranges = [each._asdict() for each in done.ranges]
        print_json({"run": done.run, "dry_run": dry_run, "ranges": ranges, "sums": sums})
    elif not done.ranges:
        notice("there is nothing new")
    elif dry_run:
        print_table(
            ("TOPIC", "PARTITION", "FROM", "TO"), done.ranges, f"Would be run {done.run} in {directory}"
        )
    else:
        columns = ("TOPIC", "DATE", "PARTITION", "RECORDS", "CHECKSUM", "FIRST", "LAST")
        print_table(columns, done.sums, f"Run {done.run} in {directory}")


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
    """Restore topics, and show what that was."""
    check_spark_installed()
    from barnabas.wire.records.compression import Compression
    from pyspark_barnabas.jobs.common.session import job_session
    from pyspark_barnabas.jobs.restore.job import restore
    from pyspark_barnabas.jobs.restore.plan import Request

    codecs = {each.name.lower(): each for each in Compression}
    if compression not in codecs:
        raise wrong_use(f"--compression {compression}: must be one of {', '.join(codecs)}")
    request = Request(options, directory, tuple(topics), name, configs, codecs[compression])
    if map_directory is not None:
        from pyspark_barnabas.jobs.restore.mapped import restore_mapped

        run = partial(restore_mapped, request=request, directory=map_directory, append=append)
        _restore_mapped(run, map_directory, master=master, dry_run=dry_run, as_json=as_json)
        return
    done = restore(None, request, dry_run=True)
    if not dry_run and done.parts:
        with job_session("restore", master) as spark:
            done = restore(spark, request)
    if as_json:
        parts = [each._asdict() for each in done.parts]
        print_json({"dry_run": dry_run, "created": list(done.created), "partitions": parts})
        return
    columns = ("TOPIC", "PARTITION", "FROM", "TO", "RECORDS", "THERE BEFORE")
    print_table(columns, done.parts, "Would be restored" if dry_run else "Restored and verified")
    if done.created:
        notice(f"{'would be made' if dry_run else 'made'}: {', '.join(done.created)}")


def _restore_mapped(
    run: Callable[..., Any], map_directory: Path, *, master: str, dry_run: bool, as_json: bool
) -> None:
    from pyspark_barnabas.jobs.common.session import job_session

    done = run(None, dry_run=True)
    if not dry_run:
        with job_session("restore", master) as spark:
            done = run(spark)
    if as_json:
        parts = [each._asdict() for each in done.parts]
        print_json({"dry_run": dry_run, "created": list(done.created), "partitions": parts})
        return
    columns = ("TOPIC", "PARTITION", "FROM", "TO", "RECORDS", "RESTORED TOPIC", "BEGINS AT")
    print_table(columns, done.parts, "Would be produced" if dry_run else "Produced and verified")
    notice(f"the map of offsets {'would be' if dry_run else 'is'} in {map_directory}")


def translate_offsets(
    source: Mapping[str, str],
    target: Mapping[str, str],
    map_directory: Path,
    groups: Sequence[str],
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Commit translated offsets, and show them."""
    check_spark_installed()
    from pyspark_barnabas.jobs.restore.offset_map import translate_groups
    from pyspark_barnabas.source.options import batch_options

    found = translate_groups(
        batch_options(source).connection,
        batch_options(target).connection,
        map_directory,
        groups,
        dry_run=dry_run,
    )
    if as_json:
        print_json({"dry_run": dry_run, "offsets": [each._asdict() for each in found]})
        return
    columns = ("GROUP", "TOPIC", "PARTITION", "OFFSET", "RESTORED TOPIC", "RESTORED OFFSET")
    print_table(columns, found, "Would be committed" if dry_run else "Committed")
