"""The source's options: those of Spark's Kafka connector, and a few of Barnabas. No IO.

Names are case-insensitive, as in Spark.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Self

from barnabas.base.ids import TopicPartition
from barnabas.client.auth.sasl import SaslLogin
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.properties import login_from_properties, tls_from_properties
from barnabas.tls.settings import TlsSettings
from barnabas.wire.isolation import Isolation
from pyspark_barnabas.delegation import OPTION as DELEGATION_TOKENS
from pyspark_barnabas.delegation import uses_delegation_tokens
from pyspark_barnabas.option_values import (
    OptionError,
    duration_ms,
    flag,
    number,
    numbers_by_partition,
    option_error,
    partitions,
    size_bytes,
)

#: The markers in offsets JSON.
LATEST_MARKER = -1
EARLIEST_MARKER = -2

#: A task costs about 50 ms, whatever its size.
TASK_BYTES = 128 * 1024 * 1024
FETCH_BYTES = 16 * 1024 * 1024
#: The connector's time limit for polling existing records (`spark.network.timeout`).
POLL_TIMEOUT_MS = 120_000
MAX_TRIGGER_DELAY_MS = 15 * 60_000

_STRATEGIES = ("subscribe", "subscribePattern", "assign")
_ENDINGS = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
_LIMITS = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
_ISOLATIONS = {
    "read_uncommitted": Isolation.READ_UNCOMMITTED,
    "read_committed": Isolation.READ_COMMITTED,
}
_REFUSED_PROPERTIES = {
    "auto.offset.reset": "leave it out and set startingOffsets to earliest or latest",
    "key.deserializer": "leave it out: keys come as bytes, to be decoded by expressions",
    "value.deserializer": "leave it out: values come as bytes, to be decoded by expressions",
    "enable.auto.commit": "leave it out: progress is kept in the query's checkpoint",
    "interceptor.classes": "leave it out: interceptors cannot be run",
}


class Transport(Enum):
    """How a task gets log data."""

    FETCH = "fetch"
    FILES = "files"


@dataclass(frozen=True)
class Subscribe:
    """All partitions of these topics."""

    topics: tuple[str, ...]


@dataclass(frozen=True)
class SubscribePattern:
    """All partitions of the topics whose whole name matches."""

    pattern: str


@dataclass(frozen=True)
class Assign:
    partitions: frozenset[TopicPartition]


TopicSelection = Subscribe | SubscribePattern | Assign


class Edge(Enum):
    """One end of a log."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True)
class SpecificOffsets:
    """An offset or a marker for each partition."""

    by_partition: Mapping[TopicPartition, int]


@dataclass(frozen=True)
class Times:
    """A time for each partition, in ms since the epoch."""

    by_partition: Mapping[TopicPartition, int]


@dataclass(frozen=True)
class Time:
    """One time for all partitions, in ms since the epoch."""

    timestamp_ms: int


OffsetRangeLimit = Edge | SpecificOffsets | Times | Time


@dataclass(frozen=True)
class ConnectionOptions:
    """The options for connecting to the cluster."""

    bootstrap: str  #: empty if only files are read
    client_id: str = "barnabas-spark"
    login: SaslLogin | None = None
    tls: TlsSettings | None = None
    request_timeout_ms: int = 30_000
    retry_timeout_ms: int = POLL_TIMEOUT_MS
    delegation_tokens: bool = False  #: whether tasks log in with tokens instead of `login`

    def for_tasks(self, login: SaslLogin | None = None) -> Self:
        """Return what tasks may know: without the password, and with a login of their own if they have one."""
        return replace(self, login=login, delegation_tokens=False) if self.delegation_tokens else self


@dataclass(frozen=True)
class SourceOptions:
    """All options of a source."""

    connection: ConnectionOptions
    selection: TopicSelection
    starting: OffsetRangeLimit
    ending: OffsetRangeLimit
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    #: Whether a starting time after all records means the end instead of an error.
    start_may_be_latest: bool = False
    fail_on_data_loss: bool = True
    include_headers: bool = False
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = MAX_TRIGGER_DELAY_MS
    #: How often ends are queried that have moved backwards.
    offset_attempts_count: int = 3
    offset_retry_ms: int = 1_000
    transport: Transport = Transport.FETCH
    log_dirs: tuple[str, ...] = ()
    task_bytes: int = TASK_BYTES
    fetch_bytes: int = FETCH_BYTES
    check_crcs: bool = True
    group_id: str | None = None
    #: Options that were given and have no effect.
    ignored: tuple[str, ...] = field(default=(), compare=False)

    def for_tasks(self) -> Self:
        """Return what is sent to tasks; see `ConnectionOptions.for_tasks`."""
        return replace(self, connection=self.connection.for_tasks())

    def with_login(self, login: SaslLogin) -> Self:
        return replace(self, connection=replace(self.connection, login=login))


