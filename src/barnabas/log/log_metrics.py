"""Metrics of each log."""

from collections.abc import Callable
from functools import partial
from operator import attrgetter

from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.telemetry import names
from barnabas.telemetry.metrics import MetricsRegistry, Values

_ATTRIBUTES = {
    names.LOG_SIZE: "size_bytes",
    names.LOG_START_OFFSET: "log_start_offset",
    names.LOG_END_OFFSET: "log_end_offset",
    names.HIGH_WATERMARK: "high_watermark",
}


def register_log_metrics(registry: MetricsRegistry, log_manager: LogManager) -> None:
    for metric, attribute in _ATTRIBUTES.items():
        registry.add_metric(metric, partial(_values, log_manager, attrgetter(attribute)))


def _values(log_manager: LogManager, value_of: Callable[[PartitionLog], int]) -> Values:
    for tp, log in log_manager.logs.items():
        yield {"topic": tp.topic, "partition": str(tp.partition)}, value_of(log)
