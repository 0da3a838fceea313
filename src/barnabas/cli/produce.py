"""`barnabas produce`: send lines as records."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barnabas.base.plurals import plural
from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_cluster
from barnabas.cli.support.commands import command
from barnabas.cli.support.deliveries import Deliveries
from barnabas.cli.support.failures import CommandError, report, wrong_use
from barnabas.cli.support.lines import read_lines
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, key_value_pairs
from barnabas.cli.support.output import notice, print_json
from barnabas.cli.support.progress import progress
from barnabas.cli.support.registry import Registry, value_encoder
from barnabas.client.admin.admin import Admin
from barnabas.client.core.cluster import ClusterClient
from barnabas.client.producer.producer import Producer
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import RecordHeaders

if TYPE_CHECKING:
    from barnabas.registry.codecs.records import ValueEncoder

#: Time to wait for more lines before a batch is sent.
_LINGER_MS = 5
#: Time to wait for a topic that a broker may be auto-creating.
_TOPIC_TIMEOUT_MS = 2_000
_AUTO_CREATE = "auto.create.topics.enable"


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


_ACKS = {Acks.ALL: -1, Acks.LEADER: 1, Acks.NONE: 0}


@dataclass(frozen=True)
class ProduceOptions:
    """How lines become records."""

    topic: str
    key_separator: bytes | None
    headers: RecordHeaders
    partition: int | None
    compression: Compression
    acks: int
    value_encoder: "ValueEncoder | None" = None
    key_encoder: "ValueEncoder | None" = None

    def key_and_value(self, line: bytes) -> tuple[bytes | None, bytes]:
        """Split a line, and encode its parts; without a separator the whole line is the value.

        :raises KafkaError: INVALID_RECORD for a part that does not fit its schema.
        """
        key, value = None, line
        if self.key_separator and self.key_separator in line:
            key, _, value = line.partition(self.key_separator)
        if key is not None and self.key_encoder is not None:
            key = _encoded(self.key_encoder, key, "key")
        if self.value_encoder is not None:
            value = _encoded(self.value_encoder, value, "value")
        return key, value


def _encoded(encoder: "ValueEncoder", text: bytes, part: str) -> bytes:
    try:
        return encoder.encode(text)
    except ValueError as error:
        message = f"the {part} does not fit schema {encoder.schema_id}: {error}"
        raise KafkaError(ErrorCode.INVALID_RECORD, message) from None


_Partition = Annotated[
    int | None,
    typer.Option(
        "--partition",
        "-p",
        min=0,
        help="Partition to write to (default: by key; without a key, spread over all partitions).",
    ),
]
_Subject = Annotated[
    str | None,
    typer.Option(
        "--subject",
        metavar="SUBJECT",
        help="Subject in the registry whose latest schema encodes values, which are JSON (default: TOPIC-value).",
    ),
]
_KeySubject = Annotated[
    str | None,
    typer.Option(
        "--key-subject",
        metavar="SUBJECT",
        help="Subject whose latest schema encodes keys, which are JSON (default: keys are plain text).",
    ),
]
_Message = Annotated[
    str,
    typer.Option(
        "--message",
        metavar="NAME",
        help="Message of Protobuf in the schema of values (default: its first one).",
    ),
]


@command(
    "produce",
    example="produce orders --key-separator : --file orders.txt",
    apis=("Produce",),
    needs=("write topic",),
)
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
    partition: _Partition = None,
    compression: Annotated[
        CompressionType, typer.Option("--compression", "-z", help="Compression of batches.")
    ] = CompressionType.NONE,
    registry: Registry = None,
    subject: _Subject = None,
    key_subject: _KeySubject = None,
    message: _Message = "",
    acks: Annotated[Acks, typer.Option("--acks", help="Acknowledgments required.")] = Acks.ALL,
    as_json: Json = False,
) -> None:
    options = ProduceOptions(
        topic,
        None if key_separator is None else key_separator.encode(),
        tuple((name, value.encode()) for name, value in key_value_pairs(header, "--header")),
        partition,
        Compression[compression.upper()],
        _ACKS[acks],
        *_encoders(topic, registry, subject, key_subject, message),
    )
    descriptor = sys.stdin.fileno() if file is None else os.open(file, os.O_RDONLY)
    deliveries = Deliveries(partial(report, as_json=as_json))
    try:
        unread_after = with_cluster(
            bootstrap, lambda cluster: _send_lines(cluster, options, descriptor, deliveries)
        )
    finally:
        if file is not None:
            os.close(descriptor)
    deliveries.flush()
    if as_json:
        print_json(_as_json(options.topic, deliveries))
    else:
        notice(f"{plural(deliveries.records_count, 'record')} sent to {options.topic}")
    _check(deliveries, unread_after)


def _encoders(
    topic: str, registry: str | None, subject: str | None, key_subject: str | None, message: str
) -> "tuple[ValueEncoder | None, ValueEncoder | None]":
    """Return the encoders of values and keys.

    :raises CommandError: If a subject does not exist, or an option needs --registry.
    """
    if registry is None:
        if subject or key_subject or message:
            raise wrong_use("--subject, --key-subject and --message need a schema registry", "--registry URL")
        return None, None
    values = value_encoder(registry, subject or f"{topic}-value", message)
    return values, None if key_subject is None else value_encoder(registry, key_subject)


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
    cluster: ClusterClient, options: ProduceOptions, descriptor: int, deliveries: Deliveries
) -> int | None:
    """Send lines until the input ends, or until an error that later lines would cause as well.

    :returns: The number of the last line that was read, if an error stopped reading; else None.
    :raises KafkaError: If the first line fails.
    """
    lines_count = 0
    producer_options: dict[str, Any] = {
        "acks": options.acks,
        "compression": options.compression,
        "linger_ms": _LINGER_MS,
        "topic_timeout_ms": _TOPIC_TIMEOUT_MS,
    }
    with progress(os.fstat(descriptor).st_size, in_bytes=True) as advance:
        async with Producer(cluster, **producer_options) as producer:
            async for lines in read_lines(descriptor):
                lines_count = await _send(producer, options, lines, lines_count, deliveries)
                advance(sum(map(len, lines)) + len(lines))
                deliveries.flush()
                if deliveries.stopping:
                    return lines_count
    return None


async def _send(
    producer: Producer,
    options: ProduceOptions,
    lines: Sequence[bytes],
    lines_count: int,
    deliveries: Deliveries,
) -> int:
    """Send lines and return the number of the last one."""
    try:
        await _check_topic(producer.cluster, options.topic)
        for line in lines:
            try:
                key, value = options.key_and_value(line)
            except KafkaError as error:
                lines_count += 1
                deliveries.fail(lines_count, error)
                continue
            delivery = await producer.send(
                options.topic, value, key, partition=options.partition, headers=options.headers
            )
            lines_count += 1
            delivery.add_done_callback(partial(deliveries.count, lines_count))
    except (KafkaError, ConnectionError) as error:
        if lines_count == 0:
            raise
        lines_count += 1
        deliveries.fail(lines_count, error)
    return lines_count


async def _check_topic(cluster: ClusterClient, topic: str) -> None:
    """Fail early if the topic does not exist and will not be auto-created; the producer reports other errors.

    :raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION if brokers do not auto-create topics.
    """
    try:
        await cluster.topic(topic, auto_create=True)
    except KafkaError as error:
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not await _is_auto_create_possible(cluster):
            raise
    except ConnectionError:
        return


async def _is_auto_create_possible(cluster: ClusterClient) -> bool:
    """Whether brokers auto-create topics, according to one of them; True if that is unknown."""
    brokers = [Resource(ResourceKind.BROKER, str(node)) for node in list(cluster.metadata.nodes)[:1]]
    try:
        described = await Admin(cluster).describe_configs(brokers, {_AUTO_CREATE}, synonyms=False)
    except (KafkaError, ConnectionError):
        return True
    values = [entry.value for entries in described.values() if isinstance(entries, list) for entry in entries]
    return values != ["false"]


def _as_json(topic: str, deliveries: Deliveries) -> dict[str, Any]:
    partitions = [
        {"partition": partition, **delivered._asdict()}
        for partition, delivered in sorted(deliveries.partitions.items())
    ]
    return {
        "topic": topic,
        "records": deliveries.records_count,
        "failed": deliveries.failed_count,
        "partitions": partitions,
    }
