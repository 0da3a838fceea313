"""The policy interfaces: Kafka's `org.apache.kafka.server.policy` in Python (KIP-108, KIP-133)."""

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple


class PolicyViolation(Exception):
    """Raised by a policy to refuse a change; clients get POLICY_VIOLATION (44) with the text."""


class Configurable:
    """The base of all user classes.

    An instance lives from the broker's start or a reload until the next reload or the stop.
    """

    def configure(self, configs: Mapping[str, str]) -> None:
        """Receive the broker's settings as texts; called once, before everything else. An exception aborts the
        start.
        """

    def close(self) -> None:
        """Release resources; called once, when the broker stops or a reload has replaced the instance."""


class CreateTopicPolicy(Configurable, ABC):
    """Called before a topic is created, validated (`validate_only`) or auto-created (KIP-108)."""

    @dataclass(frozen=True, slots=True)
    class RequestMetadata:
        """The topic to be created. Counts that the request leaves open are the broker's defaults."""

        topic: str
        num_partitions: int | None  #: None when `replicas_assignments` is given
        replication_factor: int | None  #: None when `replicas_assignments` is given
        #: partition -> broker ids; None unless the request assigns replicas
        replicas_assignments: Mapping[int, Sequence[int]] | None
        configs: Mapping[str, str]  #: the topic's own, without the broker's defaults

        def __post_init__(self) -> None:
            if self.replicas_assignments is not None:
                placed = {index: tuple(replicas) for index, replicas in self.replicas_assignments.items()}
                object.__setattr__(self, "replicas_assignments", MappingProxyType(placed))
            object.__setattr__(self, "configs", MappingProxyType(dict(self.configs)))

    @abstractmethod
    def validate(self, request_metadata: RequestMetadata) -> None:
        """Accept the topic by returning.

        :raises PolicyViolation: With the reason for the client; refuses only this topic.
        """


class ConfigResourceType(enum.IntEnum):
    """The type of a config's resource (`ConfigResource.Type`)."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """A resource with configs; a broker's name is its id as text, empty for the default of all brokers."""

    type: ConfigResourceType
    name: str


class AlterConfigPolicy(Configurable, ABC):
    """Called before configs are altered, and for the configs of a new topic (KIP-133)."""

    @dataclass(frozen=True, slots=True)
    class RequestMetadata:
        """A resource and the configs that the request sets; None resets a key to its default.

        As in Kafka, keys that AlterConfigs removes by omission are not included.
        """

        resource: ConfigResource
        configs: Mapping[str, str | None]

        def __post_init__(self) -> None:
            object.__setattr__(self, "configs", MappingProxyType(dict(self.configs)))

    @abstractmethod
    def validate(self, request_metadata: RequestMetadata) -> None:
        """Accept the configs by returning.

        :raises PolicyViolation: With the reason for the client; refuses only this resource.
        """
