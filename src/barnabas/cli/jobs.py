"""`barnabas jobs`: maintenance jobs that run on Spark."""

from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors, wrong_use
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, key_value_pairs

app = typer.Typer(
    help="Jobs on Spark: check, measure, archive, restore, compact and rekey topics.",
    no_args_is_help=True,
)

Dry = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be read and written, without changing anything.")
]
Master = Annotated[
    str, typer.Option("--master", metavar="URL", help="Spark master: local[N], or spark://HOST:7077.")
]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        "-t",
        metavar="TOPIC",
        help="Topic (default: all but internal topics); may be repeated.",
        autocompletion=candidates.topics,
    ),
]


SourceOption = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="KEY=VALUE", help="Option of the Spark source; may be repeated."),
]
PreviousPartitions = Annotated[
    list[int] | None,
    typer.Option(
        "--was",
        metavar="COUNT",
        help="Number of partitions before the topic grew; may be repeated, the oldest first.",
    ),
]
CopyState = Annotated[
    Path,
    typer.Option(
        "--state",
        metavar="DIRECTORY",
        help="Directory for the progress of the copy; use a separate one for each copy.",
    ),
]
AnyPartition = Annotated[
    bool,
    typer.Option(
        "--any-place",
        help="Also copy records in partitions that Java's default partitioner would not have chosen.",
    ),
]
CutOver = Annotated[
    bool,
    typer.Option(
        "--cut-over",
        help="Copy the remaining records, and commit the offsets of the groups in the new topic.",
    ),
]
OffsetMapDirectory = Annotated[
    Path | None,
    typer.Option(
        "--map",
        metavar="DIRECTORY",
        help="Produce the records, to any Kafka, and write the map of old to new offsets to this directory.",
    ),
]
NewTopicConfig = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        "-c",
        metavar="KEY=VALUE",
        help="Config of the topics that are created; may be repeated.",
    ),
]


@app.command("scrub")
@handle_errors
def scrub(
    log_dirs: Annotated[
        list[Path] | None,
        typer.Option(
            "--log-dir",
            "-d",
            metavar="DIRECTORY",
            help="Log directory that every Spark worker can read (default: fetch from the brokers).",
        ),
    ] = None,
    bootstrap: Annotated[
        str,
        typer.Option(
            "--bootstrap",
            "-b",
            metavar="HOST:PORT",
            help="Brokers to ask for the end offsets; without it, checkpoint files in the log directories are used.",
        ),
    ] = "",
    topics: Topics = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIRECTORY", help="Directory to write the report to, as Parquet."),
    ] = None,
    allow_gaps: Annotated[
        bool, typer.Option("--allow-gaps", help="Treat missing offsets as the result of compaction.")
    ] = False,
    master: Master = "local[*]",
    dry_run: Dry = False,
    as_json: Json = False,
) -> None:
    """Check every batch, in log directories or over the network: CRCs, offsets, producer sequences; indexes of files.

    Exits with 1 if anything is damaged.
    """
    from barnabas.cli.work import jobs

    if not log_dirs and not bootstrap:
        raise wrong_use("nothing to check: specify --log-dir, --bootstrap or both")
    jobs.scrub_logs(
        jobs.source_options(bootstrap, topics, log_dirs or ()),
        report=report,
        allow_gaps=allow_gaps,
        master=master,
        dry_run=dry_run,
        as_json=as_json,
    )


@app.command("compact")
@handle_errors
def compact(
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
    from barnabas.cli.work import jobs

    jobs.compact_topics(
        jobs.source_options(bootstrap, topics, log_dirs),
        wait_s=wait_s,
        master=master,
        dry_run=dry_run,
        as_json=as_json,
    )


@app.command("usage")
@handle_errors
def usage(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    topics: Topics = None,
    keys: Annotated[
        int,
        typer.Option("--keys", min=0, help="Number of hot keys to find in each partition; 0 reads no keys."),
    ] = 5,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="DIRECTORY",
            help="Directory to write tables (Parquet) and report.html with plots to.",
        ),
    ] = None,
    option: SourceOption = None,
    master: Master = "local[*]",
    dry_run: Dry = False,
    as_json: Json = False,
) -> None:
    """Measure topics: bytes and records by day, skew, hot keys, hot partitions, and suggested moves."""
    from barnabas.cli.work import job_usage, jobs

    job_usage.measure(
        {**jobs.source_options(bootstrap, topics, ()), **dict(key_value_pairs(option, "--option"))},
        keys_count=keys,
        report=report,
        master=master,
        dry_run=dry_run,
        as_json=as_json,
    )


@app.command("audit")
@handle_errors
def audit(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Only events since this time: 2026-01-31T09:30, 1767225600000 or 30d (30 days ago).",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="DIRECTORY",
            help="Directory to write tables (Parquet) and report.html with plots to.",
        ),
    ] = None,
    option: SourceOption = None,
    master: Master = "local[*]",
    dry_run: Dry = False,
    as_json: Json = False,
) -> None:
    """Summarize the audit log: changes by principal, refusals, unused ACLs, settings that differ from before."""
    from barnabas.cli.work import job_audit, jobs

    job_audit.analyse(
        {**jobs.connection_options(bootstrap), **dict(key_value_pairs(option, "--option"))},
        since=since,
        report=report,
        master=master,
        dry_run=dry_run,
        as_json=as_json,
    )