class _Given:
    """The given options by case-insensitive name."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = {name.lower(): str(value) for name, value in options.items()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._options

    def __getitem__(self, name: str) -> str:
        return self._options[name.lower()]

    def get(self, name: str, default: str) -> str:
        return self._options.get(name.lower(), default)

    def properties(self) -> dict[str, str]:
        """Kafka's own client properties."""
        prefix = "kafka."
        return {
            name.removeprefix(prefix): value
            for name, value in self._options.items()
            if name.startswith(prefix)
        }


def batch_options(options: Mapping[str, str]) -> SourceOptions:
    """Parse the options of `spark.read`.

    :raises OptionError: For an invalid option; passwords are not quoted.
    """
    given_options = _Given(options)
    starting = _bound(given_options, "starting", Edge.EARLIEST)
    ending = _bound(given_options, "ending", Edge.LATEST)
    if starting is Edge.LATEST or _has_marker(starting, LATEST_MARKER):
        what = "a batch query cannot start at the latest offset (-1); use earliest (-2), an offset or a time"
        raise option_error("startingOffsets", given_options["startingOffsets"], what)
    if ending is Edge.EARLIEST or _has_marker(ending, EARLIEST_MARKER):
        what = "a batch query cannot end at the earliest offset (-2); use latest (-1), an offset or a time"
        raise option_error("endingOffsets", given_options["endingOffsets"], what)
    _check_order(given_options, starting, ending)
    ignored = tuple(name for name in _LIMITS if name in given_options)
    return _options(given_options, starting, ending, ignored)


def stream_options(options: Mapping[str, str]) -> SourceOptions:
    """Parse the options of `spark.readStream`.

    :raises OptionError: For an invalid option; passwords are not quoted.
    """
    given_options = _Given(options)
    for name in _ENDINGS:
        if name in given_options:
            raise option_error(name, given_options[name], "a streaming query has no end; leave it out")
    return _options(given_options, _bound(given_options, "starting", Edge.LATEST), Edge.LATEST, ())


def connection_options(options: Mapping[str, str]) -> ConnectionOptions:
    """Parse only the options for connecting to the cluster.

    :raises OptionError: For an invalid option.
    """
    return _connection(_Given(options), required=True)


def _options(
    given_options: _Given, starting: OffsetRangeLimit, ending: OffsetRangeLimit, ignored: tuple[str, ...]
) -> SourceOptions:
    transport = _transport(given_options)
    selection = _selection(given_options)
    properties = given_options.properties()
    for name, advice in _REFUSED_PROPERTIES.items():
        if name in properties:
            raise option_error(f"kafka.{name}", properties[name], f"this is not supported; {advice}")
    minimum = _optional_number(given_options, "minOffsetsPerTrigger")
    maximum = _optional_number(given_options, "maxOffsetsPerTrigger")
    if minimum is not None and maximum is not None and minimum > maximum:
        what = f"it must not be more than maxOffsetsPerTrigger, {maximum}"
        raise option_error("minOffsetsPerTrigger", str(minimum), what)
    return SourceOptions(
        connection=_connection(given_options, required=transport is Transport.FETCH),
        selection=selection,
        starting=starting,
        ending=ending,
        isolation=_isolation(properties),
        start_may_be_latest=_start_may_be_latest(given_options),
        fail_on_data_loss=flag("failOnDataLoss", given_options.get("failOnDataLoss", "true")),
        include_headers=flag("includeHeaders", given_options.get("includeHeaders", "false")),
        min_partitions=_optional_number(given_options, "minPartitions"),
        max_records_per_partition=_optional_number(given_options, "maxRecordsPerPartition"),
        max_offsets_per_trigger=maximum,
        min_offsets_per_trigger=minimum,
        max_trigger_delay_ms=duration_ms("maxTriggerDelay", given_options.get("maxTriggerDelay", "15m")),
        offset_attempts_count=number(
            "fetchOffset.numRetries", given_options.get("fetchOffset.numRetries", "3"), minimum=1
        ),
        offset_retry_ms=number(
            "fetchOffset.retryIntervalMs", given_options.get("fetchOffset.retryIntervalMs", "1000"), minimum=0
        ),
        transport=transport,
        log_dirs=_log_dirs(given_options, transport),
        task_bytes=size_bytes("taskSize", given_options.get("taskSize", str(TASK_BYTES))),
        fetch_bytes=_fetch_bytes(properties),
        check_crcs=flag("checkCrcs", given_options.get("checkCrcs", properties.get("check.crcs", "true"))),
        group_id=properties.get("group.id"),
        ignored=ignored,
    )


def _connection(given_options: _Given, *, required: bool) -> ConnectionOptions:
    properties = given_options.properties()
    bootstrap = properties.get("bootstrap.servers", "")
    try:
        if bootstrap or required:
            parse_bootstrap(bootstrap)
    except ValueError as error:
        what = f"host:port pairs of brokers are expected, with commas between them ({error})"
        raise option_error("kafka.bootstrap.servers", bootstrap, what) from None
    try:
        login, tls = login_from_properties(properties), tls_from_properties(properties)
    except ValueError as error:
        raise option_error("kafka.security.protocol", properties["security.protocol"], str(error)) from None
    timeout_ms = properties.get("request.timeout.ms", "30000")
    poll_ms = given_options.get("kafkaConsumer.pollTimeoutMs", str(POLL_TIMEOUT_MS))
    return ConnectionOptions(
        bootstrap=bootstrap,
        client_id=properties.get("client.id", "barnabas-spark"),
        login=login,
        tls=tls,
        request_timeout_ms=number("kafka.request.timeout.ms", timeout_ms, minimum=1),
        retry_timeout_ms=number("kafkaConsumer.pollTimeoutMs", poll_ms, minimum=1),
        delegation_tokens=uses_delegation_tokens(given_options.get(DELEGATION_TOKENS, ""), login),
    )


