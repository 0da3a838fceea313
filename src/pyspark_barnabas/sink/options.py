"""The sink's options: those of Spark's Kafka connector, and a few of Barnabas. No IO."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from barnabas.reading.option_names import check_option_names
from barnabas.reading.option_values import OptionError, flag, number, option_error, size_bytes
from barnabas.wire.records.compression import Compression
from pyspark_barnabas.delegation import OPTION as DELEGATION_TOKENS
from pyspark_barnabas.source.options import SparkConnection, connection_options

#: The brokers' default limit (`transaction.max.timeout.ms`): a restart that completes a batch may take this long.
TRANSACTION_TIMEOUT_MS = 900_000
DELIVERY_TIMEOUT_MS = 120_000
#: Half of the brokers' default limit (`max.message.bytes`).
BATCH_BYTES = 512 * 1024
REQUEST_BYTES_MAX = 4 * 1024 * 1024
BUFFER_BYTES = 32 * 1024 * 1024

OPTION_NAMES = (
    "batchId", DELEGATION_TOKENS, "delivery", "includeTimestamp", "kafkaConsumer.pollTimeoutMs", "sinkName", "topic",
)  # fmt: skip

#: Options for connecting to the cluster, beside client properties.
_CONNECTION = frozenset({DELEGATION_TOKENS.lower(), "kafkaconsumer.polltimeoutms"})
_ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}
_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
_REFUSED_PROPERTIES = {
    "key.serializer": "leave it out: keys are written as bytes, made by expressions",
    "value.serializer": "leave it out: values are written as bytes, made by expressions",
    "transactional.id": "leave it out: option sinkName begins the transactional ids of all tasks",
    "interceptor.classes": "leave it out: interceptors cannot be run",
    "partitioner.class": "leave it out: a column named partition chooses the partition of a row",
}
_OptionT = TypeVar("_OptionT")


class DeliveryGuarantee(Enum):
    """The delivery guarantee of each row."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


@dataclass(frozen=True)
class SinkOptions:
    """All options of a sink."""

    connection: SparkConnection
    delivery: DeliveryGuarantee
    topic: str | None = None  #: None if rows name their topic
    name: str | None = None  #: prefix of all transactional ids and groups; None to use the query's
    batch_id: int | None = None  #: number of a batch write: a completed one is not written again
    include_timestamp: bool = False
    acks: int = -1
    compression: Compression = Compression.NONE
    batch_bytes: int = BATCH_BYTES
    request_bytes_max: int = REQUEST_BYTES_MAX
    buffer_bytes: int = BUFFER_BYTES
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS
    delivery_timeout_ms: int = DELIVERY_TIMEOUT_MS


def batch_options(options: Mapping[str, str]) -> SinkOptions:
    """Parse the options of `df.write`.

    The default is at least once, as in the connector: a transaction is open from a task's first row to the end of
    the job, and brokers limit that (15 minutes by default), while bulk writes may take longer.

    :raises OptionError: For an invalid option; passwords are not quoted.
    """
    parsed = _options(_folded(options), DeliveryGuarantee.AT_LEAST_ONCE)
    if parsed.batch_id is not None and parsed.name is None:
        raise option_error(
            "batchId", str(parsed.batch_id), "it counts the batches of a sinkName, which is missing"
        )
    if parsed.batch_id is not None and parsed.delivery is not DeliveryGuarantee.EXACTLY_ONCE:
        raise option_error("batchId", str(parsed.batch_id), "it needs delivery=exactly-once")
    return parsed


def stream_options(options: Mapping[str, str]) -> SinkOptions:
    """Parse the options of `df.writeStream`; the default is exactly once, because micro-batches are short.

    :raises OptionError: For an invalid option; passwords are not quoted.
    """
    parsed = _options(_folded(options), DeliveryGuarantee.EXACTLY_ONCE)
    if parsed.batch_id is not None:
        raise option_error(
            "batchId", str(parsed.batch_id), "a stream counts its batches itself; leave it out"
        )
    return parsed


