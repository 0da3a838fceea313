"""What `barnabas verify-eos` does."""

import asyncio
from collections.abc import Iterable
from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.cli.failures import CommandError
from barnabas.cli.output import notice, print_json, print_table
from barnabas.cli.work.calls import with_cluster
from barnabas.client.admin.offsets import EARLIEST, LATEST, Isolation, find_offsets
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.log_reader import read_log
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.producer.producer import Producer
from barnabas.verify_eos.checks import (
    KINDS,
    Findings,
    Number,
    Output,
    ReadLog,
    check_exactly_once,
    read_number,
    read_output,
)
from barnabas.verify_eos.transaction_outcomes import Fates

#: Brokers may be away for as long as it takes to start them again and again.
_AWAY_MS = 600_000
#: At a bounded rate, inputs are sent in portions of this time.
_PORTION_MS = 50
_EXAMPLES_COUNT_MAX = 20


def produce(bootstrap: str, topic: str, count: int, rate: int | None, *, as_json: bool) -> None:
    """Send inputs, numbered from where each partition ends.

    :raises KafkaError: Why one could not be stored.
    """
    with_cluster(bootstrap, lambda cluster: _produce(cluster, topic, count, rate))
    if as_json:
        print_json({"topic": topic, "records": count})
    else:
        notice(f"{count} inputs to {topic}")


async def _produce(cluster: ClusterClient, topic: str, count: int, rate: int | None) -> None:
    places = await _places(cluster, topic)
    following = await find_offsets(cluster, dict.fromkeys(places, LATEST))
    clock, started_ms = cluster.retry.clock, cluster.retry.clock.monotonic_ms()
    portion = count if rate is None else max(1, rate * _PORTION_MS // 1000)
    async with Producer(cluster, delivery_timeout_ms=_AWAY_MS, topic_timeout_ms=_AWAY_MS) as producer:
        deliveries = []
        for index in range(count):
            if rate is not None and index % portion == 0:
                due_ms = started_ms + index * 1000 // rate
                await asyncio.sleep(max(0, due_ms - clock.monotonic_ms()) / 1000)
            place = places[index % len(places)]
            value = str(Number(place.partition, following[place])).encode()
            deliveries.append(await producer.send(topic, value, partition=place.partition))
            following[place] += 1
        await asyncio.gather(*deliveries)


def check(bootstrap: str, inputs: str, outputs: str, wait_s: int, *, as_json: bool) -> None:
    """Print what was found.

    :raises CommandError: When the outputs do not hold each input exactly once.
    """
    findings = with_cluster(bootstrap, lambda cluster: _check(cluster, inputs, outputs, wait_s))
    if as_json:
        print_json(_as_json(findings))
    else:
        print_table(("fault", "count", "what it means", "examples"), list(_rows(findings)))
    if not findings.is_exactly_once:
        kinds = ", ".join(f"{len(found)} {kind}" for kind, found in findings.faults.items() if found)
        message = f"{outputs} does not hold each of {findings.inputs_count} inputs exactly once: {kinds}"
        raise CommandError(message)
    notice(f"{outputs} holds each of {findings.inputs_count} inputs exactly once")


async def _check(cluster: ClusterClient, input_topic: str, output_topic: str, wait_s: int) -> Findings:
    inputs: dict[TopicPartition, list[Number | None]] = {
        place: [] for place in await _places(cluster, input_topic)
    }
    async with Consumer(cluster, isolation=Isolation.READ_COMMITTED) as consumer:
        await consumer.assign(dict.fromkeys(inputs, EARLIEST), stop_at_end=True)
        async for record in consumer:
            inputs[TopicPartition(input_topic, record.partition)].append(read_number(record.value))
    places = await _places(cluster, output_topic)
    if wait_s:
        wanted = {number for numbers in inputs.values() for number in numbers if number is not None}
        await _wait_for(cluster, places, wanted, wait_s * 1000)
    outputs, read_up_to = await _read_outputs(cluster, places)
    logs = {place: await _read_fates(cluster, place, read_up_to[place]) for place in places}
    return check_exactly_once(inputs, outputs, logs)


async def _wait_for(
    cluster: ClusterClient, places: Iterable[TopicPartition], wanted: set[Number], timeout_ms: int
) -> None:
    """Wait until every input has an output, or the time is over."""
    clock = cluster.retry.clock
    give_up_ms = clock.monotonic_ms() + timeout_ms
    async with Consumer(cluster, isolation=Isolation.READ_COMMITTED) as consumer:
        await consumer.assign(dict.fromkeys(places, EARLIEST))
        while wanted and (left_ms := give_up_ms - clock.monotonic_ms()) > 0:
            for record in await consumer.poll(left_ms):
                number = read_number(record.value)
                if number is not None:
                    wanted.discard(number)


async def _read_outputs(
    cluster: ClusterClient, places: Iterable[TopicPartition]
) -> tuple[list[Output], dict[TopicPartition, int]]:
    """The outputs that a client sees, and where each partition ended for it."""
    outputs: list[Output] = []
    async with Consumer(cluster, isolation=Isolation.READ_COMMITTED) as consumer:
        await consumer.assign(dict.fromkeys(places, EARLIEST), stop_at_end=True)
        async for record in consumer:
            place = TopicPartition(record.topic, record.partition)
            outputs.append(read_output(place, record.offset, record.value))
        ends = {place: position.end or 0 for place, position in consumer.positions.items()}
    return outputs, ends


async def _read_fates(cluster: ClusterClient, place: TopicPartition, read_up_to: int) -> ReadLog:
    fates = Fates()
    async for batches in read_log(cluster, place):
        fates.take(batches)
    return ReadLog(fates.by_offset, read_up_to)


async def _places(cluster: ClusterClient, topic: str) -> list[TopicPartition]:
    described = await cluster.topic(topic)
    return [TopicPartition(topic, each.partition_index) for each in described.partitions]


def _rows(findings: Findings) -> Iterable[tuple[object, ...]]:
    for kind, found in findings.faults.items():
        yield kind, len(found), KINDS[kind], ", ".join(found[:3]) + (" ..." if len(found) > 3 else "")


def _as_json(findings: Findings) -> dict[str, Any]:
    return {
        "exactly_once": findings.is_exactly_once,
        "inputs": findings.inputs_count,
        "outputs": findings.outputs_count,
        "transactions": findings.transactions_count,
        "faults": {
            kind: {"count": len(found), "examples": found[:_EXAMPLES_COUNT_MAX]}
            for kind, found in findings.faults.items()
        },
    }
