"""`barnabas jobs restore`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.jobs.options import (
    ArchiveLocation,
    DryRun,
    Master,
    SourceOption,
    check_local,
    source_options,
)
from barnabas.cli.support.commands import command
from barnabas.cli.support.extras import check_spark_installed
from barnabas.cli.support.failures import wrong_use
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, key_value_pairs
from barnabas.cli.support.output import notice, print_json, print_table
from barnabas.cli.support.stores import StoreOption, store_settings
from barnabas.objects.location import parse_location
from barnabas.wire.records.compression import Compression

if TYPE_CHECKING:
    from pyspark_barnabas.jobs.restore.plan import Request

OffsetMapDirectory = Annotated[
    Path | None,
    typer.Option(
        "--map",
        metavar="DIRECTORY",
        help="Produce the records, to any Kafka, and write the map of old to new offsets to this directory.",
    ),
]
LastRun = Annotated[
    int | None,
    typer.Option(
        "--run", metavar="NUMBER", help="Restore the archive as it was after this run (default: the newest)."
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


@command(
    "restore",
    example="jobs restore ./archive --topic orders",
    apis=("ImportSegments",),
    needs=("alter cluster",),
)
def restore_topics(
    location: ArchiveLocation,
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
    run: LastRun = None,
    option: SourceOption = None,
    store_option: StoreOption = None,
    master: Master = "local[*]",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Restore topics of an archive with their original offsets, timestamps and headers.

    Requires a Barnabas broker whose log directories this machine and the Spark workers can write to; or --map.
    """
    if append and map_directory is None:
        raise wrong_use("--append requires --map: original offsets can only be kept in empty topics")
    check_local(map_directory, "--map")
    options = source_options(bootstrap, others=option)
    directory, settings = parse_location(location), store_settings(store_option)
    configs = dict(key_value_pairs(config, "--config"))
    check_spark_installed()
    from pyspark_barnabas.jobs.restore.plan import Request

    codec = _parse_compression(compression)
    request = Request(options, directory, tuple(topics or ()), name, configs, codec, run, settings)
    if map_directory is None:
        _restore(request, master=master, dry_run=dry_run, as_json=as_json)
    else:
        _restore_mapped(
            request, map_directory, append=append, master=master, dry_run=dry_run, as_json=as_json
        )


def _parse_compression(text: str) -> Compression:
    codecs = {codec.name.lower(): codec for codec in Compression}
    if text not in codecs:
        raise wrong_use(f"--compression {text}: must be one of {', '.join(codecs)}")
    return codecs[text]


def _restore(request: "Request", *, master: str, dry_run: bool, as_json: bool) -> None:
    """Restore topics with their offsets, and print the partitions."""
    from pyspark_barnabas.jobs.common.session import job_session
    from pyspark_barnabas.jobs.restore.job import restore

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
    request: "Request", map_directory: Path, *, append: bool, master: str, dry_run: bool, as_json: bool
) -> None:
    """Restore topics with new offsets, write the map of offsets, and print the partitions."""
    from pyspark_barnabas.jobs.common.session import job_session
    from pyspark_barnabas.jobs.restore.mapped import restore_mapped

    result = restore_mapped(None, request, map_directory, append=append, dry_run=True)
    if not dry_run:
        with job_session("restore", master) as spark:
            result = restore_mapped(spark, request, map_directory, append=append)
    if as_json:
        partitions = [part._asdict() for part in result.parts]
        print_json({"dry_run": dry_run, "created": list(result.created), "partitions": partitions})
        return
    columns = ("TOPIC", "PARTITION", "FROM", "TO", "RECORDS", "RESTORED TOPIC", "FIRST OFFSET")
    print_table(columns, result.parts, "Would be produced" if dry_run else "Produced and verified")
    notice(f"map of offsets {'would be written to' if dry_run else 'written to'} {map_directory}")
