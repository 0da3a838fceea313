"""What `barnabas produce` does."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from barnabas.cli.failures import CommandError, report
from barnabas.cli.output import notice, print_json
from barnabas.cli.work.calls import with_cluster
from barnabas.cli.work.deliveries import Deliveries
from barnabas.cli.work.lines import read_lines
from barnabas.cli.work.progress import progress
from barnabas.client.admin.admin import Admin
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.producer.producer import Producer
from barnabas.config.config_resource import Resource, ResourceKind
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
class ProduceOptions:
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


def plan(
    topic: str,
    key_separator: str | None,
    headers: Sequence[tuple[str, str]],
    partition: int | None,
    compression: str,
    acks: str,
) -> ProduceOptions:
    """From the words of the command line."""
    separator = None if key_separator is None else key_separator.encode()
    encoded = tuple((name, value.encode()) for name, value in headers)
    return ProduceOptions(topic, separator, encoded, partition, Compression[compression.upper()], _ACKS[acks])


def run(bootstrap: str, plan: ProduceOptions, file: Path | None, *, as_json: bool) -> None:
    """Send every line, then print how many records arrived.

    :raises CommandError: For lines that did not arrive, which it names.
    :raises ExceptionGroup: The same for several reasons.
    """
    descriptor = sys.stdin.fileno() if file is None else os.open(file, os.O_RDONLY)
    deliveries = Deliveries(partial(report, as_json=as_json))
    try:
        unread_after = with_cluster(
            bootstrap, lambda cluster: _send_lines(cluster, plan, descriptor, deliveries)
        )
    finally:
        if file is not None:
            os.close(descriptor)
    deliveries.flush()
    if as_json:
        print_json(_as_json(plan.topic, deliveries))
    else:
        notice(f"{deliveries.records_count} records to {plan.topic}")
    _check(deliveries, unread_after)


def _check(deliveries: Deliveries, unread_after: int | None) -> None:
    failures = list(deliveries.stopping)
    if unread_after is not None:
        failures.append(CommandError(f"input after line {unread_after} was not read"))
    if deliveries.failed_count and not failures:
        total = deliveries.records_count + deliveries.failed_count
        raise CommandError(f"{deliveries.failed_count} of {total} lines were not delivered")
    if len(failures) > 1:
        message = "lines were not delivered"
        raise ExceptionGroup(message, failures)
    for failure in failures:
        raise failure


async def _send_lines(
    cluster: ClusterClient, plan: ProduceOptions, descriptor: int, deliveries: Deliveries
) -> int | None:
    """Send lines until the input ends, or until an error that later lines would meet as well.

    :returns: The last line that was read, if it is not known to be the end of the input.
    :raises KafkaError: An error at the first line.
    """
    lines_count = 0
    options: dict[str, Any] = {
        "acks": plan.acks,
        "compression": plan.compression,
        "linger_ms": _LINGER_MS,
        "topic_timeout_ms": _TOPIC_TIMEOUT_MS,
    }
    with progress(os.fstat(descriptor).st_size) as advance:
        async with Producer(cluster, **options) as producer:
            async for lines in read_lines(descriptor):
                lines_count = await _send(producer, plan, lines, lines_count, deliveries)
                advance(sum(map(len, lines)) + len(lines))
                deliveries.flush()
                if deliveries.stopping:
                    return lines_count
    return None


async def _send(
    producer: Producer, plan: ProduceOptions, lines: Sequence[bytes], lines_count: int, deliveries: Deliveries
) -> int:
    """Send lines and return the number of the last one."""
    try:
        await _refuse_missing(producer.cluster, plan.topic)
        for line in lines:
            key, value = plan.key_and_value(line)
            delivery = await producer.send(
                plan.topic, value, key, partition=plan.partition, headers=plan.headers
            )
            lines_count += 1
            delivery.add_done_callback(partial(deliveries.count, lines_count))
    except (KafkaError, ConnectionError) as error:
        if lines_count == 0:
            raise
        lines_count += 1
        deliveries.fail(lines_count, error)
    return lines_count


async def _refuse_missing(cluster: ClusterClient, topic: str) -> None:
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


async def _may_be_made(cluster: ClusterClient) -> bool:
    """Whether brokers make topics that are asked for, as far as one of them tells."""
    brokers = [Resource(ResourceKind.BROKER, str(node)) for node in list(cluster.metadata.nodes)[:1]]
    try:
        described = await Admin(cluster).describe_configs(brokers, {_AUTO_CREATE}, synonyms=False)
    except (KafkaError, ConnectionError):
        return True
    values = [each.value for entries in described.values() if isinstance(entries, list) for each in entries]
    return values != ["false"]


def _as_json(topic: str, deliveries: Deliveries) -> dict[str, Any]:
    partitions = [
        {"partition": partition, **each._asdict()}
        for partition, each in sorted(deliveries.partitions.items())
    ]
    return {
        "topic": topic,
        "records": deliveries.records_count,
        "failed": deliveries.failed_count,
        "partitions": partitions,
    }
