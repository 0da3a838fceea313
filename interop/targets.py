"""The brokers under test, by name."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from interop import candidate, reference
from interop.brokers import Broker

#: Starts a broker in a home directory that is kept; the caller stops it.
START: dict[str, Callable[..., Broker]] = {"barnabas": candidate.start, "kafka": reference.start}

#: Runs a broker, with or without properties, in a directory that is removed afterwards.
RUNNING: dict[str, Callable[..., AbstractContextManager[Broker]]] = {
    "barnabas": candidate.barnabas,
    "kafka": reference.kafka,
}
