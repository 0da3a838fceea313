"""`barnabas produce`: lines to records."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, key_value_pairs


class CompressionType(StrEnum):
    """What records are compressed with."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class Acks(StrEnum):
    """Who has a record before it counts as delivered."""

    ALL = "all"
    LEADER = "1"
    NOBODY = "0"


@handle_errors
def produce(
    topic: Annotated[
        str,
        typer.Argument(help="Where the records go.", show_default=False, autocompletion=candidates.topics),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read lines from here, not stdin.")
    ] = None,
    key_separator: Annotated[
        str | None, typer.Option("--key-separator", "-K", help="What stands between key and value.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", metavar="KEY=VALUE", help="For every record.")
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, help="Else by key, or spread.")
    ] = None,
    compression: Annotated[
        CompressionType, typer.Option("--compression", "-z", help="What batches are compressed with.")
    ] = CompressionType.NONE,
    acks: Annotated[Acks, typer.Option("--acks", help="Acknowledgments required: 0, 1 or all.")] = Acks.ALL,
    as_json: Json = False,
) -> None:
    """Send each line of stdin (or of a file) as a record."""
    headers = key_value_pairs(header, "--header")
    from barnabas.cli.work import produce as work

    plan = work.plan(topic, key_separator, headers, partition, compression.value, acks.value)
    work.run(bootstrap, plan, file, as_json=as_json)
