"""What `barnabas produce` does."""

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.cli.output import notice, print_json
from barnabas.cli.work.calls import with_cluster
from barnabas.cli.work.lines import read_lines
from barnabas.cli.work.progress import progress
from barnabas.client.accumulator import Delivery
from barnabas.client.admin import Admin
from barnabas.client.cluster import Cluster
from barnabas.client.producer import Producer
from barnabas.config.resources import Resource, ResourceKind
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import RecordHeaders

_ACKS = {"all": -1, "1": 1, "0": 0}
#: Lines wait this long for company.
_LINGER_MS = 5
#: A topic that a broker may be making is waited for this long.
_TOPIC_TIMEOUT_MS = 2_000
_AUTO_CREATE = "auto.create.topics.enable"


@dataclass(frozen=True)
class Plan:
    """What becomes of a line."""

    topic: str
    key_separator: bytes | None
    headers: RecordHeaders
    partition: int | None
    compression: Compression
    acks: int

    def key_and_value(self, line: bytes) -> tuple[bytes | None, bytes]:
        """A line without separator is all value."""
        if self.key_separator and self.key_separator in line:
            key, _, value = line.partition(self.key_separator)
            return key, value
        return None, line


class Range(NamedTuple):
    """What went to one partition; offsets are -1 when nobody was asked (acks=0)."""

    records: int
    first_offset: int
    last_offset: int


@dataclass
class Tally:
    """What was delivered so far, and the first failure."""

    partitions: dict[int, Range] = field(default_factory=dict)
    failure: BaseException | None = None

    @property
    def records(self) -> int:
        """How many records were delivered."""
        return sum(each.records for each in self.partitions.values())

    def count(self, delivery: "asyncio.Future[Delivery]") -> None:
        """Take note of one settled record."""
        if delivery.cancelled():
            return
        error = delivery.exception()
        if error is not None:
            self.failure = self.failure or error
            return
        place, offset, _ = delivery.result()
        before = self.partitions.get(place.partition, Range(0, offset, offset))
        self.partitions[place.partition] = Range(before.records + 1, before.first_offset, offset)

    def check(self) -> None:
        """Raise the first failure."""
        if self.failure is not None:
            raise self.failure


def plan(
    topic: str,
    key_separator: str | None,
    headers: Sequence[tuple[str, str]],
    partition: int | None,
    compression: str,
    acks: str,
) -> Plan:
    """From the words of the command line."""
    separator = None if key_separator is None else key_separator.encode()
    encoded = tuple((name, value.encode()) for name, value in headers)
    return Plan(topic, separator, encoded, partition, Compression[compression.upper()], _ACKS[acks])


def run(bootstrap: str, plan: Plan, file: Path | None, *, as_json: bool) -> None:
    """Send every line, then say what became of them.

    :raises KafkaError: Why the first record that failed was refused.
    """
    descriptor = sys.stdin.fileno() if file is None else os.open(file, os.O_RDONLY)
    try:
        tally = with_cluster(bootstrap, lambda cluster: _send_lines(cluster, plan, descriptor))
    finally:
        if file is not None:
            os.close(descriptor)
    if as_json:
        print_json(_as_json(plan.topic, tally))
    else:
        notice(f"{tally.records} records to {plan.topic}")


async def _send_lines(cluster: Cluster, plan: Plan, descriptor: int) -> Tally:
    tally = Tally()
    options: dict[str, Any] = {
        "acks": plan.acks,
        "compression": plan.compression,
        "linger_ms": _LINGER_MS,
        "topic_timeout_ms": _TOPIC_TIMEOUT_MS,
    }
    with progress(os.fstat(descriptor).st_size) as advance:
        async with Producer(cluster, **options) as producer:
            async for lines in read_lines(descriptor):
                await _refuse_missing(cluster, plan.topic)
                await _send(producer, plan, lines, tally)
                advance(sum(map(len, lines)) + len(lines))
                tally.check()
        tally.check()
    return tally


async def _refuse_missing(cluster: Cluster, topic: str) -> None:
    """Spare who waits for a topic that nobody will make; whatever else is wrong the producer finds out.

    :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, where brokers make no topics unasked.
    """
    try:
        await cluster.topic(topic, auto_create=True)
    except KafkaError as error:
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not await _may_be_made(cluster):
            raise
    except ConnectionError:
        return


async def _may_be_made(cluster: Cluster) -> bool:
    """Whether brokers make topics that are asked for, as far as one of them tells."""
    brokers = [Resource(ResourceKind.BROKER, str(node)) for node in list(cluster.metadata.nodes)[:1]]
    try:
        described = await Admin(cluster).describe_configs(brokers, {_AUTO_CREATE}, synonyms=False)
    except (KafkaError, ConnectionError):
        return True
    values = [each.value for entries in described.values() if isinstance(entries, list) for each in entries]
    return values != ["false"]


async def _send(producer: Producer, plan: Plan, lines: Sequence[bytes], tally: Tally) -> None:
    for line in lines:
        key, value = plan.key_and_value(line)
        delivery = await producer.send(plan.topic, value, key, partition=plan.partition, headers=plan.headers)
        delivery.add_done_callback(tally.count)


def _as_json(topic: str, tally: Tally) -> dict[str, Any]:
    partitions = [
        {"partition": partition, **each._asdict()} for partition, each in sorted(tally.partitions.items())
    ]
    return {"topic": topic, "records": tally.records, "partitions": partitions}