def connecting(options: Mapping[str, str]) -> dict[str, str]:
    """Return those options of a source with which a sink connects to the same cluster in the same way."""
    return {
        name: value
        for name, value in options.items()
        if name.lower().startswith("kafka.") or name.lower() in _CONNECTION
    }


def _folded(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in options.items()}


def _options(options: Mapping[str, str], default: DeliveryGuarantee) -> SinkOptions:
    check_option_names(options, OPTION_NAMES)
    properties = {
        name.removeprefix("kafka."): value for name, value in options.items() if name.startswith("kafka.")
    }
    for name, advice in _REFUSED_PROPERTIES.items():
        if name in properties:
            raise option_error(f"kafka.{name}", properties[name], f"this is not supported; {advice}")
    delivery = _delivery(options, default)
    batch_id = options.get("batchid")
    return SinkOptions(
        connection=connection_options(options),
        delivery=delivery,
        topic=_topic(options),
        name=_name(options),
        batch_id=None if batch_id is None else number("batchId", batch_id, minimum=0),
        include_timestamp=flag("includeTimestamp", options.get("includetimestamp", "false")),
        acks=_acks(properties, delivery),
        compression=_one_of(
            "kafka.compression.type",
            properties.get("compression.type", "none"),
            {codec.name.lower(): codec for codec in Compression},
        ),
        batch_bytes=_size(properties, "batch.size", BATCH_BYTES),
        request_bytes_max=_size(properties, "max.request.size", REQUEST_BYTES_MAX),
        buffer_bytes=_size(properties, "buffer.memory", BUFFER_BYTES),
        transaction_timeout_ms=_number(properties, "transaction.timeout.ms", TRANSACTION_TIMEOUT_MS),
        delivery_timeout_ms=_number(properties, "delivery.timeout.ms", DELIVERY_TIMEOUT_MS),
    )


def _delivery(options: Mapping[str, str], default: DeliveryGuarantee) -> DeliveryGuarantee:
    by_name = {guarantee.value: guarantee for guarantee in DeliveryGuarantee}
    return _one_of("delivery", options.get("delivery", default.value), by_name)


def _topic(options: Mapping[str, str]) -> str | None:
    topic = options.get("topic")
    if topic is not None and not topic.strip():
        raise option_error(
            "topic",
            topic,
            "the name of a topic is expected; or leave it out if every row has the column topic",
        )
    return None if topic is None else topic.strip()


def _name(options: Mapping[str, str]) -> str | None:
    name = options.get("sinkname")
    if name is None:
        return None
    if not _NAME.fullmatch(name):
        expected = "1 to 200 letters, digits, dots, underscores and hyphens are expected"
        raise option_error("sinkName", name, expected)
    if name.rpartition(".")[2].isdecimal() and "." in name:
        raise option_error(
            "sinkName", name, "it must not end in a dot and a number, as names of a sink's tasks do"
        )
    return name


def _acks(properties: Mapping[str, str], delivery: DeliveryGuarantee) -> int:
    text = properties.get("acks", "all")
    acks = _one_of("kafka.acks", text, _ACKS)
    if acks != -1 and delivery is DeliveryGuarantee.EXACTLY_ONCE:
        raise option_error("kafka.acks", text, "delivery=exactly-once needs all")
    return acks


def _size(properties: Mapping[str, str], name: str, default: int) -> int:
    return size_bytes(f"kafka.{name}", properties.get(name, str(default)))


def _number(properties: Mapping[str, str], name: str, default: int) -> int:
    return number(f"kafka.{name}", properties.get(name, str(default)), minimum=1)


def _one_of(option: str, text: str, known: Mapping[str, _OptionT]) -> _OptionT:
    value = known.get(text.strip().lower())
    if value is None:
        raise option_error(option, text, f"one of {', '.join(known)} is expected")
    return value


__all__ = ["DeliveryGuarantee", "OptionError", "SinkOptions", "batch_options", "connecting", "stream_options"]
