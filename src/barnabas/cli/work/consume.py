"""What `barnabas consume` does."""

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
    """Which records to print: no `partitions` means all, a negative `start` counts from the end."""

    topic: str
    partitions: frozenset[int]
    start: Start
    count: int | None
    exit_at_end: bool
    committed: bool

    @property
    def isolation(self) -> Isolation:
        """Whether records of open and aborted transactions are printed."""
        return Isolation.READ_COMMITTED if self.committed else Isolation.READ_UNCOMMITTED


def start(*, from_beginning: bool, offset: int | None, since: str | None) -> Start:
    """Where to begin.

    :raises Failure: When more than one place is named.
    """
    named = [from_beginning, offset is not None, since is not None]
    if sum(named) > 1:
        raise wrong_use("--from-beginning, --offset and --since each say where to begin", "give one of them")
    if offset is not None:
        return offset
    if since is not None:
        return OffsetSpec.at(parse_time_ms(since, SystemClock().wall_ms()))
    return EARLIEST if from_beginning else LATEST


def writer(form: str | None, *, as_json: bool) -> Render:
    """How a record is printed.

    :raises Failure: For a format that makes no sense.
    """
    if form is not None and as_json:
        raise wrong_use("--format and --json each say how to print", "give one of them")
    return render_json if as_json else compile_format(form or FORMAT_DEFAULT)


def run(bootstrap: str, wanted: ConsumeOptions, render: Render) -> None:
    """Print records until told to stop.

    :raises BrokenPipeError: When nobody reads them any more.
    """
    with_cluster(bootstrap, lambda cluster: _print_records(cluster, wanted, render))


async def _print_records(cluster: ClusterClient, wanted: ConsumeOptions, render: Render) -> None:
    starts = await _starts(cluster, wanted)
    left = wanted.count
    async with Consumer(cluster, isolation=wanted.isolation) as consumer:
        await consumer.assign(starts, stop_at_end=wanted.exit_at_end)
        with progress(_total(consumer, wanted), of_records=True) as advance:
            while not consumer.finished and left != 0:
                records = (await consumer.poll())[:left]
                sys.stdout.buffer.write(b"".join(map(render, records)))
                sys.stdout.buffer.flush()
                advance(len(records))
                left = None if left is None else left - len(records)


def _total(consumer: Consumer, wanted: ConsumeOptions) -> int:
    """How many records will be printed, as far as offsets tell; 0 where nobody knows, or where they are seen anyway."""
    if sys.stdout.isatty() or not wanted.exit_at_end:
        return 0
    ahead = sum(max(0, (each.end or 0) - each.offset) for each in consumer.positions.values())
    return ahead if wanted.count is None else min(ahead, wanted.count)


async def _starts(cluster: ClusterClient, wanted: ConsumeOptions) -> Mapping[TopicPartition, Start]:
    topic = await cluster.topic(wanted.topic)
    for index in wanted.partitions:
        topic.partition(index)
    places = [
        TopicPartition(topic.name, each.partition_index)
        for each in topic.partitions
        if not wanted.partitions or each.partition_index in wanted.partitions
    ]
    if isinstance(wanted.start, int) and wanted.start < 0:
        return await _before_end(cluster, places, -wanted.start, wanted.isolation)
    return dict.fromkeys(places, wanted.start)


async def _before_end(
    cluster: ClusterClient, places: list[TopicPartition], count: int, isolation: Isolation
) -> dict[TopicPartition, Start]:
    first = await find_offsets(cluster, dict.fromkeys(places, EARLIEST))
    last = await find_offsets(cluster, dict.fromkeys(places, LATEST), isolation)
    return {place: max(first[place], last[place] - count) for place in places}
