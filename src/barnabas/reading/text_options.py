"""Options as text, by the names of Spark's Kafka connector and a few of Barnabas. No IO.

Names are case-insensitive, as in Spark.
"""

from collections.abc import Iterable, Mapping

from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.properties import login_from_properties, tls_from_properties
from barnabas.reading.connection import POLL_TIMEOUT_MS, ConnectionOptions
from barnabas.reading.option_names import check_option_names
from barnabas.reading.option_values import (
    OptionError,
    flag,
    number,
    numbers_by_partition,
    option_error,
    partitions,
)
from barnabas.reading.options import (
    EARLIEST_MARKER,
    FETCH_BYTES,
    LATEST_MARKER,
    Assign,
    Edge,
    OffsetRangeLimit,
    ReadOptions,
    SpecificOffsets,
    Subscribe,
    SubscribePattern,
    Time,
    Times,
    TopicSelection,
    Transport,
)
from barnabas.reading.topic_patterns import topic_matcher
from barnabas.wire.isolation import Isolation

#: The options that are parsed here, beside Kafka's client properties.
OPTION_NAMES = (
    "assign", "checkCrcs", "endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp", "failOnDataLoss",
    "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "kafkaConsumer.pollTimeoutMs", "logDirs",
    "startingOffsets", "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy", "startingTimestamp",
    "subscribe", "subscribePattern", "transport",
)  # fmt: skip
_STRATEGIES = ("subscribe", "subscribePattern", "assign")
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


class GivenOptions:
    """The given options by case-insensitive name."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = {name.lower(): str(value) for name, value in options.items()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._options

    def __getitem__(self, name: str) -> str:
        return self._options[name.lower()]

    def get(self, name: str, default: str) -> str:
        return self._options.get(name.lower(), default)

    def names(self) -> Iterable[str]:
        """Return the names in lower case."""
        return self._options.keys()

    def properties(self) -> dict[str, str]:
        """Kafka's own client properties."""
        prefix = "kafka."
        return {
            name.removeprefix(prefix): value
            for name, value in self._options.items()
            if name.startswith(prefix)
        }


def batch_read_options(options: Mapping[str, str]) -> ReadOptions:
    """Parse the options of reading what is there, once.

    :raises OptionError: For an invalid option; passwords are not quoted.
    """
    given_options = GivenOptions(options)
    check_option_names(given_options.names(), OPTION_NAMES)
    return read_options(given_options, *batch_limits(given_options))


def batch_limits(given_options: GivenOptions) -> tuple[OffsetRangeLimit, OffsetRangeLimit]:
    """Return the start and the end of a batch.

    :raises OptionError: One of them is not valid.
    """
    starting = offset_range_limit(given_options, "starting", Edge.EARLIEST)
    ending = offset_range_limit(given_options, "ending", Edge.LATEST)
    if starting is Edge.LATEST or _has_marker(starting, LATEST_MARKER):
        what = "a batch query cannot start at the latest offset (-1); use earliest (-2), an offset or a time"
        raise option_error("startingOffsets", given_options["startingOffsets"], what)
    if ending is Edge.EARLIEST or _has_marker(ending, EARLIEST_MARKER):
        what = "a batch query cannot end at the earliest offset (-2); use latest (-1), an offset or a time"
        raise option_error("endingOffsets", given_options["endingOffsets"], what)
    _check_order(given_options, starting, ending)
    return starting, ending


def read_options(
    given_options: GivenOptions, starting: OffsetRangeLimit, ending: OffsetRangeLimit
) -> ReadOptions:
    """Parse all options but those of start and end.

    :raises OptionError: For an invalid option; passwords are not quoted.
    """
    transport = _transport(given_options)
    selection = _selection(given_options)
    properties = given_options.properties()
    for name, advice in _REFUSED_PROPERTIES.items():
        if name in properties:
            raise option_error(f"kafka.{name}", properties[name], f"this is not supported; {advice}")
    return ReadOptions(
        connection=parse_connection(given_options, required=transport is Transport.FETCH),
        selection=selection,
        starting=starting,
        ending=ending,
        isolation=_isolation(properties),
        start_may_be_latest=_start_may_be_latest(given_options),
        fail_on_data_loss=flag("failOnDataLoss", given_options.get("failOnDataLoss", "true")),
        offset_attempts_count=number(
            "fetchOffset.numRetries", given_options.get("fetchOffset.numRetries", "3"), minimum=1
        ),
        offset_retry_ms=number(
            "fetchOffset.retryIntervalMs", given_options.get("fetchOffset.retryIntervalMs", "1000"), minimum=0
        ),
        transport=transport,
        log_dirs=_log_dirs(given_options, transport),
        fetch_bytes=_fetch_bytes(properties),
        check_crcs=flag("checkCrcs", given_options.get("checkCrcs", properties.get("check.crcs", "true"))),
    )


def parse_connection(given_options: GivenOptions, *, required: bool) -> ConnectionOptions:
    """Parse only the options for connecting to the cluster.

    :raises OptionError: For an invalid option; passwords are not quoted.
    """
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
        message = f"the connection options (kafka.*) are not valid: {error}"
        raise OptionError(message) from None
    timeout_ms = properties.get("request.timeout.ms", "30000")
    poll_ms = given_options.get("kafkaConsumer.pollTimeoutMs", str(POLL_TIMEOUT_MS))
    return ConnectionOptions(
        bootstrap=bootstrap,
        client_id=properties.get("client.id", ConnectionOptions.client_id),
        login=login,
        tls=tls,
        request_timeout_ms=number("kafka.request.timeout.ms", timeout_ms, minimum=1),
        retry_timeout_ms=number("kafkaConsumer.pollTimeoutMs", poll_ms, minimum=1),
    )


def _selection(given_options: GivenOptions) -> TopicSelection:
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
        topic_matcher(text)
    except ValueError as error:
        raise option_error(name, text, f"a regular expression is expected ({error})") from None
    if not text:
        raise option_error(name, text, "a regular expression is expected, such as orders-.*")
    return text


def offset_range_limit(given_options: GivenOptions, side: str, default: Edge) -> OffsetRangeLimit:
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


def _has_marker(limit: OffsetRangeLimit, marker: int) -> bool:
    return isinstance(limit, SpecificOffsets) and marker in limit.by_partition.values()


def _check_order(given_options: GivenOptions, starting: OffsetRangeLimit, ending: OffsetRangeLimit) -> None:
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


def _start_may_be_latest(given_options: GivenOptions) -> bool:
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


def _transport(given_options: GivenOptions) -> Transport:
    text = given_options.get("transport", Transport.FETCH.value)
    try:
        return Transport(text.strip().lower())
    except ValueError:
        raise option_error("transport", text, "fetch or files is expected") from None


def _log_dirs(given_options: GivenOptions, transport: Transport) -> tuple[str, ...]:
    directories = tuple(path.strip() for path in given_options.get("logDirs", "").split(",") if path.strip())
    if transport is Transport.FILES and not directories:
        what = "with transport=files, paths of log directories are expected, with commas between them"
        raise option_error("logDirs", given_options.get("logDirs", ""), what)
    return directories


def _fetch_bytes(properties: Mapping[str, str]) -> int:
    name = "max.partition.fetch.bytes"
    return number(f"kafka.{name}", properties.get(name, str(FETCH_BYTES)), minimum=1)