def _selection(given_options: _Given) -> TopicSelection:
    chosen = [name for name in _STRATEGIES if name in given_options]
    if len(chosen) != 1:
        chosen_text = " and ".join(chosen) or "none"
        message = f"exactly one of the options {', '.join(_STRATEGIES)} is required; found: {chosen_text}"
        raise OptionError(message)
    [name] = chosen
    text = given_options[name].strip()
    if name == "assign":
        return Assign(partitions(name, text))
    if name == "subscribe":
        topics = tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
        if not topics:
            raise option_error(
                name, given_options[name], "names of topics are expected, with commas between them"
            )
        return Subscribe(topics)
    return SubscribePattern(_pattern(name, text))


def _pattern(name: str, text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise option_error(name, text, f"a regular expression is expected ({error})") from None
    if not text:
        raise option_error(name, text, "a regular expression is expected, such as orders-.*")
    return text


def _bound(given_options: _Given, side: str, default: Edge) -> OffsetRangeLimit:
    """Start or end; as in the connector, one time for all wins over times per partition, and these over offsets."""
    name = f"{side}Timestamp"
    if name in given_options:
        return Time(number(name, given_options[name], minimum=0))
    name = f"{side}OffsetsByTimestamp"
    if name in given_options:
        return Times(
            numbers_by_partition(name, given_options[name], minimum=0, expected="times in ms since the epoch")
        )
    name = f"{side}Offsets"
    text = given_options.get(name, default.value).strip()
    if text.lower() in {edge.value for edge in Edge}:
        return Edge(text.lower())
    if not text.startswith("{"):
        raise option_error(name, text, "earliest, latest or JSON of offsets is expected")
    return SpecificOffsets(numbers_by_partition(name, text, minimum=EARLIEST_MARKER))


def _has_marker(bound: OffsetRangeLimit, marker: int) -> bool:
    return isinstance(bound, SpecificOffsets) and marker in bound.by_partition.values()


def _check_order(given_options: _Given, starting: OffsetRangeLimit, ending: OffsetRangeLimit) -> None:
    """Check that start and end name the same partitions, and that no end is before its start."""
    if isinstance(starting, SpecificOffsets) and isinstance(ending, SpecificOffsets):
        name = "endingOffsets"
    elif isinstance(starting, Times) and isinstance(ending, Times):
        name = "endingOffsetsByTimestamp"
    else:
        return
    first, last = starting.by_partition, ending.by_partition
    if first.keys() != last.keys():
        one_sided = ", ".join(str(each) for each in sorted(first.keys() ^ last.keys()))
        raise option_error(
            name, given_options[name], f"start and end must name the same partitions, unlike {one_sided}"
        )
    for tp, start in first.items():
        if start >= 0 and 0 <= last[tp] < start:
            what = f"partition {tp} would end at {last[tp]}, before its start at {start}"
            raise option_error(name, given_options[name], what)


def _start_may_be_latest(given_options: _Given) -> bool:
    name = "startingOffsetsByTimestampStrategy"
    text = given_options.get(name, "error")
    if text.lower() not in ("error", "latest"):
        raise option_error(name, text, "error or latest is expected")
    return text.lower() == "latest"


def _isolation(properties: Mapping[str, str]) -> Isolation:
    text = properties.get("isolation.level", "read_uncommitted")
    if text.lower() not in _ISOLATIONS:
        raise option_error("kafka.isolation.level", text, f"{' or '.join(_ISOLATIONS)} is expected")
    return _ISOLATIONS[text.lower()]


def _transport(given_options: _Given) -> Transport:
    text = given_options.get("transport", Transport.FETCH.value)
    try:
        return Transport(text.strip().lower())
    except ValueError:
        raise option_error("transport", text, "fetch or files is expected") from None


def _log_dirs(given_options: _Given, transport: Transport) -> tuple[str, ...]:
    directories = tuple(path.strip() for path in given_options.get("logDirs", "").split(",") if path.strip())
    if transport is Transport.FILES and not directories:
        what = "with transport=files, paths of log directories are expected, with commas between them"
        raise option_error("logDirs", given_options.get("logDirs", ""), what)
    return directories


def _fetch_bytes(properties: Mapping[str, str]) -> int:
    name = "max.partition.fetch.bytes"
    return number(f"kafka.{name}", properties.get(name, str(FETCH_BYTES)), minimum=1)


def _optional_number(given_options: _Given, name: str) -> int | None:
    return number(name, given_options[name], minimum=1) if name in given_options else None
