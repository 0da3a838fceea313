"""The intended differences in the APIs on configs."""

from collections.abc import Callable
from typing import Any

from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.messages.alter_configs import AlterConfigsResource as Replaced
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from differential.compare import Difference
from differential.config_values import BROKER, BROKER_LOGGER, GROUP, KEYS, SET, TOPIC
from differential.listed_entry import EXCEPTION, Listed, is_at
from differential.sequences import Step, create, topic
from differential.symbols import Name

_T: Any = Name("t")
_G: Any = Name("g")
_CREATE = create(topic("t"))


def _validate(kind: int, name: str, key: str, value: str, operation: int = SET) -> Step:
    edits = [AlterableConfig(key, operation, value)]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(kind, name, edits)], validate_only=True)
    return request, 1


def _resources(difference: Difference) -> list[Any]:
    return getattr(difference.request, "resources", [])


def _edits(*keys: str) -> Callable[[Difference], bool]:
    """Whether the request edits one of the keys."""
    return lambda difference: any(
        edit.name in keys for resource in _resources(difference) for edit in resource.configs
    )


_NEWER = tuple(key.name for keys in KEYS.values() for key in keys.values() if key.since == "4.4")
_OWN = tuple(name for name in KEYS[BROKER] if name.startswith("barnabas."))
_OF_TABLES = tuple(name for name in KEYS[TOPIC] if name.startswith("barnabas."))
_CLASSES = ("metric.reporters", "principal.builder.class", "ssl.engine.factory.class")
_KRAFT = ("listeners", "listener.security.protocol.map")


def _has_unknown_operation(difference: Difference) -> bool:
    edits = (edit for resource in _resources(difference) for edit in resource.configs)
    return difference.kafka in ("UNKNOWN_SERVER_ERROR", None) and any(
        edit.config_operation not in range(4) for edit in edits
    )


def _validate_lags() -> Step:
    lags = (("log.cleaner.min.compaction.lag.ms", "100"), ("log.cleaner.max.compaction.lag.ms", "10"))
    edits = [AlterableConfig(key, SET, value) for key, value in lags]
    return IncrementalAlterConfigsRequest([AlterConfigsResource(BROKER, "1", edits)], validate_only=True), 1


def _describe_loggers() -> Step:
    return DescribeConfigsRequest([DescribeConfigsResource(BROKER_LOGGER, "1")]), 4


LISTED_CONFIGS = (
    Listed(
        "DescribeConfigs", "results.configs", "loggers (type 8)", "Each broker has its own loggers.",
        is_at("results[8 1].configs["), (_describe_loggers(),),
    ),
    Listed(
        "IncrementalAlterConfigs", "responses", "an operation other than 0 to 3", EXCEPTION,
        _has_unknown_operation, (_CREATE, _validate(TOPIC, _T, "retention.ms", "1", 9)),
    ),
    Listed(
        "IncrementalAlterConfigs", "responses", "keys that are new in Kafka 4.4",
        "Kafka 4.3 does not know them; Barnabas accepts and validates them as Kafka 4.4 does.",
        _edits(*_NEWER), (_CREATE, _validate(TOPIC, _T, "remote.copy.lag.ms", "1")),
    ),
    Listed(
        "IncrementalAlterConfigs", "responses", "`barnabas.table.*` of topics",
        "Kafka does not know these configs; `barnabas tables` reads them.",
        _edits(*_OF_TABLES), (_CREATE, _validate(TOPIC, _T, "barnabas.table.format", "delta")),
    ),
    Listed(
        "IncrementalAlterConfigs", "responses", "`barnabas.*`",
        "Kafka accepts unknown names; in Barnabas these keys can only be set at the start.",
        _edits(*_OWN), (_validate(BROKER, "1", "barnabas.log.level", "info"),),
    ),
    Listed(
        "AlterConfigs", "responses", "every broker (type 4, no name), without `min.insync.replicas`",
        "Kafka 4.3 keeps that value while eligible leader replicas (KIP-966) are enabled; in Barnabas the setting of "
        "each broker counts without it.",
        is_at("responses[4 ]"),
        ((AlterConfigsRequest([Replaced(BROKER, "", [])], validate_only=True), 2),),
    ),
    Listed(
        "IncrementalAlterConfigs", "responses", "`metric.reporters` and TLS classes",
        "Kafka loads the class; Barnabas validates only classes that have an effect.",
        _edits(*_CLASSES), (_validate(BROKER, "1", "metric.reporters", "x"),),
    ),
    Listed(
        "IncrementalAlterConfigs", "responses", "`config.providers` with an empty entry",
        "Kafka does not validate it; Barnabas rejects it, as both do at the start.",
        _edits("config.providers"), (_validate(BROKER, "1", "config.providers", "a,,b"),),
    ),
    Listed(
        "IncrementalAlterConfigs", "responses", "`listeners` without a controller listener",
        "Barnabas has no controller listener.",
        _edits(*_KRAFT), (_validate(BROKER, "1", "listeners", "PLAINTEXT://:9092"),),
    ),
    Listed(
        "IncrementalAlterConfigs", "responses",
        "`log.cleaner.min.compaction.lag.ms` above `log.cleaner.max.compaction.lag.ms`",
        "Kafka accepts it and then rejects every change of a topic's configs; Barnabas rejects it.",
        _edits("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
        (_validate_lags(),),
    ),
    Listed(
        "AlterConfigs", "outcome", "a resource that occurs twice",
        "Kafka fails with an exception and never responds; Barnabas returns INVALID_REQUEST.",
        lambda each: each.kafka == "timed out",
        ((AlterConfigsRequest([Replaced(GROUP, _G, []), Replaced(GROUP, _G, [])]), 2),),
    ),
)  # fmt: skip
