"""The brokers under test, by name. INTEROP_BROKERS is their number; three brokers of either kind form a cluster."""

import contextlib
import functools
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from interop import candidate, clusters, reference
from interop.brokers import Broker

#: Number of brokers of the cluster under test; topics have a replica on each of them.
BROKERS_COUNT = int(os.environ.get("INTEROP_BROKERS", "1"))

#: Starts a single broker in a home directory that is kept, whatever INTEROP_BROKERS is; the caller stops it.
START_ONE: dict[str, Callable[..., Broker]] = {"barnabas": candidate.start, "kafka": reference.start}


def _start_kafka(
    home: Path, properties: Mapping[str, str] | None = None, listeners: Sequence[str] = ()
) -> Broker:
    """Start a cluster of Apache Kafka; return its first broker, with which the others stop."""
    first, *others = clusters.start_kafka(home, BROKERS_COUNT, properties, listeners).brokers
    first.others = others
    return first


#: Starts the cluster under test, and returns its first broker.
START: dict[str, Callable[..., Broker]] = {
    "barnabas": functools.partial(candidate.start, brokers_count=BROKERS_COUNT),
    "kafka": reference.start if BROKERS_COUNT == 1 else _start_kafka,
}


@contextlib.contextmanager
def _running(
    kind: str, start: Mapping[str, Callable[..., Broker]], properties: Mapping[str, str] | None = None
) -> Iterator[Broker]:
    with tempfile.TemporaryDirectory(prefix=f"{kind}-") as home:
        broker = start[kind](Path(home), properties)
        try:
            yield broker
        finally:
            broker.stop()


#: Runs the cluster under test, with or without properties, in a directory that is removed afterwards.
RUNNING: dict[str, Callable[..., AbstractContextManager[Broker]]] = {
    kind: functools.partial(_running, kind, START) for kind in START
}

#: Runs a single broker, whatever INTEROP_BROKERS is.
RUNNING_ONE: dict[str, Callable[..., AbstractContextManager[Broker]]] = {
    kind: functools.partial(_running, kind, START_ONE) for kind in START_ONE
}
