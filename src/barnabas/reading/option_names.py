"""The names of options, to find those that are misspelled."""

from collections.abc import Iterable

from barnabas.client.property_names import is_client_property, nearest_property
from barnabas.reading.option_values import OptionError

#: Options for reading and writing, of Spark's Kafka connector and of Barnabas.
OPTION_NAMES = (
    "assign", "batchId", "checkCrcs", "delegationTokens", "delivery", "endingOffsets", "endingOffsetsByTimestamp",
    "endingTimestamp", "failOnDataLoss", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "groupIdPrefix",
    "includeHeaders", "includeTimestamp", "kafkaConsumer.pollTimeoutMs", "logDirs", "maxOffsetsPerTrigger",
    "maxRecordsPerPartition", "maxTriggerDelay", "minOffsetsPerTrigger", "minPartitions", "sinkName",
    "startingOffsets", "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy", "startingTimestamp",
    "subscribe", "subscribePattern", "taskSize", "topic", "transport",
)  # fmt: skip
_BY_LOWER_CASE = {name.lower(): name for name in OPTION_NAMES}
_PROPERTY = "kafka."
#: How similar a misspelled name is to the right one, as a ratio of `difflib`.
_CUTOFF = 0.9


def check_option_names(names: Iterable[str]) -> None:
    """Raise for the first name that is almost the name of an option: the option would have no effect.

    Names that are like no other are allowed. Spark passes its own options (`path`), and those of Kafka's connector
    that have no effect here.

    :param names: In lower case; options are case-insensitive.
    :raises OptionError: With the name, but without the value, which may be a secret.
    """
    for name in names:
        right = _right_name(name)
        if right is not None:
            message = f"unknown option '{name}': did you mean {right}?"
            raise OptionError(message)


def _right_name(name: str) -> str | None:
    import difflib

    if name.startswith(_PROPERTY):
        name = name.removeprefix(_PROPERTY)
        near = None if is_client_property(name) else nearest_property(name, cutoff=_CUTOFF)
        return near and _PROPERTY + near
    if name in _BY_LOWER_CASE:
        return None
    near = next(iter(difflib.get_close_matches(name, _BY_LOWER_CASE, n=1, cutoff=_CUTOFF)), None)
    return near and _BY_LOWER_CASE[near]
