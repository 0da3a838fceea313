"""The logs of a broker in this process, and the options of jobs that work on its files."""

from barnabas.base.ids import TopicPartition
from barnabas.log.partition_log import PartitionLog
from barnabas.testing import EmbeddedBroker


def options_of(broker: EmbeddedBroker, topic: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": topic,
        "logDirs": str(broker.directory),
    }


def log_of(broker: EmbeddedBroker, tp: TopicPartition) -> PartitionLog:
    log = broker.server.parts.log_manager.get(tp)
    assert log is not None, tp
    return log
