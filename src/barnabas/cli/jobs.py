"""`barnabas jobs`: an operator's jobs, run by Spark."""

from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors, wrong_use
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, key_value_pairs

app = typer.Typer(
    help="Jobs on Spark: check what is stored, measure it, archive it, compact it, rekey it.",
    no_args_is_help=True,
)

Dry = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be read and written, and change nothing.")
]
Master = Annotated[str, typer.Option("--master", metavar="URL", help="Where Spark runs.")]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        "-t",
        metavar="TOPIC",
        help="A topic; else all but internal ones.",
        autocompletion=candidates.topics,
    ),
]


SourceOption = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="KEY=VALUE", help="An option of the Spark source."),
]
Was = Annotated[
    list[int] | None,
    typer.Option(
        "--was", metavar="COUNT", help="Partitions before it grew; if several times, the oldest first."
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
            help="A log directory; every worker must see it. Without, brokers are asked for the batches.",
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
        Path | None, typer.Option("--report", metavar="DIRECTORY", help="Write the report as Parquet.")
    ] = None,
    allow_gaps: Annotated[
        bool, typer.Option("--allow-gaps", help="Treat missing offsets as the result of compaction.")
    ] = False,
    master: Master = "local[*]",
    dry_run: Dry = False,
    as_json: Json = False,
) -> None:
    """Check every batch, in log directories or over the wire: CRCs, offsets, producers' sequences; indexes of files.

    Ends with 1 when something is damaged.
    """
    from barnabas.cli.work import jobs

    if not log_dirs and not bootstrap:
        raise wrong_use("nothing says what to check: give --log-dir, --bootstrap or both")
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
            help="A log directory of a broker; it and every worker must see it by this path.",
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    topics: Topics = None,
    wait_s: Annotated[
        float,
        typer.Option("--wait", metavar="SECONDS", help="How long to wait for the broker to take over."),
    ] = 600.0,
    master: Master = "local[*]",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Do the work beside the logs, and say what would be left.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compact topics whose cleanup.policy says so, and hand what is left to the broker that serves them.

    Ends with 1 when a log is not compacted then.
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
        typer.Option("--keys", min=0, help="How many heavy keys to find of each partition; 0 reads none."),
    ] = 5,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="DIRECTORY", help="Write tables as Parquet, and report.html with plots."
        ),
    ] = None,
    option: SourceOption = None,
    master: Master = "local[*]",
    dry_run: Dry = False,
    as_json: Json = False,
) -> None:
    """Measure topics: bytes and records by day, skew, heavy keys, hot partitions, what to move where."""
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
        typer.Option("--since", metavar="TIME", help="From 2026-01-31T09:30, 1767225600000 or 30d ago on."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="DIRECTORY", help="Write tables as Parquet, and report.html with plots."
        ),
    ] = None,
    option: SourceOption = None,
    master: Master = "local[*]",
    dry_run: Dry = False,
    as_json: Json = False,
) -> None:
    """Sum up the audit: who changes what, refusals, ACLs that nobody uses, what is not as it was."""
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
    source: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic that has grown.")],
    target: Annotated[str, typer.Argument(metavar="NEW", help="The topic to make.")],
    state: Annotated[
        Path,
        typer.Option(
            "--state", metavar="DIRECTORY", help="Where to keep how far the copy is; one for each copy."
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    was: Was = None,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", min=1, help="Of the new topic; else as many as the old one has."),
    ] = None,
    groups: Annotated[
        list[str] | None,
        typer.Option("--group", "-g", metavar="GROUP", help="Group to cut over (default: all of the topic)."),
    ] = None,
    cut_over: Annotated[
        bool, typer.Option("--cut-over", help="Copy the rest, and let the groups go on in the new topic.")
    ] = False,
    any_place: Annotated[
        bool,
        typer.Option("--any-place", help="Copy records, too, that Java's clients would have put elsewhere."),
    ] = False,
    step_records: Annotated[
        int, typer.Option("--step-records", min=1, help="About how many records to write in one transaction.")
    ] = 1_000_000,
    option: SourceOption = None,
    master: Master = "local[*]",
    dry_run: Dry = False,
    as_json: Json = False,
) -> None:
    """Copy a keyed topic that has grown into one where each key is in one partition, and cut consumers over.

    Run it while producers write, as often as you like; stop producers and consumers, and run it with --cut-over.
    """
    from barnabas.cli.work import job_rekey, jobs

    job_rekey.copy(
        {**jobs.connection_options(bootstrap), **dict(key_value_pairs(option, "--option"))},
        job_rekey.wanted(
            source,
            target,
            was=was,
            partitions=partitions,
            groups=groups,
            any_place=any_place,
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
        Path, typer.Argument(metavar="DIRECTORY", help="The archive; made anew where it is not there.")
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    topics: Topics = None,
    kind: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="Of a new archive: parquet, or delta.")
    ] = "",
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="KEY=VALUE", help="An option of the Spark source."),
    ] = None,
    master: Master = "local[*]",
    dry_run: Dry = False,
    as_json: Json = False,
) -> None:
    """Write what is new in topics to Parquet files or a Delta table, by topic and day.

    Every record is there once, whatever happens.
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
    directory: Annotated[Path, typer.Argument(metavar="DIRECTORY", help="The archive.")],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", metavar="TOPIC", help="A topic of the archive; else all."),
    ] = None,
    name: Annotated[str, typer.Option("--as", metavar="TOPIC", help="Another name for the one topic.")] = "",
    config: Annotated[
        list[str] | None,
        typer.Option("--config", "-c", metavar="KEY=VALUE", help="A configuration of topics that are made."),
    ] = None,
    compression: Annotated[
        str, typer.Option("--compression", metavar="CODEC", help="Of the restored records.")
    ] = "zstd",
    map_directory: Annotated[
        Path | None,
        typer.Option(
            "--map",
            metavar="DIRECTORY",
            help="Produce the records, on any Kafka, and write here which offset stands for which.",
        ),
    ] = None,
    append: Annotated[
        bool,
        typer.Option("--append", help="With --map: allow restoring into topics that already have records."),
    ] = False,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="KEY=VALUE", help="An option of the Spark source."),
    ] = None,
    master: Master = "local[*]",
    dry_run: Dry = False,
    as_json: Json = False,
) -> None:
    """Write topics of an archive back with the offsets, times and headers that they had.

    Needs a Barnabas broker whose log directories can be written to from here, and from Spark's workers; or --map.
    """
    from barnabas.cli.work import jobs

    if append and map_directory is None:
        raise wrong_use("--append needs --map: offsets can be kept only where there are none yet")

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
    map_directory: Annotated[
        Path, typer.Argument(metavar="MAP", help="The directory that restore --map has written.")
    ],
    groups: Annotated[
        list[str], typer.Option("--group", "-g", metavar="GROUP", help="A group without members.")
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    source: Annotated[
        str,
        typer.Option("--from", metavar="HOST:PORT", help="Where the groups have committed, if elsewhere."),
    ] = "",
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="KEY=VALUE", help="An option of the Spark source."),
    ] = None,
    dry_run: Dry = False,
    as_json: Json = False,
) -> None:
    """Let groups go on in restored topics where they were in the original ones."""
    from barnabas.cli.work import jobs

    given = dict(key_value_pairs(option, "--option"))
    jobs.translate_offsets(
        {**jobs.source_options(source or bootstrap, None, ()), **given},
        {**jobs.source_options(bootstrap, None, ()), **given},
        map_directory,
        groups,
        dry_run=dry_run,
        as_json=as_json,
    )
