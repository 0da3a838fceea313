"""What a policy is: Kafka's `org.apache.kafka.server.policy` in Python (KIP-108, KIP-133)."""

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple


class PolicyViolation(Exception):
    """Raised by a policy that refuses; clients get POLICY_VIOLATION (44) with the text."""


class _Policy:
    """What all policies share; an instance lives from the start, or a reload, to the stop of the broker."""

    def configure(self, configs: Mapping[str, str]) -> None:
        """Take the broker's settings, as texts; called once, before all else. An exception ends the start."""

    def close(self) -> None:
        """Let go of what the policy holds; called once, when the broker stops or has a newer policy."""


class CreateTopicPolicy(_Policy, ABC):
    """Asked before a topic is created, validated (`validate_only`) or auto-created (KIP-108)."""

    @dataclass(frozen=True, slots=True)
    class RequestMetadata:
        """A topic as it would be created. Counts are the broker's defaults where the request left them open."""

        topic: str
        num_partitions: int | None  #: None when `replicas_assignments` is given
        replication_factor: int | None  #: None when `replicas_assignments` is given
        #: partition -> broker ids; None unless the request places replicas by hand
        replicas_assignments: Mapping[int, Sequence[int]] | None
        configs: Mapping[str, str]  #: of the topic itself, the broker's defaults not included

        def __post_init__(self) -> None:
            if self.replicas_assignments is not None:
                placed = {index: tuple(replicas) for index, replicas in self.replicas_assignments.items()}
                object.__setattr__(self, "replicas_assignments", MappingProxyType(placed))
            object.__setattr__(self, "configs", MappingProxyType(dict(self.configs)))

    @abstractmethod
    def validate(self, request_metadata: RequestMetadata) -> None:
        """Let the topic pass.

        :raises PolicyViolation: With the reason for the client, and for this topic alone.
        """


class ConfigResourceType(enum.IntEnum):
    """What configs belong to (`ConfigResource.Type`)."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """One bearer of configs; a broker's name is its id as text, empty for the default of all brokers."""

    type: ConfigResourceType
    name: str


class AlterConfigPolicy(_Policy, ABC):
    """Asked before configs are altered, those that a new topic brings included (KIP-133)."""

    @dataclass(frozen=True, slots=True)
    class RequestMetadata:
        """A resource, and what the request sets. None stands for a key that goes back to its default.

        As in Kafka, keys that AlterConfigs removes by leaving them out are not among them.
        """

        resource: ConfigResource
        configs: Mapping[str, str | None]

        def __post_init__(self) -> None:
            object.__setattr__(self, "configs", MappingProxyType(dict(self.configs)))

    @abstractmethod
    def validate(self, request_metadata: RequestMetadata) -> None:
        """Let the configs pass.

        :raises PolicyViolation: With the reason for the client, and for this resource alone.
        """
