"""The brokers that can be held against each other, by name."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from interop import candidate, reference
from interop.brokers import Broker

#: Start a broker in a home directory that stays; whoever starts it stops it.
START: dict[str, Callable[..., Broker]] = {"barnabas": candidate.start, "kafka": reference.start}

#: Run a broker, with properties or without, in a directory that is removed afterwards.
RUNNING: dict[str, Callable[..., AbstractContextManager[Broker]]] = {
    "barnabas": candidate.barnabas,
    "kafka": reference.kafka,
}
