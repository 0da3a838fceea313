"""Test cases for policies: a file of changes with the expected result of each."""

import enum
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from barnabas.base.yaml_nodes import read_yaml
from barnabas.base.yaml_schema import (
    TEXT,
    Key,
    Keyed,
    MappingOf,
    Nullable,
    Schema,
    SequenceOf,
    Text,
    Variants,
    Whole,
    word_for,
)
from barnabas.policy.interfaces import (
    AlterConfigPolicy,
    ConfigResource,
    ConfigResourceType,
    CreateTopicPolicy,
)
from barnabas.policy.policies import Policies, PolicySettings
from barnabas.policy.rules import AclAction
from barnabas.policy.rules_file import ACL_KEYS
from barnabas.wire.acls import WILDCARD, AclBinding, AclPermission, PatternType, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError


class CaseStatus(enum.StrEnum):
    """The policies' decision on a change."""

    ALLOWED = "allowed"
    WARNED = "warned"  #: allowed, but a rule in mode warn objects
    REFUSED = "refused"
    FAILED = "failed"  #: a policy raised something other than PolicyViolation, or timed out


Ask = Callable[[Policies], Awaitable[None]]


class Case(NamedTuple):
    """A change and its expected result."""

    line: int
    change: str  #: for people
    ask: Ask
    expected: CaseStatus
    expected_reason: str  #: expected part of the reason


class CaseResult(NamedTuple):
    """The result of one change, with its reason."""

    result: CaseStatus
    why: str

    def is_as_expected(self, case: Case) -> bool:
        """Whether status and reason are as expected."""
        return self.result is case.expected and case.expected_reason in self.why


class Trial:
    """Policies loaded as a broker does, but without a broker. An async context manager."""

    def __init__(self, settings: PolicySettings) -> None:
        self._warnings: list[str] = []
        self._policies = Policies(settings, self._warnings.append)

    async def __aenter__(self) -> "Trial":
        """Load the policies.

        :raises PolicyLoadError: When a policy cannot be loaded.
        """
        await self._policies.load()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._policies.close()

    async def outcome(self, ask: Ask) -> CaseResult:
        """The policies' result."""
        self._warnings.clear()
        try:
            await ask(self._policies)
        except KafkaError as error:
            is_refusal = error.code is ErrorCode.POLICY_VIOLATION
            return CaseResult(CaseStatus.REFUSED if is_refusal else CaseStatus.FAILED, error.message)
        return CaseResult(
            CaseStatus.WARNED if self._warnings else CaseStatus.ALLOWED, "; ".join(self._warnings)
        )


class Counts(NamedTuple):
    """Default partition count and replication factor of a new topic."""

    partitions: int = 1
    replication_factor: int = 1


def read_cases(path: Path, defaults: Counts) -> list[Case]:
    """The cases in a file.

    :raises YamlError: With line, key, value and what would be right.
    """
    return read_yaml(path, SequenceOf(_case(defaults)).read)


class _Change(NamedTuple):
    """A change in words, and how to ask the policies."""

    text: str
    ask: Ask


def _asked(check: Callable[[Policies], None]) -> Ask:
    """A check that waits for nothing."""

    async def ask(policies: Policies) -> None:
        check(policies)

    return ask


def _create_topic(new: CreateTopicPolicy.RequestMetadata) -> _Change:
    by_hand = new.replicas_assignments is not None
    metadata = replace(new, num_partitions=None, replication_factor=None) if by_hand else new
    return _Change(new.topic, lambda policies: policies.check_create_topic(metadata))


def _create_partitions(topic: str, partitions: int) -> _Change:
    ask = _asked(lambda policies: policies.check_create_partitions(topic, partitions))
    return _Change(f"{topic} to {partitions}", ask)


def _delete_topic(topic: str) -> _Change:
    return _Change(topic, _asked(lambda policies: policies.check_delete_topic(topic)))


def _alter_config(
    kind: ConfigResourceType, name: str, configs: Mapping[str, str | None], removed: Sequence[str] = ()
) -> _Change:
    altered = AlterConfigPolicy.RequestMetadata(ConfigResource(kind, name), configs)
    text = f"of {kind.name.lower()} {name}"
    return _Change(text, lambda policies: policies.check_alter_config(altered, removed))


def _alter_acl(action: AclAction, acl: AclBinding) -> _Change:
    ask = _asked(lambda policies: policies.check_acl(action, acl))
    return _Change(f"{acl.operation.name} for {acl.principal} on {acl.resource_name}", ask)


_REQUIRED_OF_ACL = ("resource_name", "principal", "operation")
ACL = Keyed(
    partial(
        AclBinding,
        resource_type=ResourceType.TOPIC,
        pattern_type=PatternType.LITERAL,
        host=WILDCARD,
        permission=AclPermission.ALLOW,
    ),
    {key: Key(schema, required=key in _REQUIRED_OF_ACL) for key, schema in ACL_KEYS.items()},
)
PARTITION_INDEX = Text(r"\d+", "must be a partition's number")
ASSIGNMENTS = MappingOf(SequenceOf(Whole(0)), name=PARTITION_INDEX).to(
    lambda found: {int(index): brokers for index, brokers in found.items()}
)
TOPIC = Key(TEXT, required=True)

ALTER_CONFIG = Variants(
    {
        kind.name.lower(): Keyed(
            partial(_alter_config, kind),
            {
                kind.name.lower(): Key(TEXT, required=True, into="name"),
                "configs": Key(MappingOf(Nullable[str | None](TEXT, None)), required=True),
                "removed": SequenceOf(TEXT),
            },
        )
        for kind in ConfigResourceType
        if kind is not ConfigResourceType.UNKNOWN
    }
)


def _changes(defaults: Counts) -> Mapping[str, Schema[_Change]]:
    """The changes by their names."""
    new_topic = Keyed(
        partial(
            CreateTopicPolicy.RequestMetadata,
            num_partitions=defaults.partitions,
            replication_factor=defaults.replication_factor,
            replicas_assignments=None,
            configs={},
        ),
        {
            "topic": TOPIC,
            "partitions": Key(Whole(1), into="num_partitions"),
            "replication_factor": Whole(1),
            "assignments": Key(ASSIGNMENTS, into="replicas_assignments"),
            "configs": MappingOf(TEXT),
        },
    )
    return {
        "create_topic": new_topic.to(_create_topic),
        "create_partitions": Keyed(
            _create_partitions, {"topic": TOPIC, "partitions": Key(Whole(1), required=True)}
        ),
        "delete_topic": Keyed(_delete_topic, {"topic": TOPIC}),
        "alter_config": ALTER_CONFIG,
        "create_acl": ACL.to(partial(_alter_acl, AclAction.CREATE)),
        "delete_acl": ACL.to(partial(_alter_acl, AclAction.DELETE)),
    }


def _case(defaults: Counts) -> Schema[Case]:
    """One case: a change, and what is expected."""
    results = word_for((CaseStatus.ALLOWED, CaseStatus.REFUSED, CaseStatus.WARNED))
    expectation = {
        "expect": Key(results, required=True, into="expected"),
        "says": Key(TEXT, into="expected_reason"),
    }

    def build(name: str, line: int, change: _Change, expected: CaseStatus, expected_reason: str = "") -> Case:
        text = f"{name.replace('_', ' ')} {change.text}"
        return Case(line, text, change.ask, expected, expected_reason)

    return Variants(
        {
            name: Keyed(
                partial(build, name),
                {name: Key(schema, required=True, into="change"), **expectation},
                context={"line": attrgetter("line")},
            )
            for name, schema in _changes(defaults).items()
        }
    )
