"""`barnabas verify-eos`: produce numbered inputs for an application, and check that it outputs each exactly once."""

import asyncio
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from barnabas.base.ids import TopicPartition
from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_cluster
from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.failures import CommandError
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import notice, print_json, print_table
from barnabas.client.admin.offsets import EARLIEST, LATEST, find_offsets
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
from barnabas.verify_eos.transaction_outcomes import TransactionOutcomes
from barnabas.wire.isolation import Isolation

#: Delivery timeout; brokers may be killed and restarted repeatedly within it.
_DELIVERY_TIMEOUT_MS = 600_000
#: With a rate limit, one burst of inputs is sent per interval of this length.
_BURST_INTERVAL_MS = 50
_EXAMPLES_COUNT_MAX = 20


@command(
    "produce", example="verify-eos produce inputs --count 10000", apis=("Produce",), needs=("write topic",)
)
def produce_inputs(
    topic: Annotated[
        str,
        typer.Argument(
            help="Topic to write inputs to.", show_default=False, autocompletion=candidates.topics
        ),
    ],
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Number of inputs.", show_default=False)],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    rate: Annotated[
        int | None, typer.Option("--rate", min=1, help="Inputs per second (default: as fast as possible).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Send numbered inputs (PARTITION-SEQUENCE) to all partitions in turn.

    Brokers may be killed meanwhile: inputs that were not stored are retried for ten minutes.
    """
    with_cluster(bootstrap, lambda cluster: _produce(cluster, topic, count, rate))
    if as_json:
        print_json({"topic": topic, "records": count})
    else:
        notice(f"{count} inputs sent to {topic}")


async def _produce(cluster: ClusterClient, topic: str, count: int, rate: int | None) -> None:
    tps = await _topic_partitions(cluster, topic)
    next_sequences = await find_offsets(cluster, dict.fromkeys(tps, LATEST))
    clock, started_ms = cluster.retry.clock, cluster.retry.clock.monotonic_ms()
    burst_size = count if rate is None else max(1, rate * _BURST_INTERVAL_MS // 1000)
    async with Producer(
        cluster, delivery_timeout_ms=_DELIVERY_TIMEOUT_MS, topic_timeout_ms=_DELIVERY_TIMEOUT_MS
    ) as producer:
        deliveries = []
        for index in range(count):
            if rate is not None and index % burst_size == 0:
                due_ms = started_ms + index * 1000 // rate
                await asyncio.sleep(max(0, due_ms - clock.monotonic_ms()) / 1000)
            tp = tps[index % len(tps)]
            value = str(Number(tp.partition, next_sequences[tp])).encode()
            deliveries.append(await producer.send(topic, value, partition=tp.partition))
            next_sequences[tp] += 1
        await asyncio.gather(*deliveries)


@command("check", example="verify-eos check inputs outputs --wait 60", apis=("Fetch",), needs=("read topic",))
def check_outputs(
    inputs: Annotated[
        str,
        typer.Argument(help="Topic of the inputs.", show_default=False, autocompletion=candidates.topics),
    ],
    outputs: Annotated[
        str,
        typer.Argument(help="Topic of the outputs.", show_default=False, autocompletion=candidates.topics),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    wait_s: Annotated[
        int,
        typer.Option(
            "--wait", metavar="SECONDS", min=0, help="Seconds to wait until every input has an output."
        ),
    ] = 0,
    as_json: Json = False,
) -> None:
    """Find lost, duplicated, reordered, torn, aborted or hidden outputs; exits with 1 if there are any.

    An output begins with the number of its input. "0-17 tx9/10" is one of ten outputs of the transaction tx9; without
    the word tx9/10, torn transactions cannot be detected. The application must have stopped writing when the wait ends.
    """
    findings = with_cluster(bootstrap, lambda cluster: _check(cluster, inputs, outputs, wait_s))
    if as_json:
        print_json(_as_json(findings))
    else:
        print_table(("fault", "count", "description", "examples"), list(_rows(findings)))
    if not findings.is_exactly_once:
        kinds = ", ".join(f"{len(examples)} {kind}" for kind, examples in findings.faults.items() if examples)
        message = f"{outputs} does not hold each of {findings.inputs_count} inputs exactly once: {kinds}"
        raise CommandError(message)
    notice(f"{outputs} holds each of {findings.inputs_count} inputs exactly once")


async def _check(cluster: ClusterClient, input_topic: str, output_topic: str, wait_s: int) -> Findings:
    inputs: dict[TopicPartition, list[Number | None]] = {
        tp: [] for tp in await _topic_partitions(cluster, input_topic)
    }
    async with Consumer(cluster, isolation=Isolation.READ_COMMITTED) as consumer:
        await consumer.assign(dict.fromkeys(inputs, EARLIEST), stop_at_end=True)
        async for record in consumer:
            inputs[TopicPartition(input_topic, record.partition)].append(read_number(record.value))
    tps = await _topic_partitions(cluster, output_topic)
    if wait_s:
        missing = {number for numbers in inputs.values() for number in numbers if number is not None}
        await _wait_for_outputs(cluster, tps, missing, wait_s * 1000)
    outputs, read_up_to = await _read_outputs(cluster, tps)
    logs = {tp: await _read_transaction_outcomes(cluster, tp, read_up_to[tp]) for tp in tps}
    return check_exactly_once(inputs, outputs, logs)


async def _wait_for_outputs(
    cluster: ClusterClient, tps: Iterable[TopicPartition], missing: set[Number], timeout_ms: int
) -> None:
    """Wait until every input in `missing` has an output, or until the timeout."""
    clock = cluster.retry.clock
    deadline_ms = clock.monotonic_ms() + timeout_ms
    async with Consumer(cluster, isolation=Isolation.READ_COMMITTED) as consumer:
        await consumer.assign(dict.fromkeys(tps, EARLIEST))
        while missing and (remaining_ms := deadline_ms - clock.monotonic_ms()) > 0:
            for record in await consumer.poll(remaining_ms):
                number = read_number(record.value)
                if number is not None:
                    missing.discard(number)


async def _read_outputs(
    cluster: ClusterClient, tps: Iterable[TopicPartition]
) -> tuple[list[Output], dict[TopicPartition, int]]:
    """Return the outputs that a read_committed consumer reads, and the end offset of each partition for it."""
    outputs: list[Output] = []
    async with Consumer(cluster, isolation=Isolation.READ_COMMITTED) as consumer:
        await consumer.assign(dict.fromkeys(tps, EARLIEST), stop_at_end=True)
        async for record in consumer:
            tp = TopicPartition(record.topic, record.partition)
            outputs.append(read_output(tp, record.offset, record.value))
        ends = {tp: position.end or 0 for tp, position in consumer.positions.items()}
    return outputs, ends


async def _read_transaction_outcomes(cluster: ClusterClient, tp: TopicPartition, read_up_to: int) -> ReadLog:
    outcomes = TransactionOutcomes()
    async for batches in read_log(cluster, tp):
        outcomes.take(batches)
    return ReadLog(outcomes.by_offset, read_up_to)


async def _topic_partitions(cluster: ClusterClient, topic: str) -> list[TopicPartition]:
    described = await cluster.topic(topic)
    return [TopicPartition(topic, partition.partition_index) for partition in described.partitions]


def _rows(findings: Findings) -> Iterable[tuple[object, ...]]:
    for kind, examples in findings.faults.items():
        text = ", ".join(examples[:3]) + (" ..." if len(examples) > 3 else "")
        yield kind, len(examples), KINDS[kind], text


def _as_json(findings: Findings) -> dict[str, Any]:
    return {
        "exactly_once": findings.is_exactly_once,
        "inputs": findings.inputs_count,
        "outputs": findings.outputs_count,
        "transactions": findings.transactions_count,
        "faults": {
            kind: {"count": len(examples), "examples": examples[:_EXAMPLES_COUNT_MAX]}
            for kind, examples in findings.faults.items()
        },
    }


app = command_group(produce_inputs, check_outputs)
