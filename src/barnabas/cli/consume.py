"""`barnabas consume`: print records as lines."""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.base.clock import SystemClock
from barnabas.base.ids import TopicPartition
from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_cluster
from barnabas.cli.support.commands import command
from barnabas.cli.support.failures import wrong_use
from barnabas.cli.support.formats import FORMAT_DEFAULT, Render, compile_format
from barnabas.cli.support.formats import as_json as render_json
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.progress import progress
from barnabas.cli.support.registry import Registry, record_decoder
from barnabas.cli.support.times import parse_time_ms
from barnabas.client.admin.offsets import EARLIEST, LATEST, OffsetSpec, find_offsets
from barnabas.client.consumer.consumer import Consumer, Start
from barnabas.client.core.cluster import ClusterClient
from barnabas.wire.isolation import Isolation

if TYPE_CHECKING:
    from barnabas.registry.codecs.records import RecordDecoder

_FORMAT_HELP = (
    "Format as in kcat: %t topic, %p partition, %o offset, %k key, %s value, %h headers, %T timestamp, "
    "%K %S lengths, %% percent, \\n \\t \\xNN (default: %s\\n)."
)


@dataclass(frozen=True)
class ConsumeOptions:
    """Which records to print: empty `partitions` stands for all, a negative `start` counts from the end."""

    topic: str
    partitions: frozenset[int]
    start: Start
    count: int | None
    exit_at_end: bool
    committed: bool

    @property
    def isolation(self) -> Isolation:
        return Isolation.READ_COMMITTED if self.committed else Isolation.READ_UNCOMMITTED


@command(
    "consume",
    example="consume orders --from-beginning --exit-at-end",
    apis=("Fetch", "ListOffsets"),
    needs=("read topic",),
)
def consume(
    topic: Annotated[
        str,
        typer.Argument(help="Topic to read.", show_default=False, autocompletion=candidates.topics),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start at the beginning of each partition.")
    ] = False,
    offset: Annotated[
        int | None,
        typer.Option("--offset", "-o", help="Start at this offset; -10 starts ten records before the end."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Start at this time: 2026-01-31T09:30, 1767225600000 or 10m (10 minutes ago).",
        ),
    ] = None,
    partition: Annotated[
        list[int] | None,
        typer.Option("--partition", "-p", min=0, help="Partition to read (default: all); may be repeated."),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-c", min=1, help="Exit after this many records.")
    ] = None,
    exit_at_end: Annotated[
        bool,
        typer.Option(
            "--exit-at-end", "-e", help="Exit at the end of the log instead of waiting for new records."
        ),
    ] = False,
    committed: Annotated[
        bool,
        typer.Option("--committed", help="Read committed records only (isolation.level=read_committed)."),
    ] = False,
    registry: Registry = None,
    form: Annotated[str | None, typer.Option("--format", "-f", metavar="FORMAT", help=_FORMAT_HELP)] = None,
    as_json: Json = False,
) -> None:
    start = _start(from_beginning=from_beginning, offset=offset, since=since)
    render = _renderer(form, as_json=as_json)
    options = ConsumeOptions(topic, frozenset(partition or ()), start, count, exit_at_end, committed)
    decoder = None if registry is None else record_decoder(registry, as_json=as_json)
    with_cluster(bootstrap, lambda cluster: _print_records(cluster, options, render, decoder))


def _start(*, from_beginning: bool, offset: int | None, since: str | None) -> Start:
    """Return the start position; by default the end of the log.

    :raises CommandError: If more than one option is given.
    """
    options = [from_beginning, offset is not None, since is not None]
    if sum(options) > 1:
        raise wrong_use("--from-beginning, --offset and --since exclude each other", "use one of them")
    if offset is not None:
        return offset
    if since is not None:
        return OffsetSpec.at(parse_time_ms(since, SystemClock().wall_ms()))
    return EARLIEST if from_beginning else LATEST


def _renderer(form: str | None, *, as_json: bool) -> Render:
    """Return the function that formats records.

    :raises CommandError: If the format is not valid.
    """
    if form is not None and as_json:
        raise wrong_use("--format and --json exclude each other", "use one of them")
    return render_json if as_json else compile_format(form or FORMAT_DEFAULT)


async def _print_records(
    cluster: ClusterClient, options: ConsumeOptions, render: Render, decoder: "RecordDecoder | None"
) -> None:
    starts = await _starts(cluster, options)
    remaining_count = options.count
    async with Consumer(cluster, isolation=options.isolation) as consumer:
        await consumer.assign(starts, stop_at_end=options.exit_at_end)
        with progress(_total(consumer, options)) as advance:
            while not consumer.finished and remaining_count != 0:
                records = (await consumer.poll())[:remaining_count]
                if decoder is not None:  # it may ask the registry
                    records = await asyncio.to_thread(list, map(decoder.decode, records))
                sys.stdout.buffer.write(b"".join(map(render, records)))
                sys.stdout.buffer.flush()
                advance(len(records))
                remaining_count = None if remaining_count is None else remaining_count - len(records)


def _total(consumer: Consumer, options: ConsumeOptions) -> int:
    """Return an estimate from offsets of the records to print; 0 if unknown, or if stdout is a terminal."""
    if sys.stdout.isatty() or not options.exit_at_end:
        return 0
    remaining = sum(max(0, (position.end or 0) - position.offset) for position in consumer.positions.values())
    return remaining if options.count is None else min(remaining, options.count)


async def _starts(cluster: ClusterClient, options: ConsumeOptions) -> Mapping[TopicPartition, Start]:
    topic = await cluster.topic(options.topic)
    for index in options.partitions:
        topic.partition(index)
    tps = [
        TopicPartition(topic.name, partition.partition_index)
        for partition in topic.partitions
        if not options.partitions or partition.partition_index in options.partitions
    ]
    if isinstance(options.start, int) and options.start < 0:
        return await _before_end(cluster, tps, -options.start, options.isolation)
    return dict.fromkeys(tps, options.start)


async def _before_end(
    cluster: ClusterClient, tps: list[TopicPartition], count: int, isolation: Isolation
) -> dict[TopicPartition, Start]:
    first = await find_offsets(cluster, dict.fromkeys(tps, EARLIEST))
    last = await find_offsets(cluster, dict.fromkeys(tps, LATEST), isolation)
    return {tp: max(first[tp], last[tp] - count) for tp in tps}
