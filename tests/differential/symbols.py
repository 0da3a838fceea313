"""Symbols for values of a request that differ between brokers; they are resolved when the request is sent."""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from barnabas.wire.messages.produce import PartitionProduceData, TopicProduceData
from barnabas.wire.schema import Struct
from differential.identities import Identities

#: One time for the whole run, so that both brokers receive the same timestamps.
RUN_MS = int(time.time() * 1000)


class Symbol(ABC):
    """A placeholder that is resolved with one broker's identities."""

    @abstractmethod
    def resolve(self, identities: Identities) -> Any: ...


@dataclass(frozen=True)
class Name(Symbol):
    """A topic of this world."""

    name: str

    def resolve(self, identities: Identities) -> str:
        return identities.prefix + self.name


@dataclass(frozen=True)
class TopicId(Symbol):
    """The id of a topic of this world: by default of its newest incarnation."""

    name: str
    generation: int = -1

    def resolve(self, identities: Identities) -> bytes:
        return identities.topic_id(self.name, self.generation)


@dataclass(frozen=True)
class Producer(Symbol):
    """The producer id of the `number`th InitProducerId in this world."""

    number: int

    def resolve(self, identities: Identities) -> int:
        return identities.producer_id(self.number)


@dataclass(frozen=True)
class Member(Symbol):
    """The member id of the `number`th JoinGroup in this world."""

    number: int

    def resolve(self, identities: Identities) -> str:
        return identities.member_id(self.number)


@dataclass(frozen=True)
class Hmac(Symbol):
    """The password of the `number`th delegation token of this world."""

    number: int

    def resolve(self, identities: Identities) -> bytes:
        return identities.hmac(self.number)


@dataclass(frozen=True)
class Session(Symbol):
    """A fetch session, counted back from the newest."""

    number: int = 0

    def resolve(self, identities: Identities) -> int:
        return identities.session(self.number)[0]


@dataclass(frozen=True)
class SessionEpoch(Symbol):
    """The epoch that the session expects, plus an offset."""

    number: int = 0
    delta: int = 0

    def resolve(self, identities: Identities) -> int:
        return identities.session(self.number)[1] + self.delta


@dataclass(frozen=True)
class LogDir(Symbol):
    """The path of a log directory, or of another directory beside it: `data` is in use, `more` is cordoned."""

    name: str

    def resolve(self, identities: Identities) -> str:
        return f"{identities.home}/{self.name}"


@dataclass(frozen=True)
class Now(Symbol):
    """A time relative to the start of the run."""

    delta_ms: int

    def resolve(self, identities: Identities) -> int:
        return RUN_MS + self.delta_ms


def resolve(value: Any, identities: Identities) -> Any:
    """Return the message with symbols replaced by one broker's values."""
    if isinstance(value, TopicProduceData):
        given = value.name or value.topic_id
        identities.tp = (getattr(given, "name", str(given)), 0)
    if isinstance(value, PartitionProduceData):
        identities.tp = (identities.tp[0], value.index)
    if isinstance(value, Struct):
        fields = {field.name: resolve(getattr(value, field.name), identities) for field in value.FIELDS}
        return type(value)(**fields)
    if isinstance(value, list):
        return [resolve(each, identities) for each in value]
    return value.resolve(identities) if isinstance(value, Symbol) else value
