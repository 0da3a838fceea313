"""Implementation of `barnabas consume`."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.base.clock import SystemClock
from barnabas.base.ids import TopicPartition
from barnabas.cli.failures import wrong_use
from barnabas.cli.work.calls import with_cluster
from barnabas.cli.work.formats import FORMAT_DEFAULT, Render, compile_format
from barnabas.cli.work.formats import as_json as render_json
from barnabas.cli.work.progress import progress
from barnabas.cli.work.times import parse_time_ms
from barnabas.client.admin.offsets import EARLIEST, LATEST, Isolation, OffsetSpec, find_offsets
from barnabas.client.consumer.consumer import Consumer, Start
from barnabas.client.core.cluster import ClusterClient


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


def start(*, from_beginning: bool, offset: int | None, since: str | None) -> Start:
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


def writer(form: str | None, *, as_json: bool) -> Render:
    """Return the function that formats records.

    :raises CommandError: If the format is not valid.
    """
    if form is not None and as_json:
        raise wrong_use("--format and --json exclude each other", "use one of them")
    return render_json if as_json else compile_format(form or FORMAT_DEFAULT)


def run(bootstrap: str, options: ConsumeOptions, render: Render) -> None:
    """Print records until the requested end, or without one until the process is interrupted.

    :raises BrokenPipeError: If the reader of stdout has closed the pipe.
    """
    with_cluster(bootstrap, lambda cluster: _print_records(cluster, options, render))


async def _print_records(cluster: ClusterClient, options: ConsumeOptions, render: Render) -> None:
    starts = await _starts(cluster, options)
    remaining_count = options.count
    async with Consumer(cluster, isolation=options.isolation) as consumer:
        await consumer.assign(starts, stop_at_end=options.exit_at_end)
        with progress(_total(consumer, options), of_records=True) as advance:
            while not consumer.finished and remaining_count != 0:
                records = (await consumer.poll())[:remaining_count]
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
