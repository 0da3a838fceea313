"""CPU time of a broker for records of the Java producer."""

from pathlib import Path

from interop.brokers import Broker

from bench import load
from bench.process import cpu_s
from bench.warm_memory import warm_memory

#: Partitions over which the Java producer distributes its batches.
PARTITIONS_COUNT = 6


def cpu_per_record(
    broker: Broker,
    count: int,
    record_bytes: int,
    *properties: str,
    address: str = "",
    partitions_count: int = PARTITIONS_COUNT,
    config: Path | None = None,
) -> float:
    """Produce records to a topic of their own; return broker CPU for each, in microseconds.

    :param address: The listener, if it is not the open one.
    :param config: A file of properties.
    """
    load.raw("create", broker.bootstrap, topic="produce", count=1, partitions=partitions_count)
    before_s = cpu_s(broker.pid)
    with warm_memory():
        where = address or broker.bootstrap
        load.produce_with_java(where, "produce-0", count, record_bytes, *properties, config=config)
    used_s = cpu_s(broker.pid) - before_s
    load.raw("delete", broker.bootstrap, topic="produce", count=1)
    return used_s / count * 1e6