@app.command("rekey")
@handle_errors
def rekey(
    source: Annotated[
        str, typer.Argument(metavar="TOPIC", help="Topic whose number of partitions has grown.")
    ],
    target: Annotated[str, typer.Argument(metavar="NEW", help="New topic to create.")],
    state: CopyState,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    was: PreviousPartitions = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            min=1,
            help="Number of partitions of the new topic (default: as many as the old one).",
        ),
    ] = None,
    groups: Annotated[
        list[str] | None,
        typer.Option("--group", "-g", metavar="GROUP", help="Group to cut over (default: all of the topic)."),
    ] = None,
    cut_over: CutOver = False,
    any_partition: AnyPartition = False,
    step_records: Annotated[
        int, typer.Option("--step-records", min=1, help="Approximate number of records per transaction.")
    ] = 1_000_000,
    option: SourceOption = None,
    master: Master = "local[*]",
    dry_run: Dry = False,
    as_json: Json = False,
) -> None:
    """Copy a keyed topic that has grown into a new one where each key is in one partition, and switch consumers over.

    Run it as often as you like while producers write; then stop producers and consumers, and run it with --cut-over.
    """
    from barnabas.cli.work import job_rekey, jobs

    job_rekey.copy(
        {**jobs.connection_options(bootstrap), **dict(key_value_pairs(option, "--option"))},
        job_rekey.rekey_request(
            source,
            target,
            was=was,
            partitions=partitions,
            groups=groups,
            any_partition=any_partition,
            step_records=step_records,
        ),
        state,
        cut_over=cut_over,
        master=master,
        dry_run=dry_run,
        as_json=as_json,
    )


@app.command("archive")
@handle_errors
def archive(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="Directory of the archive; created if missing.")
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    topics: Topics = None,
    kind: Annotated[
        str,
        typer.Option(
            "--format", metavar="FORMAT", help="Format of a new archive: parquet or delta (default: parquet)."
        ),
    ] = "",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", "-o", metavar="KEY=VALUE", help="Option of the Spark source; may be repeated."
        ),
    ] = None,
    master: Master = "local[*]",
    dry_run: Dry = False,
    as_json: Json = False,
) -> None:
    """Write new records of topics to Parquet files or a Delta table, by topic and day.

    Every record is archived exactly once, even if runs fail.
    """
    from barnabas.cli.work import jobs

    jobs.archive_topics(
        {**jobs.source_options(bootstrap, topics, ()), **dict(key_value_pairs(option, "--option"))},
        directory,
        kind=kind,
        master=master,
        dry_run=dry_run,
        as_json=as_json,
    )


@app.command("restore")
@handle_errors
def restore(
    directory: Annotated[Path, typer.Argument(metavar="DIRECTORY", help="Directory of the archive.")],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            "-t",
            metavar="TOPIC",
            help="Topic to restore (default: all in the archive); may be repeated.",
        ),
    ] = None,
    name: Annotated[
        str, typer.Option("--as", metavar="TOPIC", help="New name, if one topic is restored.")
    ] = "",
    config: NewTopicConfig = None,
    compression: Annotated[
        str, typer.Option("--compression", metavar="CODEC", help="Compression of the restored records.")
    ] = "zstd",
    map_directory: OffsetMapDirectory = None,
    append: Annotated[
        bool,
        typer.Option("--append", help="With --map: allow restoring into topics that already have records."),
    ] = False,
    option: SourceOption = None,
    master: Master = "local[*]",
    dry_run: Dry = False,
    as_json: Json = False,
) -> None:
    """Restore topics of an archive with their original offsets, timestamps and headers.

    Requires a Barnabas broker whose log directories this machine and the Spark workers can write to; or --map.
    """
    from barnabas.cli.work import jobs

    if append and map_directory is None:
        raise wrong_use("--append requires --map: original offsets can only be kept in empty topics")

    jobs.restore_topics(
        {**jobs.source_options(bootstrap, None, ()), **dict(key_value_pairs(option, "--option"))},
        directory,
        topics=topics or (),
        name=name,
        configs=dict(key_value_pairs(config, "--config")),
        compression=compression,
        map_directory=map_directory,
        append=append,
        master=master,
        dry_run=dry_run,
        as_json=as_json,
    )


@app.command("translate-offsets")
@handle_errors
def translate_offsets(
    map_directory: Annotated[Path, typer.Argument(metavar="MAP", help="Directory written by restore --map.")],
    groups: Annotated[
        list[str],
        typer.Option("--group", "-g", metavar="GROUP", help="Group without members; may be repeated."),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="HOST:PORT",
            help="Cluster where the groups have committed (default: the one at --bootstrap).",
        ),
    ] = "",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", "-o", metavar="KEY=VALUE", help="Option of the Spark source; may be repeated."
        ),
    ] = None,
    dry_run: Dry = False,
    as_json: Json = False,
) -> None:
    """Commit for groups the offsets in restored topics that correspond to their offsets in the original topics."""
    from barnabas.cli.work import jobs

    options = dict(key_value_pairs(option, "--option"))
    jobs.translate_offsets(
        {**jobs.source_options(source or bootstrap, None, ()), **options},
        {**jobs.source_options(bootstrap, None, ()), **options},
        map_directory,
        groups,
        dry_run=dry_run,
        as_json=as_json,
    )
