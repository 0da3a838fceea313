"""The source's options: those of Spark's Kafka connector, and a few of Barnabas. No IO.

Names are case-insensitive, as in Spark.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from barnabas.client.auth.sasl import SaslLogin
from barnabas.reading.connection import ConnectionOptions
from barnabas.reading.option_names import check_option_names
from barnabas.reading.option_values import duration_ms, flag, number, option_error, size_bytes
from barnabas.reading.options import Edge, OffsetRangeLimit, ReadOptions
from barnabas.reading.text_options import OPTION_NAMES as READ_OPTION_NAMES
from barnabas.reading.text_options import (
    GivenOptions,
    batch_limits,
    offset_range_limit,
    parse_connection,
    read_options,
)
from pyspark_barnabas.delegation import OPTION as DELEGATION_TOKENS
from pyspark_barnabas.delegation import uses_delegation_tokens

#: A task costs about 50 ms, whatever its size.
TASK_BYTES = 128 * 1024 * 1024
MAX_TRIGGER_DELAY_MS = 15 * 60_000

OPTION_NAMES = (
    *READ_OPTION_NAMES, DELEGATION_TOKENS, "groupIdPrefix", "includeHeaders", "maxOffsetsPerTrigger",
    "maxRecordsPerPartition", "maxTriggerDelay", "minOffsetsPerTrigger", "minPartitions", "taskSize",
)  # fmt: skip
_ENDINGS = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
_LIMITS = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")


@dataclass(frozen=True)
class SparkConnection(ConnectionOptions):
    """The options for connecting to the cluster from the driver and from tasks."""

    client_id: str = "barnabas-spark"
    delegation_tokens: bool = False  #: whether tasks log in with tokens instead of `login`

    def for_tasks(self, login: SaslLogin | None = None) -> Self:
        """Return what tasks may know: without the password, and with a login of their own if they have one."""
        return replace(self, login=login, delegation_tokens=False) if self.delegation_tokens else self


@dataclass(frozen=True)
class SourceOptions(ReadOptions):
    """All options of a source."""

    connection: SparkConnection
    include_headers: bool = False
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = MAX_TRIGGER_DELAY_MS
    task_bytes: int = TASK_BYTES
    group_id: str | None = None
    #: Options that were given and have no effect.
    ignored: tuple[str, ...] = field(default=(), compare=False)

    def for_tasks(self) -> Self:
        """Return what is sent to tasks; see `SparkConnection.for_tasks`."""
        return replace(self, connection=self.connection.for_tasks())

    def with_login(self, login: SaslLogin) -> Self:
        return replace(self, connection=replace(self.connection, login=login))


def batch_options(options: Mapping[str, str]) -> SourceOptions:
    """Parse the options of `spark.read`.

    :raises OptionError: For an invalid option; passwords are not quoted.
    """
    given_options = GivenOptions(options)
    starting, ending = batch_limits(given_options)
    ignored = tuple(name for name in _LIMITS if name in given_options)
    return _options(given_options, starting, ending, ignored)


def stream_options(options: Mapping[str, str]) -> SourceOptions:
    """Parse the options of `spark.readStream`.

    :raises OptionError: For an invalid option; passwords are not quoted.
    """
    given_options = GivenOptions(options)
    for name in _ENDINGS:
        if name in given_options:
            raise option_error(name, given_options[name], "a streaming query has no end; leave it out")
    return _options(
        given_options, offset_range_limit(given_options, "starting", Edge.LATEST), Edge.LATEST, ()
    )


def connection_options(options: Mapping[str, str]) -> SparkConnection:
    """Parse only the options for connecting to the cluster.

    :raises OptionError: For an invalid option.
    """
    given_options = GivenOptions(options)
    return _with_delegation(given_options, parse_connection(given_options, required=True))


def _options(
    given_options: GivenOptions,
    starting: OffsetRangeLimit,
    ending: OffsetRangeLimit,
    ignored: tuple[str, ...],
) -> SourceOptions:
    check_option_names(given_options.names(), OPTION_NAMES)
    parsed = read_options(given_options, starting, ending)
    minimum = _optional_number(given_options, "minOffsetsPerTrigger")
    maximum = _optional_number(given_options, "maxOffsetsPerTrigger")
    if minimum is not None and maximum is not None and minimum > maximum:
        what = f"it must not be more than maxOffsetsPerTrigger, {maximum}"
        raise option_error("minOffsetsPerTrigger", str(minimum), what)
    return SourceOptions(
        **{**vars(parsed), "connection": _with_delegation(given_options, parsed.connection)},
        include_headers=flag("includeHeaders", given_options.get("includeHeaders", "false")),
        min_partitions=_optional_number(given_options, "minPartitions"),
        max_records_per_partition=_optional_number(given_options, "maxRecordsPerPartition"),
        max_offsets_per_trigger=maximum,
        min_offsets_per_trigger=minimum,
        max_trigger_delay_ms=duration_ms("maxTriggerDelay", given_options.get("maxTriggerDelay", "15m")),
        task_bytes=size_bytes("taskSize", given_options.get("taskSize", str(TASK_BYTES))),
        group_id=given_options.properties().get("group.id"),
        ignored=ignored,
    )


def _with_delegation(given_options: GivenOptions, connection: ConnectionOptions) -> SparkConnection:
    client_id = given_options.properties().get("client.id", SparkConnection.client_id)
    delegates = uses_delegation_tokens(given_options.get(DELEGATION_TOKENS, ""), connection.login)
    return SparkConnection(**{**vars(connection), "client_id": client_id, "delegation_tokens": delegates})


def _optional_number(given_options: GivenOptions, name: str) -> int | None:
    return number(name, given_options[name], minimum=1) if name in given_options else None
