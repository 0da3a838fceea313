"""`barnabas produce`: send lines as records."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, key_value_pairs


class CompressionType(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class Acks(StrEnum):
    """Value of the producer setting acks."""

    ALL = "all"
    LEADER = "1"
    NONE = "0"


@handle_errors
def produce(
    topic: Annotated[
        str,
        typer.Argument(help="Topic to write to.", show_default=False, autocompletion=candidates.topics),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", metavar="FILE", help="File to read lines from (default: stdin)."),
    ] = None,
    key_separator: Annotated[
        str | None,
        typer.Option(
            "--key-separator", "-K", help="Separator between key and value (default: lines have no key)."
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="KEY=VALUE", help="Header of every record; may be repeated."),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option(
            "--partition",
            "-p",
            min=0,
            help="Partition to write to (default: by key; without a key, spread over all partitions).",
        ),
    ] = None,
    compression: Annotated[
        CompressionType, typer.Option("--compression", "-z", help="Compression of batches.")
    ] = CompressionType.NONE,
    acks: Annotated[Acks, typer.Option("--acks", help="Acknowledgments required.")] = Acks.ALL,
    as_json: Json = False,
) -> None:
    """Send each line of stdin (or of a file) as a record."""
    headers = key_value_pairs(header, "--header")
    from barnabas.cli.work import produce as work

    options = work.produce_options(topic, key_separator, headers, partition, compression.value, acks.value)
    work.run(bootstrap, options, file, as_json=as_json)
